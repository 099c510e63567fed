package admission

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/test/cases"
)

// TestTemplates: the paths that follow from the Go types are those where workloads say that their templates are, for
// every rendered object.
func TestTemplates(t *testing.T) {
	paths := map[string][]string{} // by apiVersion and kind
	for _, at := range allTemplates() {
		apiVersion, kind := at.gvk.ToAPIVersionAndKind()
		paths[apiVersion+" "+kind] = append(paths[apiVersion+" "+kind], strings.Join(at.path, "."))
	}
	files, err := cases.Write("../..", t.TempDir())
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := manifest.Read(file, text)
		if err != nil {
			continue // an installation
		}
		for _, o := range objects {
			gvk, err := manifest.GVK(o)
			w := apis.WorkloadOf(o)
			if err != nil || w == nil {
				continue
			}
			apiVersion, kind := gvk.ToAPIVersionAndKind()
			key := apiVersion + " " + kind
			seen[key] = seen[key] || len(w.PodSets()) > 0
			for _, set := range w.PodSets() {
				if set.Path != "metadata" && !matches(paths[key], set.Path) {
					t.Errorf("%s: %s has pods at %q, the policy looks at %q", file, key, set.Path, paths[key])
				}
			}
		}
	}
	for _, key := range []string{
		"v1 Pod", "batch/v1 Job", "jobset.x-k8s.io/v1alpha2 JobSet", "batch.volcano.sh/v1alpha1 Job",
	} {
		if !seen[key] {
			t.Errorf("no rendered object is a %s", key)
		}
	}
}

// matches reports whether one of the patterns, such as a[].b or a.*.b, is a path's.
func matches(patterns []string, path string) bool {
	steps := strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
	for _, pattern := range patterns {
		want := strings.Split(pattern, ".")
		ok := len(want) == len(steps)
		for i := 0; ok && i < len(want); i++ {
			ok = want[i] == steps[i] || want[i] == "*" || want[i] == "[]" && strings.HasPrefix(steps[i], "[")
		}
		if ok {
			return true
		}
	}
	return false
}

// TestPodKinds: every kind of workload is matched by the exported policy.
func TestPodKinds(t *testing.T) {
	matched := map[string]bool{}
	for _, r := range podKinds() {
		matched[r.GroupVersion().String()+" "+r.Resource] = true
	}
	for _, k := range apis.Kinds {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.GroupVersionKind)
		if apis.WorkloadOf(u) == nil || k.Kind == "TrainJob" || len(templatesIn(k.Type(), nil)) == 0 {
			continue
		}
		if r := resourceOf(k.GroupVersionKind); !matched[r.GroupVersion().String()+" "+r.Resource] {
			t.Errorf("%s is not matched", k.GroupVersionKind)
		}
	}
	for _, want := range []string{
		"v1 pods", "apps/v1 deployments", "apps/v1 statefulsets", "apps/v1 daemonsets", "apps/v1 replicasets",
		"batch/v1 jobs", "batch/v1 cronjobs", "kubeflow.org/v2beta1 mpijobs",
		"elastic.iml.github.io/v1alpha1 elasticjobs",
	} {
		if !matched[want] {
			t.Errorf("%s is not matched", want)
		}
	}
}

// TestNotes: a rule is named exactly if what the cluster writes can change its verdict.
func TestNotes(t *testing.T) {
	for text, want := range map[string]string{
		`pod: spec: hostNetwork?: false`:                            "",
		`pod: spec: nodeName?: _|_`:                                 "",
		`pod: spec: dnsPolicy?: "None"`:                             "spec.dnsPolicy",
		`pod: spec: dnsPolicy?: "None" | "ClusterFirst"`:            "",
		`pod: spec: dnsPolicy!: "ClusterFirst"`:                     "spec.dnsPolicy",
		`pod: spec: schedulerName?: _|_`:                            "spec.schedulerName",
		`pod: spec: containers: [...{imagePullPolicy!: "Always"}]`:  "spec.containers[].imagePullPolicy",
		`pod: spec: volumes?: [...{hostPath?: _|_}]`:                "",
		`pod: spec: volumes?: [...{emptyDir!: {}}]`:                 "spec.volumes spec.volumes[].emptyDir",
		`pod: spec: tolerations?: _|_`:                              "spec.tolerations",
		`pod: metadata: labels: team!: string`:                      "",
		`pod: metadata: labels: close({team!: string})`:             "metadata.labels",
		`pod: metadata: labels: {[string]: =~"^[a-z]+$"}`:           "metadata.labels",
		`pod: metadata: name?: =~"^a"`:                              "metadata.name",
		`pod: spec: {hostPID?: false} | {schedulerName!: string}`:   "spec.schedulerName",
		`pod: spec: containers: [...{resources: limits: cpu!: <4}]`: "",
		`object: Service: spec: type?: !="LoadBalancer"`:            "",
		`object: Service: spec: type!: "ClusterIP"`:                 "spec.type",
		`object: "Job.batch": spec: backoffLimit?: <3`:              "spec.backoffLimit",
	} {
		p, err := policy.Load([]policy.Source{{Name: "a.cue", Text: []byte(text)}}, render.PolicyTypes())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, n := range Notes(p) {
			name, _, _ := strings.Cut(n.Message, ": ")
			root := "pod."
			if strings.HasPrefix(name, "object.") {
				root = name[:strings.LastIndex(name[:strings.Index(name, "spec")], ".")+1]
			}
			got = append(got, strings.TrimPrefix(name, root))
			if n.File != "a.cue" || n.Line != 1 {
				t.Errorf("%s: the note is at %s:%d", text, n.File, n.Line)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: notes about %s, want %s", text, strconv.Quote(strings.Join(got, " ")), strconv.Quote(want))
		}
	}
}

// TestTable decodes every value of the table.
func TestTable(t *testing.T) {
	tables := []map[string]string{podsServed()}
	for _, fields := range servedInObjects {
		tables = append(tables, fields)
	}
	for _, fields := range tables {
		for path, value := range fields {
			if s := servedOf(path, value); s.Value == nil && strings.Trim(value, "+") != "" {
				t.Errorf("%s: no value of %s", path, value)
			}
		}
	}
}

// TestLimits: what an API server would refuse is refused before, since its binding would be there without it.
func TestLimits(t *testing.T) {
	image := strings.Repeat("a", 2_000)
	large := strings.Repeat("\timage!: !=\""+image+"\"\n", 100)
	long := `image!: "` + strings.Join(slices.Repeat([]string{image}, 30), `" | "`) + `"`
	for text, want := range map[string]string{
		"pod: spec: {containers: [..._c], initContainers?: [..._c]}\n_c: {\n" + large + "}": "limit is 700000: split",
		"pod: spec: containers: [...{" + long + "}]":                                        "a.cue:1:",
	} {
		p, err := policy.Load([]policy.Source{{Name: "a.cue", Text: []byte(text)}}, render.PolicyTypes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Export(p, Options{Name: "a"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
