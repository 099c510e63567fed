package schema

import (
	"fmt"
	"slices"
)

// What a rule of failures says.
const (
	ThenFail                  = "fail"
	ThenRestart               = "restart"
	ThenRestartUncounted      = "restartUncounted"
	ThenRestartGroup          = "restartGroup"
	ThenRestartGroupUncounted = "restartGroupUncounted"
)

// FailureRule mirrors #FailureRule.
type FailureRule struct {
	Groups  []string `json:"groups,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	Then    string   `json:"then"`
}

// GroupFailure mirrors #GroupFailure.
type GroupFailure struct {
	Restarts          *Restarts `json:"restarts,omitempty"`
	FatalExitCodes    []int32   `json:"fatalExitCodes,omitempty"`
	IgnoreDisruptions *bool     `json:"ignoreDisruptions,omitempty"`
	InPlace           *bool     `json:"inPlace,omitempty"`
}

// restarts says whether a failure that a rule is about starts pods anew without being counted.
func (f FailureRule) restarts() bool {
	return f.Then == ThenRestartUncounted || f.Then == ThenRestartGroupUncounted
}

// FailureOf is what a failed pod of a component means: of a group what it says itself, and else what holds for all.
func (s *Spec) FailureOf(component string) *Failure {
	g := s.Group(component)
	if g == nil {
		return &s.Failure
	}
	f := s.Failure
	f.FatalExitCodes = nil // those of the workers' program
	own := g.Failure
	if own == nil {
		return &f
	}
	if own.Restarts != nil {
		f.Restarts, f.RestartsPerWorker = *own.Restarts, nil
	}
	if own.InPlace != nil {
		f.InPlace, f.IgnoreDisruptions = *own.InPlace, f.IgnoreDisruptions && !*own.InPlace
	}
	if own.IgnoreDisruptions != nil {
		f.IgnoreDisruptions = *own.IgnoreDisruptions
	}
	f.FatalExitCodes = own.FatalExitCodes
	return &f
}

// failing are the workers and the groups, of which each fails in its own way.
func (s *Spec) failing(does func(*Failure) bool) bool {
	return slices.ContainsFunc(append([]string{RoleWorker}, s.groupNames()...), func(name string) bool {
		return does(s.FailureOf(name))
	})
}

// RestartsOnDisruption says whether a disruption starts all pods anew.
func (s *Spec) RestartsOnDisruption() bool {
	return s.failing(func(f *Failure) bool { return f.IgnoreDisruptions && !f.ReplacesAlone() })
}

// HasFatalCodes says whether some exit code fails the job at once.
func (s *Spec) HasFatalCodes() bool {
	return s.failing(func(f *Failure) bool { return len(f.FatalExitCodes) > 0 })
}

// RuleDecides says whether rules of the author decide each failure for a reason, whatever the group that it befalls.
func (s *Spec) RuleDecides(reason string) bool {
	return !slices.ContainsFunc(append([]string{RoleWorker}, s.groupNames()...), func(name string) bool {
		one := FailureRule{Groups: []string{name}, Reasons: []string{reason}}
		return !slices.ContainsFunc(s.Failure.Rules, one.within)
	})
}

// failingAlone are the groups that fail otherwise than the workers.
func failingAlone(j *Written) (paths []string) {
	for i := range j.Spec.Groups {
		if j.Spec.Groups[i].Failure != nil {
			paths = append(paths, fmt.Sprintf("spec.groups[%d].failure", i))
		}
	}
	return paths
}
