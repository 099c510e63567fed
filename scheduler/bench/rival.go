package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// rival is a scheduler that somebody else made and built.
type rival struct {
	name    string
	program string // a path
	config  string // a path: a KubeSchedulerConfiguration, or what vc-scheduler calls --scheduler-conf
	dialect string
}

// parseRival reads NAME=PROGRAM,CONFIG,DIALECT and looks whether the files are there: a bench that has run for minutes
// is a bad place to learn that one is not.
func parseRival(text string, others []rival) (rival, error) {
	name, rest, _ := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	if len(parts) != 3 {
		return rival{}, fmt.Errorf("%q is not NAME=PROGRAM,CONFIG,DIALECT", text)
	}
	r := rival{name: name, program: parts[0], config: parts[1], dialect: parts[2]}
	_, known := dialects[r.dialect]
	switch {
	case name == "" || strings.ContainsAny(name, "/|\n"):
		return r, fmt.Errorf("%q is no name for a table and a file", name)
	case slices.Contains(ownNames, name) || slices.ContainsFunc(others, func(o rival) bool { return o.name == name }):
		return r, fmt.Errorf("there are two of the name %q", name)
	case !known:
		return r, fmt.Errorf("%s: dialect %q is unknown; known are %s", name, r.dialect,
			strings.Join(slices.Sorted(maps.Keys(dialects)), ", "))
	}
	info, err := os.Stat(r.program)
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: looking for its program: %w", name, err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return r, fmt.Errorf("%s: %s is not a program", name, r.program)
	}
	config, err := os.ReadFile(r.config)
	if err != nil {
		return r, fmt.Errorf("%s: reading its configuration: %w", name, err)
	}
	if r.dialect != volcanoDialect {
		if _, _, err := configured(string(config), ""); err != nil {
			return r, fmt.Errorf("%s: %s: %w", name, r.config, err)
		}
	}
	return r, nil
}

// configured is a KubeSchedulerConfiguration with the election and the client of the bench, and the name that its first
// profile answers to. Nothing else is changed.
func configured(text, kubeconfig string) (config, profile string, err error) {
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return "", "", err
	}
	if all["kind"] != "KubeSchedulerConfiguration" {
		return "", "", fmt.Errorf("kind is %v, not KubeSchedulerConfiguration", all["kind"])
	}
	profile = "default-scheduler"
	if profiles, ok := all["profiles"].([]any); ok && len(profiles) > 0 {
		first, ok := profiles[0].(map[string]any)
		if !ok {
			return "", "", errors.New("the first of its profiles is not a map")
		}
		if name, ok := first["schedulerName"].(string); ok {
			profile = name
		}
	}
	// An election that lasts longer than a trial. A waiting scheduler asks for the Lease every 500 ms.
	all["leaderElection"] = map[string]any{
		"leaderElect": true, "leaseDuration": leaseDuration, "renewDeadline": renewDeadline, "retryPeriod": retryPeriod,
		"resourceLock": "leases", "resourceName": lease, "resourceNamespace": namespace,
	}
	// Rates that nothing here reaches: it is not the limiter that is measured.
	all["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": clientRate, "burst": 2 * clientRate}
	out, err := yaml.Marshal(all)
	return string(out), profile, err
}
