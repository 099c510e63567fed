package krm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestMoved: what an overlay's namespace made of an installation is refused before its jobs are rendered.
func TestMoved(t *testing.T) {
	item := func(namespace string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: tegen-scheduler, namespace: " + namespace +
			", annotations: {tegen.dev/installed-as: tegen-system/tegen-scheduler}}\n"
	}
	if err := run(t, list(t, "", item("tegen-system"))); err != nil {
		t.Errorf("in its place: %v", err)
	}
	err := run(t, list(t, "", item("team")))
	if err == nil || !strings.Contains(err.Error(), "Deployment team/tegen-scheduler: metadata: tegen-system/") {
		t.Errorf("moved: %v", err)
	}
}

// rendered are the objects of the job of these tests.
var rendered = []string{
	"ServiceAccount ml/resnet", "Service ml/resnet-etcd-peer", "Service ml/resnet-etcd", "PodDisruptionBudget " +
		"ml/resnet-etcd",
	"StatefulSet ml/resnet-etcd", "Service ml/resnet-worker", "NetworkPolicy ml/resnet-worker",
	"NetworkPolicy ml/resnet-etcd",
	"PodDisruptionBudget ml/resnet-worker", "Job ml/resnet-worker",
}

const labConfig = plainGenerator + "spec: {environment: lab}\n"

const plainGenerator = "apiVersion: tegen.dev/v1alpha1\nkind: Generator\nmetadata: {name: tegen}\n"

