package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
)

func TestExplain(t *testing.T) {
	at, below, err := Explain(names.KindTrainingJob, "spec.storage")
	if err != nil {
		t.Fatal(err)
	}
	if at.Doc == "" || !strings.HasPrefix(at.Type, "a list of mappings with at most one of claim") {
		t.Errorf("spec.storage: %+v", at)
	}
	found := map[string]Field{}
	for _, f := range below {
		found[f.Path] = f
	}
	if f := found["spec.storage.mountPath"]; !f.Required || !strings.Contains(f.Type, "absolute path") {
		t.Errorf("a required field of an item: %+v", f)
	}
	if f := found["spec.storage.name"]; f.Default != "data" {
		t.Errorf("a literal default: %+v", f)
	}
	if f, _, err := Explain(names.KindTrainingJob, "spec.workers.min"); err != nil || f.Default != "as spec.workers.replicas" {
		t.Errorf("a default that follows another field: %+v, %v", f, err)
	}
	if _, _, err := Explain(names.KindTrainingJob, "spec.rendezvos.port"); err == nil || !strings.Contains(err.Error(), `did you mean "rendezvous"?`) {
		t.Errorf("a misspelt path: %v", err)
	}
	if _, _, err := Explain(names.KindEnvironment, "spec.overrides.workers"); err != nil {
		t.Errorf("a path of an environment: %v", err)
	}
}

// TestDocumented: every field of a job has its sentence, unless its name is all that there is to say.
func TestDocumented(t *testing.T) {
	named := map[string]bool{}
	for _, name := range strings.Fields("apiVersion kind metadata spec name key value optional cpu memory size claim volume path server fileSystem accessPoint " +
		"storageClass accessMode medium subPath readOnly configMap role serviceAccount dnsName mountName subnet securityGroups deploymentType directoryPerms " +
		"basePath gidRangeStart gidRangeEnd provision operator effect scheduler priorityClass runtimeClass nodeSelector tolerations storage shm ephemeralStorage " +
		"runAsUser runAsGroup labels annotations") {
		named[name] = true
	}
	for _, path := range Paths(names.KindTrainingJob) {
		f, _, err := Explain(names.KindTrainingJob, path)
		if err != nil {
			t.Fatal(err)
		}
		if name := path[strings.LastIndex(path, ".")+1:]; f.Doc == "" && !named[name] && !strings.Contains(path, "podTemplate.") {
			t.Errorf("%s has no sentence in job.cue", path)
		}
	}
}
