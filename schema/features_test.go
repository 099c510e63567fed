package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

// everywhere are leaves that no feature is about, and why every target carries them.
var everywhere = []struct{ leaves, why string }{
	{"framework target kubernetesVersion", "it says what to render, and for which cluster"},
	{
		"image imagePullPolicy imagePullSecrets command args workers.processes disruption.safeToEvict " +
			"security.restricted security.fsGroup security.runAsUser security.readOnlyRootFilesystem " +
			"resources.cpu resources.memory resources.ephemeralStorage resources.gpu resources.gpuResource " +
			"resources.shm resources.tmp",
		"every pod has it",
	},
	{"workers.after.group workers.after.when", "groups.after speaks for it"},
	{"workers.replicas workers.max", "every job has workers; workers.min speaks for elastic ones"},
	{
		"gang.name gang.minAvailable gang.priority gang.mode gang.groups gang.waitTimeout gang.matchPolicy gang.queue",
		"Dialects says which gang has it",
	},
	{
		"images.aws images.etcd images.etcdV2 images.fetch images.git images.kubectl images.rendezvous script.fetch " +
			"placement.provisioner",
		"it is for what another field asks for",
	},
	{"code.mountPath", "code.git and code.image speak for it"},
	{
		"createNamespace gitops disruption.budget network.policy network.clusterDomain",
		"it is for objects beside what the target makes",
	},
}

// TestFeaturesAreWhole: every leaf of the spec is some feature's or stands in everywhere, and what a target lacks is a
// feature. Else nothing would hold a target to a field, nor refuse it.
func TestFeaturesAreWhole(t *testing.T) {
	excused := map[string]bool{}
	for _, e := range everywhere {
		for leaf := range strings.FieldsSeq(e.leaves) {
			excused[leaf] = true
		}
	}
	for _, path := range Paths(names.KindTrainingJob) {
		_, below, err := Explain(names.KindTrainingJob, path)
		if err != nil {
			t.Fatal(err)
		}
		leaf, inSpec := strings.CutPrefix(path, "spec.")
		if !inSpec || len(below) > 0 {
			continue
		}
		if featured(leaf) == excused[leaf] {
			t.Errorf("%s must either be a feature's or stand in everywhere", leaf)
		}
		delete(excused, leaf)
	}
	for leaf := range excused {
		t.Errorf("everywhere has %s, which is no leaf", leaf)
	}
	for _, tgt := range append(slices.Clone(target.All), target.BytePSJob, target.MxnetLocalJob) {
		for lacked := range tgt.Lacks {
			if !slices.ContainsFunc(target.Features, func(f target.Feature) bool { return f.Name == lacked }) {
				t.Errorf("%s/%s lacks %s, which is no feature: it is not refused", tgt.Framework, tgt.Name,
					lacked)
			}
		}
	}
}

// featured says whether some feature is used where a leaf is written, or has its name where the value decides.
func featured(leaf string) bool {
	text := "spec: {" + strings.ReplaceAll(leaf, ".", ": {") + ": x" + strings.Repeat("}", strings.Count(leaf, ".")+1)
	docs, _ := structural.Split(Source{Name: "leaf", Data: []byte(text)})
	u := &target.Used{Tree: part.NewTree(structural.Parse(docs[0]).Root, nil)}
	return slices.ContainsFunc(target.Features, func(f target.Feature) bool {
		field, _, _ := strings.Cut(f.Name, "=")
		f.Used.Call(u, &job.Job{})
		return field == leaf || len(u.Paths) > 0
	})
}
