package importer_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// TestHostile: whatever a manifest holds, import ends with notes and not with a panic.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, annotations := range map[string]string{
		"an empty key":          `{"": 1}`,
		"a key like an index":   `{"[0]": 1, "[": 2, "[]": 3, "]": 4}`,
		"a key that breaks":     `{"a\nb": 1, "a.b[c]": 2}`,
		"a key of dots":         `{".": 1, "..": 2}`,
		"values of other kinds": `{a: {"": 1}, b: ["", 1], c: null}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, place := range []string{"metadata: {name: x, annotations: %s}", "metadata: {name: x}\nextra: %s"} {
				text := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n" + fmt.Sprintf(place, annotations) + `
spec: {pytorchReplicaSpecs: {Worker: {template: {metadata: {annotations: ` + annotations + `}, spec: {nodeSelector: ` +
					annotations + `, containers: [{name: pytorch, image: "a/b:1", command: [torchrun, t.py]}]}}}}}
`
				out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
				if out.Jobs != 1 || len(out.Notes) == 0 {
					t.Errorf("%d jobs, %d notes: want one job, and a word about what is in it", out.Jobs,
						len(out.Notes))
				}
			}
		})
	}
}

// TestLongList: an object is refused, and not compared item by item, if a list has more items than a job may have.
func TestLongList(t *testing.T) {
	t.Parallel()
	var env strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&env, `{name: A%d, value: "$(A%d)x"},`, i, i-1)
	}
	text := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n" +
		strings.Replace(pytorchSpec("", ""), "containers: [{", "containers: [{env: ["+env.String()+"], ", 1)
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	const want = "env: error: has 50000 items, more than the limit of 2000 of a job: shorten the list"
	if out.Jobs != 0 || !strings.Contains(lines(out.Notes), want) {
		t.Errorf("%d jobs, want none and %q:\n%.500s", out.Jobs, want, lines(out.Notes))
	}
}

// TestSeconds: numbers of seconds that no duration holds are refused as they are.
func TestSeconds(t *testing.T) {
	t.Parallel()
	text := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n" + strings.Replace(
		pytorchSpec("", ""), "spec: {", "spec: {runPolicy: {activeDeadlineSeconds: 9223372036854775807}, ", 1)
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	const want = `activeDeadlineSeconds: 9223372036854775807: refused: spec.failure.deadline: must be a duration`
	if !out.Invalid || !strings.Contains(lines(out.Notes), want) {
		t.Errorf("want %q:\n%s", want, lines(out.Notes))
	}
}

// TestSharedEmptyDir: one emptyDir at two places stays one, and a field that no pod template has is dropped with its
// name.
func TestSharedEmptyDir(t *testing.T) {
	t.Parallel()
	for places, source := range map[[2]string]string{
		{"/a", "/b"}: "{}", {"/tmp", "/b"}: "{}", {"/b", "/tmp"}: "{}",
		{"/dev/shm", "/b"}: "{medium: Memory, sizeLimit: 1Gi}", {"/b", "/dev/shm"}: "{medium: Memory, sizeLimit: 1Gi}",
	} {
		text := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n" + strings.Replace(
			pytorchSpec("", "volumes: [{name: v, emptyDir: "+source+"}], "), "containers: [{",
			"containers: [{volumeMounts: [{name: v, mountPath: "+places[0]+"}, {name: v, mountPath: "+places[1]+"}], "+
				"lifecycle: {preStop: {exec: {command: [x]}, wait: 1}}, ", 1)
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
		jobs, err := schema.Load([]schema.Source{{Name: "out.yaml", Data: out.YAML}})
		if err != nil {
			t.Fatal(err)
		}
		bundles, err := render.Jobs(jobs, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var rendered strings.Builder
		if err := render.Write(&rendered, bundles); err != nil {
			t.Fatal(err)
		}
		at := func(place string) []string {
			mount := regexp.MustCompile(`- name: (\S+)\n\s+mountPath: ` + place + `\n`)
			return mount.FindStringSubmatch(rendered.String())
		}
		mount, other := at(places[0]), at(places[1])
		if mount == nil || other == nil || mount[1] != other[1] {
			t.Errorf("%v are %q and %q:\n%s", places, mount, other, out.YAML)
		}
		const want = "dropped: spec.containers[0].lifecycle.preStop.wait: no pod template has this field"
		if !strings.Contains(lines(out.Notes), want) {
			t.Errorf("want %q:\n%s", want, lines(out.Notes))
		}
	}
}

// TestTooMany: more objects or jobs than one import takes are refused before they are imported.
func TestTooMany(t *testing.T) {
	t.Parallel()
	job := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j%d}\n" + pytorchSpec("", "") + "---\n"
	const object = "{apiVersion: v1, kind: Service, metadata: {name: j%d}}\n---\n"
	for want, c := range map[string]struct {
		text string
		n    int
	}{
		"201 training jobs, more than the limit of 200: import them in parts": {job, 201},
		"20001 objects, more than the limit of 20000: import them in parts":   {object, 20001},
	} {
		var text strings.Builder
		for i := range c.n {
			fmt.Fprintf(&text, c.text, i)
		}
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text.String())}})
		if out.Jobs != 0 || !out.Invalid || !strings.Contains(lines(out.Notes), want) {
			t.Errorf("%d jobs, want none and %q:\n%.500s", out.Jobs, want, lines(out.Notes))
		}
	}
}

// TestWrapped: what a wrapper holds may be anything, and what is a job among it is read.
func TestWrapped(t *testing.T) {
	t.Parallel()
	for _, component := range []string{
		"1", "x", "[]", "null", "{}", "{template: 1}",
		"{template: {kind: [], spec: 1}}",
	} {
		text := "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: w}\nspec: " +
			"{components: [" + component +
			", {template: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, " +
			strings.TrimSpace(pytorchSpec("", "")) + "}}]}\n"
		if out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}}); out.Jobs != 1 {
			t.Errorf("%s: %d jobs: want the one beside it\n%s", component, out.Jobs, lines(out.Notes))
		}
	}
}

// TestLinear: what import does for each field that it mends must not depend on how many there are. Allocations stand
// for the time, which nobody can assert.
func TestLinear(t *testing.T) {
	for name, text := range map[string]func(fields string) string{
		"annotations": func(f string) string {
			return "metadata: {name: j, annotations: {" + f + "}}\n" +
				pytorchSpec("", "")
		},
		"labels of the pods": func(f string) string {
			return "metadata: {name: j}\n" + pytorchSpec("metadata: {labels: {"+f+"}}, ", "")
		},
		"node selector": func(f string) string {
			return "metadata: {name: j}\n" +
				pytorchSpec("", "nodeSelector: {"+f+"}, ")
		},
		"unknown": func(f string) string {
			return "metadata: {name: j}\n" +
				pytorchSpec("", "unknown: {"+f+"}, ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocations := func(n int) uint64 {
				var fields []string
				for i := range n {
					fields = append(fields, fmt.Sprintf("k%d: %d", i, i))
				}
				source := []schema.Source{{
					Name: "in.yaml",
					Data: []byte("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n" + text(strings.Join(fields, ", "))),
				}}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				importer.Jobs(source)
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs
			}
			few, many := allocations(100), allocations(800)
			t.Logf("100 fields: %d allocations, 800: %d", few, many)
			if many > 10*few {
				t.Errorf("100 fields take %d allocations, and 800 take %d", few, many)
			}
		})
	}
}

// pytorchSpec is a job of one worker, with further fields of its template and of its pods.
func pytorchSpec(template, pod string) string {
	return "spec: {pytorchReplicaSpecs: {Worker: {template: {" + template + "spec: {" + pod +
		`containers: [{name: pytorch, image: "a/b:1", command: [torchrun, t.py]}]}}}}}` + "\n"
}