func TestGenerate(t *testing.T) {
	noPolicies := slices.DeleteFunc(slices.Clone(rendered), func(s string) bool {
		return strings.HasPrefix(s,
			"NetworkPolicy")
	})
	only := []string{
		"Service ml/resnet-etcd-peer", "Service ml/resnet-etcd", "PodDisruptionBudget ml/resnet-etcd",
		"StatefulSet ml/resnet-etcd", "Service ml/resnet-worker",
	}
	for _, c := range []struct {
		what   string
		config string
		items  []string
		want   []string
	}{
		{"no configuration", "", []string{job}, append([]string{"TrainingJob ml/resnet"}, rendered...)},
		{"a Generator", plainGenerator, []string{job}, append([]string{"TrainingJob ml/resnet"}, rendered...)},
		{
			"others pass through in their order", "",
			[]string{configMap, job, strings.Replace(configMap, "settings", "more", 1)},
			append([]string{"ConfigMap ml/settings", "TrainingJob ml/resnet", "ConfigMap ml/more"}, rendered...),
		},
		{
			"an environment is merged", labConfig,
			[]string{job, environment},
			append([]string{"TrainingJob ml/resnet", "Environment /lab"}, noPolicies...),
		},
		{
			"an environment before the job", labConfig,
			[]string{environment, job},
			append([]string{"Environment /lab", "TrainingJob ml/resnet"}, noPolicies...),
		},
		{
			"jobs are dropped, and no Environment", plainGenerator + "spec: {jobs: drop, environment: lab}\n",
			[]string{environment, job},
			append([]string{"Environment /lab"}, noPolicies...),
		},
		{
			"some generators", plainGenerator + "spec: {generators: [etcd, service]}\n",
			[]string{job},
			append([]string{"TrainingJob ml/resnet"}, only...),
		},
		{
			"their order is the product's", plainGenerator + "spec: {generators: [service, etcd]}\n",
			[]string{job},
			append([]string{"TrainingJob ml/resnet"}, only...),
		},
		{
			"a ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" +
				"data: {generators: 'etcd, service'}\n",
			[]string{job},
			append([]string{"TrainingJob ml/resnet"}, only...),
		},
		{
			"an empty ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
			[]string{job},
			append([]string{"TrainingJob ml/resnet"}, rendered...),
		},
		{"a job as the configuration", job, nil, rendered},
		{
			"a ConfigMap that names the Environment", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" +
				"data: {environment: lab}\n",
			[]string{job, environment},
			append([]string{"TrainingJob ml/resnet", "Environment /lab"}, noPolicies...),
		},
		{"nothing to do", "", []string{configMap}, []string{"ConfigMap ml/settings"}},
		{"nothing at all", "", nil, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			if diff := cmp.Diff(c.want, process(t, list(t, c.config, c.items...),
				"is expected from elsewhere", unguarded)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestItems: other items stay as they are; inputs are marked local, since no cluster has their kind; objects have a
// file.
func TestItems(t *testing.T) {
	commented := "# kept\n" + strings.Replace(configMap, "\ndata:", "\n# too\ndata:", 1)
	filed := strings.Replace(job, "  namespace: ml\n", "  namespace: ml\n  annotations:\n"+
		"    internal.config.kubernetes.io/path: jobs/resnet.yaml\n", 1)
	rl := list(t, labConfig, commented, filed, environment)
	process(t, rl, unguarded)
	texts := itemTexts(t, rl)
	if want := itemTexts(t, list(t, "", commented))[0]; texts[0] != want {
		t.Errorf("an item that is none of tegen's changed (-want +got):\n%s", cmp.Diff(want, texts[0]))
	}
	for _, n := range rl.Items[1:3] {
		if n.GetAnnotations()["config.kubernetes.io/local-config"] != "true" {
			t.Errorf("%s would be applied to the cluster", n.GetName())
		}
	}
	seen := map[string]bool{}
	for _, n := range rl.Items[3:] {
		a := n.GetAnnotations()
		path := a["internal.config.kubernetes.io/path"]
		if !strings.HasPrefix(path, "resnet/") || !strings.HasSuffix(path, ".yaml") ||
			seen[path+a["internal.config.kubernetes.io/index"]] {
			t.Errorf("%s %s goes to %q, index %q", n.GetKind(), n.GetName(), path,
				a["internal.config.kubernetes.io/index"])
		}
		seen[path+a["internal.config.kubernetes.io/index"]] = true
	}
}

// TestAgain: the function's own output as its input.
func TestAgain(t *testing.T) {
	rl := list(t, labConfig, job, environment, configMap)
	process(t, rl, unguarded)
	once := itemTexts(t, rl)
	process(t, rl, unguarded)
	if diff := cmp.Diff(slices.Sorted(slices.Values(once)), slices.Sorted(slices.Values(itemTexts(t,
		rl)))); diff != "" {
		t.Errorf("the second run changed something (-first +second):\n%s", diff)
	}
}

// TestTwoGenerators: a pipeline may make a job's objects in two steps; the second does not undo the first.
func TestTwoGenerators(t *testing.T) {
	rl := list(t, plainGenerator+"spec: {generators: [identity, storage, etcd]}\n", job)
	process(t, rl)
	rl.FunctionConfig = list(t, plainGenerator+
		"spec: {generators: [service, network, disruption, prefetch, worker]}\n").FunctionConfig
	got := process(t, rl)
	if diff := cmp.Diff(append([]string{"TrainingJob ml/resnet"}, rendered...), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCheck: items pass as they are; what is not applied is not checked.
func TestCheck(t *testing.T) {
	const check = "apiVersion: tegen.dev/v1alpha1\nkind: Check\nmetadata: {name: check}\n"
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml}\n" +
		"spec: {serviceAccountName: a, containers: [{name: c, image: 'x:1'}]}\n"
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: ml}\n"
	for _, c := range []struct {
		what  string
		items []string
		says  string
	}{
		{"whole", []string{pod, account, configMap}, ""},
		{"broken", []string{pod}, "Pod ml/p: spec.serviceAccountName: ServiceAccount ml/a"},
		{"its target is local", []string{pod, strings.Replace(account, "namespace: ml",
			"namespace: ml, annotations: {config.kubernetes.io/local-config: 'true'}", 1)}, "ServiceAccount ml/a"},
		{"itself is local", []string{strings.Replace(pod, "namespace: ml",
			"namespace: ml, annotations: {config.kubernetes.io/local-config: 'true'}", 1)}, ""},
		{"inputs are not objects", []string{job, environment}, ""},
		{"unknown kinds", []string{"apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\n"}, ""},
		{
			"a field that no pod has",
			[]string{strings.Replace(pod, "serviceAccountName", "serviceAcountName", 1)},
			"serviceAcountName",
		},
		{"nothing", nil, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			rl := list(t, check, c.items...)
			before := itemTexts(t, rl)
			err := run(t, rl)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if (len(rl.Results) == 0) != (c.says == "") {
				t.Errorf("results %v", rl.Results)
			}
			if diff := cmp.Diff(before, itemTexts(t, rl)); diff != "" {
				t.Errorf("the items changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestFailure: every mistake is a result with its place, and the error says them all, since kustomize drops results.
func TestFailure(t *testing.T) {
	wrong := strings.NewReplacer("replicas: 2", "replicas: 0", "image: example.org/train:1.0",
		"image: example.org/train:latest").Replace(job)
	filed := strings.Replace(wrong, "  namespace: ml\n", "  namespace: ml\n  annotations:\n"+
		"    internal.config.kubernetes.io/path: jobs/resnet.yaml\n    internal.config.kubernetes.io/index: '0'\n", 1)
	for what, file := range map[string]string{wrong: "TrainingJob/resnet", filed: "jobs/resnet.yaml"} {
		rl := list(t, "", configMap, what)
		before := itemTexts(t, rl)
		err := run(t, rl)
		if err == nil {
			t.Fatal("a broken job was rendered")
		}
		got := map[string]string{}
		for _, r := range rl.Results {
			if r.Severity != framework.Error || r.File == nil || r.Field == nil || r.Message == "" ||
				r.Tags["rule"] == "" {
				t.Errorf("result %+v", r)
				continue
			}
			got[r.Field.Path] = r.File.Path
			if !strings.Contains(err.Error(), file+": "+r.Field.Path+": "+r.Message) {
				t.Errorf("the error lacks %q: %v", r.Message, err)
			}
		}
		if diff := cmp.Diff(map[string]string{"spec.workers.replicas": file, "spec.image": file}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, itemTexts(t, rl)); diff != "" {
			t.Errorf("a failed run changed its items (-before +after):\n%s", diff)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		what   string
		config string
		items  []string
		says   string
	}{
		{
			"unknown generator", plainGenerator + "spec: {generators: [etcd, wroker]}\n",
			[]string{job},
			`"wroker" is no generator: one of namespace, identity`,
		},
		{"unknown generator in a ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" +
			"data: {generators: wroker}\n", []string{job}, `"wroker" is no generator`},
		{"jobs neither kept nor dropped", plainGenerator + "spec: {jobs: no}\n", []string{job}, "jobs"},
		{"jobs in another word", plainGenerator + "spec: {jobs: gone}\n", []string{job}, "must be keep or drop"},
		{"unknown field", plainGenerator + "spec: {generator: [etcd]}\n", []string{job}, "generator"},
		{
			"unknown kind", "apiVersion: tegen.dev/v1alpha1\nkind: Generater\nmetadata: {name: x}\n",
			[]string{job},
			"must be Generator, Check or TrainingJob",
		},
		{
			"another version", "apiVersion: tegen.dev/v1\nkind: Generator\nmetadata: {name: x}\n",
			[]string{job},
			"tegen.dev/v1",
		},
		{"a list where a word belongs", plainGenerator + "spec: {generators: etcd}\n", []string{job}, "generators"},
		{
			"another's TrainingJob as the configuration", strings.Replace(job, "tegen.dev/v1alpha1", "example.org/v1",
				1),
			nil, "example.org/v1",
		},
		{
			"a job of another version as the configuration", strings.Replace(job, "tegen.dev/v1alpha1", "tegen.dev/v1",
				1),
			nil, "tegen.dev/v1",
		},
		{"a job of another version among the items", "", []string{strings.Replace(job, "tegen.dev/v1alpha1",
			"tegen.dev/v1", 1)}, "must be tegen.dev/v1alpha1"},
		{
			"a broken job as the configuration", strings.Replace(job, "replicas: 2", "replicas: 0", 1), nil,
			"spec.workers.replicas",
		},
		{"two environments", labConfig, []string{job, environment, environment}, "a second Environment"},
		{
			"an Environment that nobody named", plainGenerator,
			[]string{job, environment},
			"set spec.environment: lab in its Generator",
		},
		{
			"another Environment than the named one", plainGenerator + "spec: {environment: eks}\n",
			[]string{job, environment},
			"set spec.environment: lab in its Generator",
		},
		{
			"a named Environment that is not there", labConfig,
			[]string{job},
			`spec.environment: no Environment is called "lab"`,
		},
		{"an Environment as the configuration", environment, []string{job}, "Generator with spec.environment: lab"},
		{
			"a job as the configuration, beside an Environment", job,
			[]string{environment},
			"set spec.environment: lab in its Generator",
		},
		{"two jobs of one name", "", []string{job, job}, "is the name of the job"},
		{"two jobs of one etcd", "", []string{
			strings.Replace(job, "store: etcd}", "store: etcd, etcd: {name: meet}}", 1),
			strings.Replace(strings.Replace(job, "store: etcd}", "store: etcd, etcd: {name: meet}}", 1), "name: resnet",
				"name: bert", 1),
		}, `would be rendered by job "bert" too`},
	} {
		t.Run(c.what, func(t *testing.T) {
			rl := list(t, c.config, c.items...)
			before := itemIDs(rl)
			err := run(t, rl)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q; items %q", err, c.says, itemIDs(rl))
			}
			if err != nil && len(rl.Results) == 0 {
				t.Error("no result says why")
			}
			if diff := cmp.Diff(before, itemIDs(rl)); diff != "" && err != nil {
				t.Errorf("a failed run changed its items (-before +after):\n%s", diff)
			}
		})
	}
}

// TestGeneratedText: items are the same objects that the command prints.
func TestGeneratedText(t *testing.T) {
	rl := list(t, "", job)
	process(t, rl)
	var texts []string
	for _, n := range rl.Items[1:] {
		for _, key := range slices.Sorted(maps.Keys(n.GetAnnotations())) {
			if strings.HasPrefix(key, "internal.config.kubernetes.io/") {
				if err := n.PipeE(yaml.ClearAnnotation(key)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := yaml.ClearEmptyAnnotations(n); err != nil {
			t.Fatal(err)
		}
		text, err := n.String()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	want := mustOverlay(t, folder(t, map[string]string{
		"kustomization.yaml": header +
			"resources: [job.yaml]\ntransformers: [tegen.yaml]\n", "job.yaml": job, "tegen.yaml": generator,
	}))
	if diff := cmp.Diff(want, strings.Join(texts, "---\n")); diff != "" {
		t.Errorf("(-command +function):\n%s", diff)
	}
}

// TestUnfilled: a job with an id that was not filled in is not rendered, whoever runs the function.
func TestUnfilled(t *testing.T) {
	rl := list(t, plainGenerator, strings.Replace(job, "spec:\n",
		"spec:\n  storage: [{mountPath: /data, efs: {fileSystem: fs-00000000}}]\n", 1))
	before := itemIDs(rl)
	const want = "spec.storage[0].efs.fileSystem: fs-00000000 is the id of nothing: put in yours"
	if err := run(t, rl); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, itemIDs(rl)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
