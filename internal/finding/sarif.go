package finding

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"path"
	"slices"
	"strings"
)

// The part of SARIF 2.1.0 that is written; its specification describes each field.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifAutomation   `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string    `json:"id"`
		Short   sarifText `json:"shortDescription"`
		Full    sarifText `json:"fullDescription"`
		Help    sarifText `json:"help"`
		HelpURI string    `json:"helpUri"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifAutomation struct {
		ID string `json:"id"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Descriptor sarifReference `json:"descriptor"`
		Level      Level          `json:"level"`
		Message    sarifText      `json:"message"`
	}
	sarifReference struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        Level             `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"`
	}
)

const home = "https://github.com/tegen-dev/tegen"

// sarif has a result for each finding with a file. The others are notifications of the run, since GitHub takes no
// result without a place.
func (r Report) sarif() sarifLog {
	rules := slices.DeleteFunc(slices.Clone(Rules), func(rule Rule) bool { return strings.HasSuffix(rule.ID, "*") })
	run := sarifRun{
		Automation: sarifAutomation{"tegen " + r.Command + "/"}, ColumnKind: "unicodeCodePoints",
		Invocations: []sarifInvocation{{Successful: true}}, Results: []sarifResult{},
	}
	invocation, seen := &run.Invocations[0], map[string]int{}
	for _, f := range r.Findings {
		if f.File == "" {
			invocation.Successful = invocation.Successful && f.Level != Error
			invocation.Notifications = append(invocation.Notifications,
				sarifNotification{sarifReference{f.Rule}, f.Level, sarifText{f.About()}})
		}
		at := slices.IndexFunc(rules, func(rule Rule) bool { return rule.ID == f.Rule })
		if at < 0 {
			at, rules = len(rules), append(rules, RuleOf(f.Rule))
		}
		if f.File == "" {
			continue
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: at, Level: f.Level, Message: sarifText{f.About()},
			Locations: []sarifLocation{r.location(f)}, Fingerprints: r.fingerprint(f, seen),
		})
	}
	run.Tool.Driver = sarifDriver{Name: "tegen", Version: r.Version, InformationURI: home}
	for _, rule := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.ID, Short: sarifText{rule.Meaning}, Full: sarifText{rule.Meaning}, Help: sarifText{rule.Remedy},
			HelpURI: home + "/blob/main/docs/findings.md",
		})
	}
	return sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	}
}

// location is one character, since where a value ends is not known; of a file without a line it is the first.
func (r Report) location(f Finding) sarifLocation {
	line, column := max(f.Line, 1), max(f.Column, 1)
	l := sarifLocation{Physical: sarifPhysical{
		sarifArtifact{r.uri(f.File)}, sarifRegion{line, column, line, column + 1},
	}}
	if name := strings.TrimSpace(f.Object + " " + f.Field); name != "" {
		l.Logical = []sarifLogical{{name}}
	}
	return l
}

// uri is a relative URI reference, or a file's URI where the file is not below the root.
func (r Report) uri(file string) string {
	name := r.path(file)
	switch {
	case path.IsAbs(name):
		return (&url.URL{Scheme: "file", Path: name}).String()
	case len(name) > 2 && name[1:3] == ":/": // a drive of Windows
		return (&url.URL{Scheme: "file", Path: "/" + name}).String()
	}
	return (&url.URL{Path: name}).String()
}

// fingerprint is the same wherever in its file the finding is, so that an alert stays the same while lines move. The
// number tells apart what is equal in one file, as code scanning asks for.
func (r Report) fingerprint(f Finding, seen map[string]int) map[string]string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q", []string{f.Rule, r.path(f.File), f.Object, f.Field}) // a hash takes any bytes
	sum := fmt.Sprintf("%016x", h.Sum64())
	seen[sum]++
	return map[string]string{"primaryLocationLineHash": fmt.Sprintf("%s:%d", sum, seen[sum])}
}
