package importer_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// prepared is a set of Jobs that wait for each other.
const prepared = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j}
spec:
  replicatedJobs:
  - name: fetch
    template: {spec: {template: {spec: {containers: [{name: c, image: "a/b:1", command: [python, fetch.py]}]}}}}
  - name: launcher
    dependsOn: [{name: fetch, status: Complete}]
    template: {spec: {template: {spec: {containers: [{name: c, image: "a/b:1", command: [python, launch.py]}]}}}}
  - name: worker
    dependsOn: [{name: launcher, status: Ready}]
    template:
      spec:
        parallelism: 4
        completions: 4
        template: {spec: {containers: [{name: c, image: "a/b:1", command: [python, train.py]}]}}
`

// TestFlaws: where the author must mend something, this alone is told of, and nothing else is called lost.
func TestFlaws(t *testing.T) {
	const four = "        parallelism: 4"
	t.Parallel()
	groups := []string{`- python\n *- fetch\.py`, `- group: fetch`, `- group: launcher-0`}
	for name, c := range map[string]claim{
		"no flaw": {in: prepared, unreported: []string{"dropped", "refused", "error"}, jobs: groups},
		"images without a tag": {
			in: strings.ReplaceAll(prepared, "a/b:1", "busybox"),
			reported: []string{
				`replicatedJobs\[0\].*image: "busybox": refused: spec\.groups\[0\]\.image: must be an image with a tag`,
				`replicatedJobs\[1\].*image: "busybox": refused: spec\.groups\[1\]\.image`,
				`replicatedJobs\[2\].*image: "busybox": refused: spec\.image`,
			},
			unreported: []string{"dropped", "no group"}, jobs: groups, invalid: true,
		},
		"images to be filled in": {
			in:         strings.ReplaceAll(prepared, "a/b:1", "$IMAGE"),
			reported:   []string{`replicatedJobs\[0\].*image: "\$IMAGE": error: .* or into spec\.groups\[0\]\.image`},
			unreported: []string{"dropped", "refused", "no group"}, jobs: groups, invalid: true,
		},
		"an amount of a group that is none": {
			in: strings.Replace(prepared, `command: [python, fetch.py]`,
				`resources: {limits: {cpu: much}}, command: [python, fetch.py]`, 1),
			reported:   []string{`limits\.cpu: "much": refused: spec\.groups\[0\]\.resources\.cpu: must be`},
			unreported: []string{"dropped", "no group"}, jobs: groups, invalid: true,
		},
		"no image at all": {
			in:         strings.ReplaceAll(prepared, `image: "a/b:1", `, ""),
			reported:   []string{`refused: spec\.image: required`},
			unreported: []string{"dropped", "no group"}, jobs: groups, invalid: true,
		},
		"a name that an API server makes": {
			in: strings.Replace(prepared, "metadata: {name: j}\nspec:",
				"metadata: {generateName: j-}\nspec:\n  network: {subdomain: pods}", 1),
			reported: []string{
				`JobSet j: metadata\.generateName: "j-": changed: .*change metadata\.name to run it again`,
				`subdomain: "pods": translated: the Service of the set is called j,`,
			},
			unreported: []string{"dropped", "refused"}, jobs: append([]string{`\n  name: j\n`}, groups...), lossy: true,
		},
		"numbers that are none": {
			in: numbered("__N__", "1.5"),
			reported: []string{
				`parallelism: "__N__": error: a placeholder .* or into spec\.workers\.replicas of the job`,
				`completions: "__N__": error: a placeholder`,
				`activeDeadlineSeconds: 1.5: error: must be a whole number: put one in its place`,
			},
			unreported: []string{"tegen renders [0-9]", "no field"}, jobs: []string{`replicas: __N__`},
			invalid: true, lossy: true, // its name
		},
		"a word and a truth in their places": {
			in: numbered("NUM_NODES", "false"),
			reported: []string{
				`parallelism: "NUM_NODES": error: must be .*, or into spec\.workers\.replicas of the job`,
				`completions: "NUM_NODES": error: must be a whole number`, `activeDeadlineSeconds: false: error`,
			},
			unreported: []string{"tegen renders [0-9]", "no field"}, jobs: []string{`replicas: NUM_NODES`},
			invalid: true, lossy: true,
		},
		"a key that stands twice": {
			in:       strings.Replace(prepared, four, "        parallelism: 2\n"+four, 1),
			reported: []string{`parallelism: error: the key stands twice .* leave one of them`},
			jobs:     []string{`replicas: 4`}, unreported: []string{"dropped"}, invalid: true,
		},
		"a key that says the same twice": {
			in:       strings.Replace(prepared, four, four+"\n"+four, 1),
			reported: []string{`parallelism: warning: the key stands twice .* both say the same`},
			jobs:     []string{`replicas: 4`}, unreported: []string{"dropped", "error"},
		},
		"a deadline of bare pods": {
			in: "apiVersion: v1\nkind: Pod\nmetadata: {name: j-worker-0}\nspec: {activeDeadlineSeconds: soon, " +
				"restartPolicy: OnFailure, containers: [{name: worker, image: 'a/b:1', command: [torchrun, t.py]}]}\n",
			reported:   []string{`activeDeadlineSeconds: "soon": error: must be a whole number`},
			unreported: []string{"set by tegen"}, invalid: true,
		},
	} {
		t.Run(name, c.check)
	}
}

// numbered is a Job with something in the place of its numbers.
func numbered(pods, deadline string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, completions: " +
		pods + ", parallelism: " + pods + ", activeDeadlineSeconds: " + deadline + ", template: {spec: " +
		"{restartPolicy: Never, " +
		"containers: [{name: c, image: 'a/b:1', command: [torchrun, t.py]}]}}}\n"
}

// TestNoNumbers puts a word in the place of every number that a controller goes by: each is an error at its line, and
// nothing that tegen renders instead is told of it.
func TestNoNumbers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	counted := regexp.MustCompile(`(?m)\b(replicas|parallelism|completions|numNodes|minReplicas|maxReplicas|` +
		`maxRestarts|backoffLimit|activeDeadlineSeconds|ttlSecondsAfterFinished|slotsPerWorker|maxRetry): *([0-9]+)\b`)
	tried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := drops(text)
		for _, at := range counted.FindAllSubmatchIndex(text, -1) {
			tried++
			found, out := drops(slices.Concat(text[:at[4]], []byte("four"), text[at[5]:]))
			wanted := regexp.MustCompile(fmt.Sprintf(`(?m)^in\.yaml:%d: .*%s: "four": error: must be a whole number`,
				1+bytes.Count(text[:at[4]], []byte("\n")), text[at[2]:at[3]]))
			if notes := lines(out.Notes); !out.Invalid || !wanted.MatchString(notes) {
				t.Errorf("%s: invalid %v, nothing like %s\n%s", file, out.Invalid, wanted, notes)
			}
			for line := range found {
				if !all[line] {
					t.Errorf("%s: four in the place of %s: a line says %s", file, text[at[2]:at[5]], line)
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d numbers tried", tried)
	}
}

// drops are the lines that tell of something dropped or changed.
func drops(text []byte) (map[string]bool, importer.Result) {
	out, all := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: text}}), map[string]bool{}
	for _, n := range out.Notes {
		if n.Verdict == importer.Dropped || n.Verdict == importer.Changed {
			all[n.String()] = true
		}
	}
	return all, out
}

// TestNoMaster: an XGBoostJob of workers alone is told what it lacks.
func TestNoMaster(t *testing.T) {
	t.Parallel()
	_, out := drops([]byte("apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: j}\nspec: " +
		"{xgbReplicaSpecs: {Worker: {template: {spec: {" + trainsBash + "}}}}}\n"))
	if notes := lines(out.Notes); out.Jobs != 0 || !strings.Contains(notes, "no spec.xgbReplicaSpecs.Master") {
		t.Errorf("%d jobs\n%s", out.Jobs, notes)
	}
}
