package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestEnvironmentOfOthers: what an environment says to jobs of another framework neither reaches a job nor breaks it.
func TestEnvironmentOfOthers(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\n" +
		"spec:\n  defaults: {rendezvous: {backend: etcd, store: etcd}, servers: {replicas: 7}}\n  overrides: " +
		"{network: {collective: gloo, interface: eth1}}\n"
	text := strings.Replace(small("a"), "workers:", "framework: mxnet\n  workers:", 1)
	jobs, errs := load(t, text, env)
	if errs != nil {
		t.Fatal(errs)
	}
	s := jobs[0].Spec
	if s.Rendezvous.Store != job.StoreWorker || s.Network.Collective != "" {
		t.Errorf("of torchelastic: store %q, collective %q", s.Rendezvous.Store, s.Network.Collective)
	}
	if s.Servers.Replicas != 7 || s.Network.Interface != "eth1" {
		t.Errorf("of its own: %d servers, interface %q", s.Servers.Replicas, s.Network.Interface)
	}
	jobs, errs = load(t, small("a"), env)
	if errs != nil {
		t.Fatal(errs)
	}
	if s := jobs[0].Spec; s.Rendezvous.Store != job.StoreEtcd || s.Network.Collective != "gloo" {
		t.Errorf("torchelastic lacks what is said to it: %+v", s.Rendezvous)
	}
	if _, errs = load(t, strings.Replace(text, "workers:", "rendezvous: {maxRestarts: 7}\n  workers:", 1),
		env); len(errs) != 1 {
		t.Errorf("what the author says of another framework: %v", errs)
	}
}

// TestDefaultsOfTargets: defaults that a target cannot carry do not keep it from a job; overrides and authors still do.
func TestDefaultsOfTargets(t *testing.T) {
	const says = "{ttlAfterFinished: 24h, failure: {restarts: 3}, placement: {priorityClass: high}, gracePeriod: 1m}"
	environment := func(part string) string {
		return "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {" + part + ": " + says +
			"}\n"
	}
	for _, of := range []string{
		"target: pods", "target: trainjob", "framework: dlrover\n  target: elasticjob",
		"framework: mxnet\n  target: mxjob", "framework: mxnet\n  target: mxjob-mlkube",
	} {
		text := strings.Replace(small("a"), "workers:", of+"\n  workers:", 1)
		if _, errs := load(t, text, environment("defaults")); errs != nil {
			t.Errorf("%s, defaults: %v", of, errs)
		}
		if _, errs := load(t, text, environment("overrides")); errs == nil {
			t.Errorf("%s drops overrides", of)
		}
	}
	jobs, errs := load(t, strings.Replace(small("a"), "workers:", "target: pods\n  workers:", 1),
		environment("defaults"))
	if errs != nil {
		t.Fatal(errs)
	}
	if s := jobs[0].Spec; s.Placement.PriorityClass != "high" || s.GracePeriod.Minutes() != 1 {
		t.Errorf("what bare pods can carry: %+v, %s", s.Placement, s.GracePeriod.Duration)
	}
	if _, errs = load(t, strings.Replace(small("a"), "workers:", "target: pods\n  ttlAfterFinished: 1h\n  workers:", 1),
		environment("defaults")); len(errs) != 1 {
		t.Errorf("what an author says: %v", errs)
	}
}
