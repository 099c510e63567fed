package schema

import (
	"strings"
	"testing"
)

// TestEnvironmentOfOthers: what an environment says to jobs of another framework neither reaches a job nor breaks it.
func TestEnvironmentOfOthers(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\n" +
		"spec:\n  defaults: {rendezvous: {backend: etcd, store: etcd}, servers: {replicas: 7}}\n  overrides: {network: {collective: gloo, interface: eth1}}\n"
	text := strings.Replace(job("a"), "workers:", "framework: mxnet\n  workers:", 1)
	jobs, errs := load(t, text, env)
	if errs != nil {
		t.Fatal(errs)
	}
	s := jobs[0].Spec
	if s.Rendezvous.Store != StoreWorker || s.Network.Collective != "" {
		t.Errorf("of torchelastic: store %q, collective %q", s.Rendezvous.Store, s.Network.Collective)
	}
	if s.Servers.Replicas != 7 || s.Network.Interface != "eth1" {
		t.Errorf("of its own: %d servers, interface %q", s.Servers.Replicas, s.Network.Interface)
	}
	jobs, errs = load(t, job("a"), env)
	if errs != nil {
		t.Fatal(errs)
	}
	if s := jobs[0].Spec; s.Rendezvous.Store != StoreEtcd || s.Network.Collective != "gloo" {
		t.Errorf("torchelastic lacks what is said to it: %+v", s.Rendezvous)
	}
	if _, errs = load(t, strings.Replace(text, "workers:", "rendezvous: {maxRestarts: 7}\n  workers:", 1), env); len(errs) != 1 {
		t.Errorf("what the author says of another framework: %v", errs)
	}
}
