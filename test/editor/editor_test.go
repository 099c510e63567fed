// Package editor asks a real yaml-language-server, the program by which editors know YAML, about jobs under what
// 'tegen schema' prints. The server is the one that package.json pins, and has no network.
package editor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// workspace is a folder with both schemas, under the names that a release has.
func workspace(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, kind := range map[string]string{
		"trainingjob.schema.json": names.KindTrainingJob, "environment.schema.json": names.KindEnvironment,
	} {
		text, err := schema.JSONSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const (
	modeline = "# yaml-language-server: $schema="
	job      = modeline + `trainingjob.schema.json
apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: training}
spec:
  image: ghcr.io/acme/resnet:1.4.0
`
	environment = modeline + `environment.schema.json
apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: kind}
spec:
`
)

// TestEditor has one server for all that is asked of it.
func TestEditor(t *testing.T) {
	s := start(t, workspace(t), nil)
	t.Run("completion", func(t *testing.T) { testCompletion(t, s) })
	t.Run("hover", func(t *testing.T) { testHover(t, s) })
	t.Run("diagnostics", func(t *testing.T) { testDiagnostics(t, s) })
	t.Run("modelines", func(t *testing.T) { testModelines(t, s) })
	t.Run("settings", testSettings)
	t.Run("fixtures", func(t *testing.T) { testFixtures(t, s) })
}

// testCompletion: fields and values are offered where they belong, with their meaning.
func testCompletion(t *testing.T, s *server) {
	for name, c := range map[string]struct {
		text, says string
		labels     []string // among those that are offered
		never      string
	}{
		"a field of the job": {
			job + "  frame|", "The training framework, which starts the processes",
			[]string{"framework", "workers"},
			"image",
		},
		"a field of the metadata": {
			modeline + "trainingjob.schema.json\nmetadata:\n  na|", "Prefix of every object's name",
			[]string{"name", "namespace", "labels"},
			"spec",
		},
		"an enumeration": {
			job + "  framework: |", "Default: torchelastic.", []string{"torchelastic", "jax", "mpi", "mxnet"}, "job",
		},
		"an enumeration that is written already": {
			job + "  launcher: torch|run", "Who starts the training processes", []string{"entrypoint", "none"}, "",
		},
		"a boolean": {job + "  suspend: |", "", []string{"true", "false"}, ""},
		"a word beside numbers": {
			job + "  workers:\n    processes: |", "", []string{"auto", "gpu", "cpu"}, "",
		},
		"a field two levels deep": {
			job + "  workers:\n    |", "Number of workers to start.", []string{"replicas", "min", "max"}, "workers",
		},
		"a field in braces": {
			job + "  workers: {replicas: 2, m|}", "Fewest workers that train.", []string{"min", "max"}, "replicas",
		},
		"an item of a list": {
			job + "  storage:\n  - |", "Amazon EFS", []string{"mountPath", "efs", "claim"}, "replicas",
		},
		"a value in an item": {
			job + "  storage:\n  - dynamic:\n      accessMode: |", "Access mode of the claim.",
			[]string{"ReadWriteMany", "ReadWriteOnce"},
			"",
		},
		"a field five levels deep": {
			job + "  roles:\n    launcher:\n      resources:\n        m|", "Memory that is requested, and the limit",
			[]string{"memory", "limits"},
			"gpu",
		},
		"a field of an Environment": {
			environment + "  |", "Where volumes", []string{"defaults", "overrides", "storage", "machines"}, "image",
		},
		"a value in an Environment's defaults": {
			environment + "  defaults:\n    gang:\n      scheduler: |", "Whose gang objects",
			[]string{"kueue", "volcano"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list struct{ Items []completion }
			s.at(t, "textDocument/completion", c.text, &list)
			offered := map[string]string{}
			var all strings.Builder
			for _, item := range list.Items {
				offered[item.Label] = item.Documentation.Value
				all.WriteString(item.Label + ": " + item.Documentation.Value + "\n")
			}
			for _, label := range c.labels {
				if _, ok := offered[label]; !ok {
					t.Errorf("%s is not offered, but\n%s", label, all.String())
				}
			}
			if _, ok := offered[c.never]; ok {
				t.Errorf("%s is offered, which has no place there", c.never)
			}
			if !strings.Contains(all.String(), c.says) {
				t.Errorf("nothing says %q:\n%s", c.says, all.String())
			}
		})
	}
}

// testHover: what a field means, its default and its values are shown over its name and its value.
func testHover(t *testing.T, s *server) {
	for name, c := range map[string]struct {
		text string
		says []string
		at   span
	}{
		"a field": {
			job + "  laun|cher: torchrun\n",
			[]string{"Who starts the training processes", "Default: torchrun.", "* `entrypoint`"},
			on(6, 2, 10),
		},
		"a value": {job + "  launcher: torch|run\n", []string{"Default: torchrun."}, on(6, 12, 20)},
		"a mapping": {
			job + "  wor|kers: {replicas: 3}\n", []string{"Number of workers, and how few or many"}, on(6, 2, 9),
		},
		"a default that is another field's": {
			job + "  workers: {re|plicas: 3}\n", []string{"Default: as spec.workers.max."}, on(6, 12, 20),
		},
		"a field in a list": {
			job + "  storage:\n  - efs: {provision: {director|yPerms: '700'}}\n",
			[]string{"Octal permissions", "Default: 700."},
			on(7, 22, 36),
		},
		"a field of an Environment": {
			environment + "  overrides: {image|PullPolicy: Always}\n",
			[]string{"When the kubelet pulls images."},
			on(5, 14, 29),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var hover struct {
				Contents markup
				Range    span
			}
			s.at(t, "textDocument/hover", c.text, &hover)
			for _, words := range c.says {
				if !strings.Contains(hover.Contents.Value, words) {
					t.Errorf("it does not say %q, but\n%s", words, hover.Contents.Value)
				}
			}
			if diff := cmp.Diff(c.at, hover.Range); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
		})
	}
}

// on is a range within a line; both count from 0.
func on(line, from, to int) span {
	return span{Start: position{line, from}, End: position{line, to}}
}

// testDiagnostics: a mistake is marked where it is, in the words of tegen vet where the server takes words.
func testDiagnostics(t *testing.T, s *server) {
	s.compare(t, map[string]given{
		"none": {job + "  workers: {replicas: 2}\n", nil},
		"a misspelt field": {
			job + "  launchr: torchrun\n", []diagnostic{{on(6, 2, 9), "Property launchr is not allowed."}},
		},
		"a misspelt field, deep": {
			job + "  roles:\n    launcher:\n      resources: {memry: 1Gi}\n",
			[]diagnostic{{on(8, 18, 23), "Property memry is not allowed."}},
		},
		"no enumerated value": {
			job + "  launcher: torchrn\n",
			[]diagnostic{{
				on(6, 12, 19), `Value is not accepted. Valid values: "torchrun", "entrypoint", "none".`,
			}},
		},
		"a list for a mapping": {
			job + "  workers: [3]\n", []diagnostic{{on(6, 11, 14), `Incorrect type. Expected "object".`}},
		},
		"a word for a number": {
			job + "  workers: {replicas: two}\n",
			[]diagnostic{{on(6, 22, 25), "must be an integer from 1 to 4096"}},
		},
		"a number for a string": {
			job + "  kubernetesVersion: 1.36\n",
			[]diagnostic{{on(6, 21, 25), `must be a minor version in quotes, such as "1.36"`}},
		},
		"above the bound": {
			job + "  workers: {replicas: 5000}\n", []diagnostic{{on(6, 22, 26), "Value is above the maximum of 4096."}},
		},
		"below the bound": {
			job + "  workers:\n    replicas: 0\n", []diagnostic{{on(7, 14, 15), "Value is below the minimum of 1."}},
		},
		"neither number nor word": {
			job + "  workers: {processes: all}\n",
			[]diagnostic{{on(6, 23, 26), "must be an integer from 1 to 1024, auto, gpu or cpu"}},
		},
		"not the format": {
			job + "  resources: {memory: 16GiB}\n",
			[]diagnostic{{
				on(6, 22, 27), "must be an amount of bytes of at least 1Mi, such as 512Mi or 16Gi, or none",
			}},
		},
		"what a format leaves out": {
			job + "  images: {etcd: 'quay.io/coreos/etcd:latest'}\n",
			[]diagnostic{{
				on(6, 17, 45), "must be an image with a tag other than latest, or a digest: registry/name:tag",
			}},
		},
		"a key that is none": {
			job + "  placement: {nodeSelector: {gpu type: a100}}\n",
			[]diagnostic{{
				on(6, 29, 37),
				"is not a key: an optional domain and '/', then at most 63 letters, digits, '-', '_' and '.'",
			}},
		},
		"a required field": {
			job + "  checkpoint: {}\n", []diagnostic{{on(6, 2, 12), `Missing property "path".`}},
		},
		"one of two alternatives": {
			job + "  env:\n  - {name: LR, value: '1', field: metadata.name}\n",
			[]diagnostic{{
				on(7, 27, 32), "only one of value, secret, configMap, field, resource may be given",
			}},
		},
		"none of the alternatives": {
			job + "  env:\n  - name: LR\n",
			[]diagnostic{{on(7, 4, 5), "one of value, secret, configMap, field, resource is needed"}},
		},
		"another kind": {
			strings.Replace(job, "TrainingJob", "TrainJob", 1),
			[]diagnostic{{on(2, 6, 14), `Value must be "TrainingJob".`}},
		},
		"an Environment": {
			environment + "  overrides: {suspend: maybe}\n",
			[]diagnostic{{on(5, 23, 28), `Incorrect type. Expected "boolean".`}},
		},
		// Each document of a file is told its schema by its own line.
		"the second document of two": {
			environment + "  overrides: {suspend: true}\n---\n" + job + "  suspnd: true\n",
			[]diagnostic{{on(13, 2, 8), "Property suspnd is not allowed."}},
		},
		"a document without the line": {
			strings.TrimPrefix(job, modeline+"trainingjob.schema.json\n") + "  suspnd: true\n", nil,
		},
	})
}

// given is a text, and the marks that belong into it.
type given struct {
	text string
	want []diagnostic
}

// compare opens all texts and then asks about each, since the server waits a moment before it speaks.
func (s *server) compare(t *testing.T, cases map[string]given) {
	t.Helper()
	uris := map[string]string{}
	for name, c := range cases {
		uris[name] = s.open(t, strings.TrimSuffix(strings.ReplaceAll(name, " ", "-"), ".yaml")+".yaml", c.text)
	}
	// There is no difference between none and nil.
	empty := cmp.Transformer("empty", func(list []diagnostic) []diagnostic { return append([]diagnostic{}, list...) })
	for name, c := range cases {
		if diff := cmp.Diff(c.want, s.diagnostics(t, uris[name]), empty); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
