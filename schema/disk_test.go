package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestStoreDisks: a store has the disk that it fills, and where somebody says less, the error names what else to lower.
func TestStoreDisks(t *testing.T) {
	const companion = "images: {rendezvous: 'r:1'}, rendezvous: {store: companion, backend: etcd%s}, roles: " +
		"{companion: {resources: "
	const etcd = "rendezvous: {backend: etcd, store: etcd}, roles: {etcd: {resources: "
	for spec, want := range map[string]string{
		etcd + "{ephemeralStorage: 500Mi}}}":           "500Mi is below 3Gi",
		etcd + "{limits: {ephemeralStorage: 500Mi}}}}": "500Mi is below 3Gi",
		"rendezvous: {backend: etcd, store: etcd, etcd: {quota: 1Gi}}, roles: {etcd: {resources: {ephemeralStorage: " +
			"2Gi}}}": "",
		"rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: 2Gi}}}, roles: {etcd: {resources: " +
			"{ephemeralStorage: 500Mi}}}": "",
		"rendezvous: {backend: etcd, store: etcd}, roles: {etcd: {resources: {ephemeralStorage: none}}}": "",
		strings.Replace(companion, "%s", "", 1) +
			"{ephemeralStorage: 500Mi}}}": "500Mi is below 1Gi",
		strings.Replace(companion, "%s", "", 1) +
			"{ephemeralStorage: 1Gi, memory: 2Gi}}}": "1Gi is below 4Gi",
		strings.Replace(companion, "%s", "", 1) +
			"{ephemeralStorage: 1Gi, memory: none}}}": "",
		strings.Replace(companion, "%s", ", companion: {storage: {size: 1Gi}}", 1) +
			"{ephemeralStorage: 500Mi}}}": "",
		strings.Replace(companion, "%s", ", companion: {etcd: {endpoints: [http://e:2379]}}", 1) +
			"{ephemeralStorage: 500Mi}}}": "",
		strings.Replace(companion, "backend: etcd%s", "backend: c10d", 1) +
			"{ephemeralStorage: 500Mi}}}": "",
		strings.Replace(companion, "%s", "", 1) +
			"{ephemeralStorage: 1Gi, requests: {memory: 4Gi}}}}": "1Gi is below 8Gi",
	} {
		_, errs := load(t, jobHead+"workers: {replicas: 2}, "+spec+"}\n")
		if (want == "") != (errs == nil) || errs != nil && !strings.Contains(errs.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, errs, want)
		}
	}
}

func TestUsualCompanionMemory(t *testing.T) {
	usual := definition.Job().Field("spec").Schema
	for _, name := range []string{"roles", job.RoleCompanion, "resources", "memory"} {
		field := usual.Field(name)
		if name == "memory" {
			if got := field.Value.Text; got != job.UsualCompanionMemory {
				t.Errorf("defaults.cue has %s, and UsualCompanionMemory is %s", got, job.UsualCompanionMemory)
			}
			return
		}
		usual = field.Schema
	}
}
