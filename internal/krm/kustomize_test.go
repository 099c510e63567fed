package krm_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
)

// TestMain makes this program tegen's KRM function too, as kustomize starts it, and a function of somebody else.
func TestMain(m *testing.M) {
	var run func(in []byte) error
	switch filepath.Base(os.Args[0]) {
	case "tegen", "tegen-fn":
		run = func(in []byte) error { return krm.Run(generators.Set{}, in, os.Stdout, os.Stderr) }
	case "stamp":
		run = stamp
	default:
		os.Exit(m.Run())
	}
	in, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = run(in)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kustomize builds as the program does, with what its flags set; tegen is in its PATH under both of its names. It is
// the library of which Overlay is made too: what they differ in is that here kustomize starts a process.
type kustomize struct{}

func newKustomize(t *testing.T) kustomize {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"tegen", "tegen-fn", "stamp"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return kustomize{}
}

// build returns what the program prints. stderr is that of the functions.
func (kustomize) build(t *testing.T, dir string, flags ...string) (stdout, stderr string, err error) {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // the program's default
	if slices.Contains(flags, "--enable-alpha-plugins") {
		options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
	}
	options.PluginConfig.FnpLoadingOptions.EnableExec = slices.Contains(flags, "--enable-exec")
	msg, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func(before *os.File) { os.Stderr = before }(os.Stderr)
	os.Stderr = msg // which functions inherit
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	printed, readErr := os.ReadFile(msg.Name())
	if err := errors.Join(readErr, msg.Close()); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		return "", string(printed) + err.Error(), err
	}
	out, err := built.AsYaml()
	return string(out), string(printed), err
}

// full are the flags that a kustomization with an executed function needs.
var full = []string{"--enable-alpha-plugins", "--enable-exec"}

// TestKustomize compares Overlay with kustomize, and pins kustomize's traps.
func TestKustomize(t *testing.T) {
	k := newKustomize(t)
	t.Run("same", k.same)
	t.Run("traps", k.traps)
}

// alone is a job whose objects name nothing of each other that kustomize does not know, but a ConfigMap.
var alone = strings.Replace(job, "  workers: {replicas: 2}\n  rendezvous: {backend: etcd, store: etcd}\n",
	"  target: jobset\n  launcher: none\n  workers: {replicas: 1}\n  identity: {serviceAccount: default}\n"+
		"  env: [{name: A, configMap: {name: settings, key: a}}]\n", 1)

// jobSetReference is a configuration by which kustomize knows a reference of a JobSet.
const jobSetReference = "nameReference:\n- kind: ConfigMap\n  version: v1\n  fieldSpecs:\n  - {path: spec/" +
	"replicatedJobs/template/spec/template/spec/containers/env/valueFrom/configMapKeyRef/name, kind: JobSet}\n"

