package schema

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// fieldAt is the schema of a field of spec; a list is entered.
func fieldAt(t *testing.T, path ...string) *structural.Schema {
	t.Helper()
	s := definition.Job().Field("spec").Schema
	for _, name := range path {
		f := s.Field(name)
		if f == nil {
			t.Fatalf("%q has no field %s", path, name)
		}
		if s = f.Schema; s.Elem != nil && !s.Elem.IsScalar() {
			s = s.Elem
		}
	}
	return s
}

// TestReservedNames holds the names in refusals.cue against those that Go uses.
func TestReservedNames(t *testing.T) {
	group := fieldAt(t, "groups", "name")
	for _, name := range fieldAt(t, "roles").Names() {
		if !rule.ReservedGroup(name) {
			t.Errorf("a group may have the name of the role %s", name)
		}
	}
	if group.Refusal(job.RoleWorker) != "reserved" || rule.ReservedGroup(job.RoleWorker) ||
		rule.ReservedGroup("driver") {
		t.Error("worker is the name of the workers' group, and driver is free")
	}
	claims := fieldAt(t, "resources", "claims").Elem
	if claims.Refusal(job.ClaimOfAccelerators) != "reserved" || claims.Refusal("channel") != "" {
		t.Errorf("%s is the claim of the accelerators", job.ClaimOfAccelerators)
	}
	if fieldAt(t, "storage", "name").Refusal(job.VolumeTmp) != "reserved" {
		t.Errorf("%s is the name of a volume of tegen's", job.VolumeTmp)
	}
	for _, plugin := range job.VolcanoPluginTable {
		argument := fieldAt(t, "volcano", "plugins", plugin.Name).Elem
		for _, role := range plugin.Roles {
			if word := "--" + role.Flag + "=trainer"; !argument.Allows(word) {
				t.Errorf("plugin %s takes %s, which is refused as %q", plugin.Name, word, argument.Refusal(word))
			}
		}
	}
}

// TestRefusals: the patterns of refusals.cue refuse what they name, in every spelling, and nothing that is like it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		s                 *structural.Schema
		by                string
		refused, accepted []string
	}{
		{
			fieldAt(t, "storage", "mountPath"), "reserved",
			[]string{
				"/", "/.", "/dev", "/dev/", "/dev/./shm", "/dev/shm/.", "/./tmp", "/proc", "/sys/", "/tegen",
				"/tegen/data", "/./tegen/data",
			},
			[]string{"/dev/shm2", "/dev2", "/data/tmp", "/tegenx", "/tmp/data", "/proc/x", "/.tmp"},
		},
		{
			fieldAt(t, "code", "git", "ref"), "format",
			[]string{"7fd1a60b", "abcdef0", "1234567"},
			[]string{"7fd1a6", "effaced", "v1.2.3", "0123456789abcdef0123456789abcdef01234567"},
		},
		{
			fieldAt(t, "rendezvous", "endpoint"), "range",
			[]string{"a:0", "a:65536", "a:99999", "a:00000"},
			[]string{"a:1", "a:65535", "a:00080", "a:9999", "a:59999"},
		},
		{
			fieldAt(t, "script", "s3"), "format",
			[]string{"s3://bucket/a/..", "s3://bucket/a/.?x=y"},
			[]string{"s3://bucket/a/..b", "s3://bucket/a/b.", "s3://bucket/../b"},
		},
		{
			fieldAt(t, "mpi", "options").Elem, "reserved",
			[]string{"-np", "--np=4", "-H", "--allow-run-as-root", "-prefix"},
			[]string{"-npernode", "np", "4", "--bind-to", "-hosts2"},
		},
		{
			fieldAt(t, "volcano", "plugins", "pytorch").Elem, "format",
			[]string{"--master", "-port="},
			[]string{"--wait-master-enabled", "-master=a", "--wait-master-timeout=1m"},
		},
		{
			fieldAt(t, "volcano", "plugins", "ray").Elem, "range",
			[]string{"--port=0", "-dashboardPort=ray"},
			[]string{"--port=8265", "--head=0"},
		},
		{fieldAt(t, "volcano", "plugins", "ssh").Elem, "requires", []string{"--ssh-private-key=a"}, nil},
		{fieldAt(t, "volcano", "plugins", "mpi").Elem, "unknown", []string{"master", "--ranks=4", "=4"}, nil},
	} {
		for _, text := range c.refused {
			if by := c.s.Refusal(text); by != c.by {
				t.Errorf("%q is refused as %q, want %q", text, by, c.by)
			}
		}
		for _, text := range c.accepted {
			if !c.s.Allows(text) {
				t.Errorf("%q is refused as %q", text, c.s.Refusal(text))
			}
		}
	}
	labels, devices := definition.Job().Field("metadata").Schema.Field("labels").Schema, fieldAt(t, "resources",
		"devices")
	for key, want := range map[string]string{
		"worker": "reserved", "workers": "", "app.kubernetes.io/name": "reserved", "app.kubernetes.iox/name": "",
		"tegen.dev/x": "reserved", "not/a/key": "",
	} {
		if by := labels.KeyRefusal(key); by != want {
			t.Errorf("label %q is refused as %q, want %q", key, by, want)
		}
	}
	for key, want := range map[string]string{
		"hugepages-2Mi": "", "hugepages-big": "format", "hugepages-0Mi": "format", "rdma/ib": "", "efa": "format",
		"requests.cpu/x": "format", "kubernetes.io/x": "format", "a.kubernetes.io/x": "format", "kubernetes.io.a/x": "",
	} {
		if by := devices.KeyRefusal(key); by != want {
			t.Errorf("device %q is refused as %q, want %q", key, by, want)
		}
	}
}
