package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestHashedRemedy: an object that has a hashed name, and changed under it, is not advised to have one.
func TestHashedRemedy(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a-worker-0badcafe, namespace: ml, ANNOTATIONS}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: w, image: IMAGE}]}}}\n"
	const set = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a-0badcafe, namespace: ml, " +
		"ANNOTATIONS}\nspec: {replicatedJobs: [{name: worker, template: {spec: {template: {spec: {containers: " +
		"[{name: " +
		"w, image: IMAGE}]}}}}}]}\n"
	const hashed = `annotations: {tegen.dev/content-hash: "0badcafe"}`
	for _, c := range []struct{ object, annotations, remedy string }{
		{job, "", newName},
		{job, hashed, hashKept},
		{set, "", anewByHand},
		{set, hashed, hashKept},
	} {
		read := func(image string) []map[string]any {
			var object map[string]any
			text := strings.NewReplacer("ANNOTATIONS", c.annotations, "IMAGE", image).Replace(c.object)
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			return []map[string]any{object}
		}
		r, err := Compare(read("train:1"), read("train:2"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Worst != Refused {
			t.Fatalf("%s: the change is %s", c.object, r.Worst)
		}
		if diff := cmp.Diff(c.remedy, r.Jobs[0].Changes[0].Remedy); diff != "" {
			t.Errorf("%s, %q (-want +got):\n%s", c.object, c.annotations, diff)
		}
	}
}