// overlayCases are the files of kustomizations; those without are in the folder overlays.
func overlayCases() map[string]map[string]string {
	labels := "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: labels}\nlabels: {stage: late}\n" +
		"fieldSpecs: [{path: metadata/labels, create: true}]\n"
	return map[string]map[string]string{
		"kind": nil,
		"eks":  nil,
		"prefix, namespace, labels and a patch": {
			"base/kustomization.yaml": header + "resources: [job.yaml]\n",
			"base/job.yaml":           job,
			"kustomization.yaml": header + "resources: [base]\nnamePrefix: eu-\nnamespace: prod\n" +
				"labels: [{pairs: {team: vision}}]\ncommonAnnotations: {owner: ann}\n" +
				"patches:\n- target: {kind: TrainingJob}\n  patch: |\n" +
				"    - {op: replace, path: /spec/workers/replicas, value: 5}\ntransformers: [tegen.yaml]\n",
			"tegen.yaml": generator,
		},
		"a merge patch on the job": {
			"kustomization.yaml": header + "resources: [job.yaml]\npatches: [{path: patch.yaml}]\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml": job,
			"patch.yaml": "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n" +
				"metadata: {name: resnet, namespace: ml}\nspec: {resources: {gpu: 2, cpu: 1, memory: 4Gi}, env: " +
				"[{name: " +
				"A, value: b}]}\n",
			"tegen.yaml": generator,
		},
		"a JSON patch of a job with a large number": {
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\npatches:\n" +
				"- target: {kind: TrainingJob}\n  patch: |\n    - {op: replace, path: /spec/image, value: 'a:1'}\n",
			"job.yaml": job + "  security: {runAsUser: 1000650000}\n", "tegen.yaml": generator,
		},
		"a transformer behind tegen": {
			"kustomization.yaml": header + "resources: [job.yaml, environment.yaml, other.yaml]\n" +
				"transformers: [tegen.yaml, labels.yaml]\n",
			"job.yaml": job, "environment.yaml": environment, "other.yaml": configMap,
			"tegen.yaml":  labGenerator,
			"labels.yaml": labels,
		},
		"a transformer before tegen": {
			"kustomization.yaml": header + "resources: [job.yaml, other.yaml]\n" +
				"transformers: [labels.yaml, tegen.yaml]\n",
			"job.yaml": job, "other.yaml": configMap, "tegen.yaml": generator,
			"labels.yaml": labels,
		},
		"a generated ConfigMap": {
			"kustomization.yaml": header + "resources: [job.yaml]\n" +
				"configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\ntransformers: [tegen.yaml]\n",
			"job.yaml": job, "tegen.yaml": generator,
		},
		"a generated ConfigMap and a transformer behind tegen": {
			"kustomization.yaml": header + "resources: [job.yaml]\n" +
				"configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\n" +
				"transformers: [tegen.yaml, labels.yaml]\n",
			"job.yaml": job, "tegen.yaml": generator,
			"labels.yaml": labels,
		},
		"a ConfigMap of a file with characters in two escapes": {
			"kustomization.yaml": header + "resources: [job.yaml]\n" +
				"configMapGenerator: [{name: settings, namespace: ml, files: [config.json]}]\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml": job, "tegen.yaml": generator, "config.json": `{"a": "\ud83d\ude00"}`,
		},
		"a generated ConfigMap that the job names": {
			"kustomization.yaml": header + "resources: [job.yaml]\n" +
				"configMapGenerator: [{name: scripts, namespace: ml, literals: [main.py=pass]}]\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml": strings.Replace(job, "  command: [python, train.py]\n",
				"  script: {configMap: {name: scripts}}\n", 1) +
				"  env: [{name: A, configMap: {name: scripts, key: main.py}}]\n",
			"tegen.yaml": generator,
		},
		"inputs marked local": {
			"kustomization.yaml": header + "resources: [job.yaml, environment.yaml, other.yaml]\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml": strings.Replace(job, "  namespace: ml\n",
				"  namespace: ml\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n", 1),
			"environment.yaml": strings.Replace(environment, "  name: lab\n",
				"  name: lab\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n", 1),
			"other.yaml": configMap + "---\n" + strings.Replace(configMap, "  name: settings\n",
				"  name: notes\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n", 1),
			"tegen.yaml": labGenerator,
		},
		"a local object beside the job, in one file": {
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
			"job.yaml": job + "---\n" + strings.Replace(configMap, "  name: settings\n",
				"  name: notes\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n", 1),
			"tegen.yaml": generator,
		},
		"some of the generators": {
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
			"job.yaml":           job, "tegen.yaml": generator + "spec: {generators: [etcd, service]}\n",
		},
		"tegen that drops jobs, a ConfigMap that one names, and a check behind it": {
			"kustomization.yaml": header + "resources: [job.yaml, environment.yaml]\nnamePrefix: eu-\n" +
				"configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\n" +
				"transformers: [tegen.yaml, check.yaml]\n",
			"job.yaml":         job + "  env: [{name: A, configMap: {name: settings, key: a}}]\n",
			"environment.yaml": environment, "tegen.yaml": generator + "spec: {jobs: drop, environment: eu-lab}\n",
			"check.yaml": strings.Replace(generator, "kind: Generator", "kind: Check", 1),
		},
		"tegen written inline": {
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers:\n- |-\n  " +
				strings.ReplaceAll(strings.TrimSpace(generator), "\n", "\n  ") + "\n",
			"job.yaml": job,
		},
		"a component": {
			"kustomization.yaml": header + "resources: [job.yaml]\ncomponents: [component]\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml": job,
			"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
				"resources: [environment.yaml]\n",
			"component/environment.yaml": environment,
			"tegen.yaml":                 labGenerator,
		},
		"a check behind tegen": {
			"kustomization.yaml": header +
				"resources: [job.yaml, other.yaml]\ntransformers: [tegen.yaml, check.yaml]\n",
			"job.yaml": job, "other.yaml": configMap, "tegen.yaml": generator,
			"check.yaml": strings.Replace(generator, "kind: Generator", "kind: Check", 1),
		},
		"a prefix and a ConfigMap that the job names": {
			"kustomization.yaml": header + "resources: [job.yaml, other.yaml]\nnamePrefix: eu-\n" +
				"transformers: [tegen.yaml]\n",
			"job.yaml":   job + "  env: [{name: A, configMap: {name: settings, key: a}}]\n",
			"other.yaml": configMap, "tegen.yaml": generator,
		},
		"a prefix, a generated ConfigMap that the job names, and a transformer behind tegen": {
			"base/kustomization.yaml": header + "resources: [job.yaml]\n" +
				"configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\n",
			"base/job.yaml": job + "  env: [{name: A, configMap: {name: settings, key: a}}]\n",
			"kustomization.yaml": header + "resources: [base]\nnamePrefix: eu-\n" +
				"transformers: [tegen.yaml, labels.yaml]\n", "tegen.yaml": generator,
			"labels.yaml": labels,
		},
		"a kustomization over one with tegen": {
			"base/kustomization.yaml": header + "resources: [job.yaml, environment.yaml]\ntransformers: [tegen.yaml]\n",
			"base/job.yaml":           job, "base/environment.yaml": environment, "base/tegen.yaml": labGenerator,
			"kustomization.yaml": header + "resources: [base, other.yaml]\nlabels: [{pairs: {team: vision}}]\n",
			"other.yaml":         configMap,
		},
		"a prefix above a configuration beside tegen": {
			"base/kustomization.yaml": header + "resources: [job.yaml, other.yaml]\nconfigurations: [config.yaml]\n" +
				"transformers: [tegen.yaml]\n",
			"base/config.yaml": jobSetReference, "base/job.yaml": alone, "base/other.yaml": configMap,
			"base/tegen.yaml": generator, "kustomization.yaml": header + "resources: [base]\nlabels: [{pairs: {a: " +
				"b}}]\n" +
				"namePrefix: eu-\n",
		},
		"a prefix behind tegen, and a configuration in a base": {
			"base/kustomization.yaml": header + "resources: [job.yaml, other.yaml]\nconfigurations: [config.yaml]\n",
			"base/config.yaml":        jobSetReference, "base/job.yaml": alone, "base/other.yaml": configMap,
			"kustomization.yaml": header + "resources: [base]\ntransformers: [tegen.yaml, prefix.yaml]\n",
			"tegen.yaml":         generator, "prefix.yaml": "apiVersion: builtin\nkind: PrefixTransformer\n" +
				"metadata: {name: prefix}\nprefix: eu-\nfieldSpecs: [{path: metadata/name}]\n",
		},
		"two jobs of two namespaces": {
			"kustomization.yaml": header + "resources: [job.yaml, other.yaml]\ntransformers: [tegen.yaml]\n",
			"job.yaml":           job, "other.yaml": strings.Replace(job, "namespace: ml", "namespace: nlp", 1),
			"tegen.yaml": generator,
		},
	}
}

