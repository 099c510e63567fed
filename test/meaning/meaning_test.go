package meaning

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// golden are bundles whose workloads are of every kind.
func golden(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../golden/*/base.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files: ", err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSame: nothing differs from itself.
func TestSame(t *testing.T) {
	t.Parallel()
	for _, file := range golden(t) {
		text := read(t, file)
		for _, d := range Compare(text, text) {
			t.Errorf("%s: %s", file, d)
		}
	}
}

// nameless are places whose values mean nothing outside of their object, or nothing that lasts.
var nameless = regexp.MustCompile(`^(apiVersion|metadata\.)|(^|\.)(name|subdomain|hostname|protocol|appProtocol|` +
	`containerPort|readOnly|mxReplicaType)$|\.runtimeRef\.|\.rdzvId$|` +
	`\.(ports|imagePullSecrets)\b|app\.kubernetes\.io|tegen\.dev|\.selector\b|\.defaultMode$`)

// ofRun are names of a run and of a Service, and where c10d listens: all pods are told the same.
var ofRun = regexp.MustCompile(`TEGEN_RUN_UID|:29400$|svc$|^\$\(PET_RDZV_\w+\)$`)

// workloads are the objects of a stream that make pods which train.
func workloads(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for i, root := range documents(text) {
		kind := root.at("kind").text()
		component := root.at("spec", "template", "metadata", "labels", "app.kubernetes.io/component").text()
		helps := component == "keygen" || component == "prefetch"
		if !helps && (readers[kind] != nil || strings.HasPrefix(kind, "Train")) {
			b.WriteString(with(t, text, i, i, root.value))
		}
	}
	return b.String()
}

// TestEveryLeafCounts changes one value of a workload after the other: each change must be found.
func TestEveryLeafCounts(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, file := range golden(t) {
		text := workloads(t, read(t, file))
		for i, root := range documents(text) {
			kind := root.at("kind").text()
			if readers[kind] == nil && kind != "TrainJob" || seen[kind] > 0 || kind == "Pod" {
				continue
			}
			seen[kind]++
			eachLeaf(root.value, "", func(path string, set func(any), value any) {
				if nameless.MatchString(path) || ofRun.MatchString(fmt.Sprint(value)) {
					return
				}
				set(other(value))
				defer set(value)
				if len(Compare(text, with(t, text, 0, i, root.value))) == 0 {
					t.Errorf("%s: %s of a %s may be %v for %v, and nothing is found", file, path, kind, other(value),
						value)
				}
			})
		}
	}
}

// eachLeaf visits the scalars of a value.
func eachLeaf(value any, path string, visit func(path string, set func(any), value any)) {
	below := func(path string, child any, set func(any)) {
		switch child.(type) {
		case object, []any:
			eachLeaf(child, path, visit)
		default:
			visit(path, set, child)
		}
	}
	switch x := value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			below(strings.TrimPrefix(path+"."+key, "."), x[key], func(v any) { x[key] = v })
		}
	case []any:
		for i := range x {
			below(fmt.Sprintf("%s[%d]", path, i), x[i], func(v any) { x[i] = v })
		}
	}
}

func other(value any) any {
	switch x := value.(type) {
	case bool:
		return !x
	case int:
		return x + 3
	}
	return fmt.Sprint(value) + "7"
}

// with is a stream from one object on to another, which has a value of its own.
func with(t *testing.T, text string, from, at int, value any) string {
	t.Helper()
	var b strings.Builder
	for i, root := range documents(text) {
		if i == at {
			root.value = value
		}
		if i < from || i > at && from == at {
			continue
		}
		one, err := yaml.Marshal(root.value)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(one)
	}
	return b.String()
}

// TestFill: each placeholder gets a value that fits, and what a shell expands stays.
func TestFill(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]string{
		"replicas: $NUM_NODES":                        "replicas: 2",
		"parallelism: __NUM_NODES__":                  "parallelism: 2",
		"nvidia.com/gpu: ${GPU_PER_NODE}":             "nvidia.com/gpu: 8",
		"nvidia.com/gpu:":                             "nvidia.com/gpu: 8",
		"image: ${REGISTRY}${IMAGE}${TAG}":            "image: registry.example/team/train:v1",
		"image: \"python\"":                           "image: \"python:v1\"",
		"- --nproc_per_node=$CPU_PER_NODE":            "- --nproc_per_node=8",
		"rdzvEndpoint: \"<your host>:2379\"":          "rdzvEndpoint: \"etcd.infra.svc:2379\"",
		"args:\n- |\n  echo $HOME\n":                  "args:\n- |\n  echo $HOME\n",
		"generateName: run-":                          "name: run",
		"value: $(PET_RDZV_ID)":                       "value: $(PET_RDZV_ID)",
		"name: <job-name>":                            "name: team-value",
		"x: ${A}\nargs:\n- |\n  run ${A} ${B}\n":      "x: team-value\nargs:\n- |\n  run team-value ${B}\n",
		"metadata:\n  name: PLACEHOLDER":              "metadata:\n  name: train",
		"vpc.amazonaws.com/efa: {{ .Values.efaNum }}": "vpc.amazonaws.com/efa: 4",
	} {
		if got := Fill(have); got != want {
			t.Errorf("%q becomes %q, want %q", have, got, want)
		}
	}
}