func (k kustomize) same(t *testing.T) {
	for what, files := range overlayCases() {
		t.Run(what, func(t *testing.T) {
			dir := ""
			if files != nil {
				dir = folder(t, files)
			} else {
				dir = golden.Overlay(t, root, what)
			}
			want, msg, err := k.build(t, dir, full...)
			if err != nil {
				t.Fatalf("%v\n%s", err, msg)
			}
			got, err := overlay(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(byID(t, want)) == 0 {
				t.Fatal("kustomize printed nothing")
			}
			if diff := cmp.Diff(byID(t, want), byID(t, got)); diff != "" {
				t.Errorf("(-kustomize +tegen):\n%s", diff)
			}
		})
	}
}

// traps pins what is easy to run into with kustomize.
func (k kustomize) traps(t *testing.T) {
	t.Run("one flag too few renders nothing, and calls that a success", k.oneFlag)
	t.Run("a mistake in a job fails the build", k.mistake)
	t.Run("a prefix over rendered manifests breaks them", k.prefix)
	t.Run("a check as a transformer", k.check)
	t.Run("a job as the configuration of a generator", k.jobAsConfig)
}

// oneJob is the least that renders.
func oneJob() map[string]string {
	return map[string]string{
		"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
		"job.yaml":           job, "tegen.yaml": generator,
	}
}

func (k kustomize) oneFlag(t *testing.T) {
	dir := folder(t, oneJob())
	out, _, err := k.build(t, dir, "--enable-alpha-plugins")
	if got := ids(t, out); err != nil || !slices.Equal(got, []string{"TrainingJob ml/resnet"}) {
		t.Errorf("kustomize has learned to fail: %v\n%s", err, out)
	}
	asGenerator := folder(t, map[string]string{
		"kustomization.yaml": header + "generators: [job.yaml]\n",
		"job.yaml":           generatorJob,
	})
	if out, _, err := k.build(t, asGenerator, "--enable-alpha-plugins"); err != nil ||
		strings.TrimSpace(out) != "" {
		t.Errorf("as a generator: %v\n%s", err, out)
	}
	if out, _, err := k.build(t, dir); err == nil {
		t.Errorf("without any flag it succeeds:\n%s", out)
	}
	if got := ids(t, mustOverlay(t, dir)); !slices.Contains(got, "Job ml/resnet-worker") {
		t.Errorf("without kustomize's flags tegen renders %q", got)
	}
}

func (k kustomize) mistake(t *testing.T) {
	broken := oneJob()
	broken["job.yaml"] = strings.Replace(job, "replicas: 2", "replicas: 0", 1)
	dir := folder(t, broken)
	out, msg, err := k.build(t, dir, full...)
	if err == nil || strings.TrimSpace(out) != "" || !strings.Contains(msg, "spec.workers.replicas") {
		t.Errorf("%v, stdout %q, stderr:\n%s", err, out, msg)
	}
	if _, err := overlay(t, dir); err == nil || !strings.Contains(err.Error(),
		"job.yaml:9:23: spec.workers.replicas") {
		t.Errorf("tegen says %v, want the position in the file", err)
	}
}

func (k kustomize) prefix(t *testing.T) {
	rendered := mustOverlay(t, folder(t, oneJob()))
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "resources: [rendered.yaml]\nnamePrefix: eu-\n", "rendered.yaml": rendered,
	})
	out, msg, err := k.build(t, dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	objs, err := manifest.Read("build", []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, b := range refs.Check(objs) {
		text += b.String() + "\n"
	}
	for _, pair := range [][2]string{
		{"Job ml/eu-resnet-worker: spec.template.spec.subdomain", "Service ml/resnet-worker"},
		{
			"Job ml/eu-resnet-worker: spec.template.spec.containers[worker].env[PET_RDZV_ENDPOINT]",
			"Service ml/resnet-etcd",
		},
	} {
		if !strings.Contains(text, pair[0]+": "+pair[1]) {
			t.Errorf("nobody says that %s needs %s:\n%s", pair[0], pair[1], text)
		}
	}
}

func (k kustomize) check(t *testing.T) {
	check := strings.Replace(generator, "kind: Generator", "kind: Check", 1)
	whole := map[string]string{
		"kustomization.yaml": header + "resources: [other.yaml]\ntransformers: [check.yaml]\n",
		"other.yaml":         configMap, "check.yaml": check,
	}
	out, msg, err := k.build(t, folder(t, whole), full...)
	if err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	if diff := cmp.Diff(byID(t, configMap), byID(t, out)); diff != "" {
		t.Errorf("it changed what it checks (-want +got):\n%s", diff)
	}
	whole["other.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml}\n" +
		"spec: {serviceAccountName: gone, containers: [{name: c, image: 'x:1'}]}\n"
	if out, msg, err := k.build(t, folder(t, whole), full...); err == nil ||
		!strings.Contains(msg, "ServiceAccount ml/gone") || strings.TrimSpace(out) != "" {
		t.Errorf("%v, stdout %q, stderr:\n%s", err, out, msg)
	}
}

func (k kustomize) jobAsConfig(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "generators: [job.yaml]\n",
		"job.yaml":           generatorJob,
	})
	out, msg, err := k.build(t, dir, full...)
	if err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	want := ids(t, mustOverlay(t, folder(t, oneJob())))
	if diff := cmp.Diff(want, ids(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(out, "config.kubernetes.io/function") {
		t.Error("the objects carry the function's own annotation")
	}
}
