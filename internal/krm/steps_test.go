package krm_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

// stamp is a function of somebody else: it annotates everything, and adds a ConfigMap. Its configuration may have a
// mode, in which it does something else.
func stamp(in []byte) error {
	rw := kio.ByteReadWriter{Reader: bytes.NewReader(in), Writer: os.Stdout, KeepReaderAnnotations: true}
	return framework.Execute(framework.ResourceListProcessorFunc(func(rl *framework.ResourceList) error {
		text := rl.FunctionConfig.MustString()
		if strings.Contains(text, "mode: fail") {
			return errors.New("stamp: no ink")
		}
		if _, err := os.Stat("kustomization.yaml"); err != nil {
			return err // it runs in the directory of the kustomization
		}
		for _, n := range rl.Items {
			if err := n.PipeE(yaml.SetAnnotation("stamp", rl.FunctionConfig.GetName())); err != nil {
				return err
			}
		}
		made := strings.Replace(configMap, "settings", rl.FunctionConfig.GetName(), 1)
		switch {
		case strings.Contains(text, "mode: data"):
			for _, n := range rl.Items {
				if n.GetKind() == "ConfigMap" {
					n.SetDataMap(map[string]string{"a": "changed"})
				}
			}
		case strings.Contains(text, "mode: clear"):
			rl.Items = nil
			return nil
		case strings.Contains(text, "mode: job"):
			made = strings.ReplaceAll(job, "resnet", "made")
		case strings.Contains(text, "mode: policy"):
			made = strings.Replace(made, "\ndata:", "\n  annotations: {tegen.dev/policy: 'true'}\ndata:", 1)
		case strings.Contains(text, "mode: hash"):
			made = strings.Replace(made, "\ndata:",
				"\n  annotations: {kustomize.config.k8s.io/needs-hash: 'true'}\ndata:", 1)
		}
		n, err := yaml.Parse(made)
		rl.Items = append(rl.Items, n)
		return err
	}), &rw)
}

// foreign is the configuration of stamp, which does as mode says.
func foreign(name, mode string) string {
	return "apiVersion: example.org/v1\nkind: Stamp\nmetadata:\n  name: " + name + "\n  annotations:\n" +
		"    config.kubernetes.io/function: |\n      exec: {path: stamp}\nmode: " + mode + "\n"
}

// some is a Generator of some generators.
func some(name, generators string) string {
	return strings.Replace(generator, "name: tegen", "name: "+name, 1) + "spec: {generators: [" + generators + "]}\n"
}

const (
	most  = "identity, storage, service, network, disruption, worker"
	extra = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: labels}\nlabels: {stage: late}\n" +
		"fieldSpecs: [{path: metadata/labels, create: true}]\n"
)

// stepCases are kustomizations with several functions; their tests need kustomize and stamp.
func stepCases() map[string]map[string]string {
	inline := func(texts ...string) (entries string) {
		for _, text := range texts {
			entries += "- |-\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
		}
		return entries
	}
	generated := "configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\n"
	naming := job + "  env: [{name: A, configMap: {name: settings, key: a}}]\n"
	other := strings.ReplaceAll(generatorJob, "resnet", "one")
	lists := func(transformers string, more ...string) map[string]string {
		return map[string]string{
			"kustomization.yaml": header + "resources: [job.yaml, more.yaml]\n" + strings.Join(more, "") +
				"transformers: " + transformers + "\n",
			"job.yaml": job, "more.yaml": strings.Replace(configMap, "settings", "more", 1),
			"a.yaml": some("a", most), "b.yaml": some("b", "etcd"), "whole.yaml": generator, "labels.yaml": extra,
			"stamp.yaml": foreign("stamp", "plain"), "second.yaml": foreign("second", "plain"),
			"check.yaml": strings.Replace(generator, "kind: Generator", "kind: Check", 1),
		}
	}
	with := func(files map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	return map[string]map[string]string{
		"two Generators":                   lists("[a.yaml, b.yaml]"),
		"two Generators and a foreign one": lists("[a.yaml, b.yaml, stamp.yaml]"),
		"a foreign one between Generators": lists("[a.yaml, stamp.yaml, b.yaml]"),
		"a foreign one in front of them":   lists("[stamp.yaml, a.yaml, b.yaml, labels.yaml]"),
		"several foreign ones":             lists("[stamp.yaml, whole.yaml, labels.yaml, second.yaml, check.yaml]"),
		"Generators of the same":           lists("[a.yaml, labels.yaml, whole.yaml]"),
		"Generators of the same in a row":  lists("[whole.yaml, a.yaml, labels.yaml]"),
		"files and inline":                 lists("\n- b.yaml\n" + inline(some("a", most), extra) + "- stamp.yaml\n"),
		"a ConfigMap of tegen":             with(lists("[map.yaml, b.yaml]"), "map.yaml", dataConfig),
		"several in one file": with(lists("[all.yaml]"), "all.yaml",
			strings.Join([]string{some("a", most), extra, some("b", "etcd")}, "---\n")),
		"a directory": with(lists("[below]"), "below/kustomization.yaml",
			"resources: [a.yaml, b.yaml]\nnamePrefix: x-\n",
			"below/a.yaml", some("a", most), "below/b.yaml", some("b", "etcd")),
		"a job that is a function": with(lists("[one.yaml, stamp.yaml]"), "one.yaml", other),
		"a prefix and a namespace": lists("[a.yaml, b.yaml, stamp.yaml]", "namePrefix: eu-\nnamespace: prod\n"),
		"a generated ConfigMap":    with(lists("[a.yaml, b.yaml, stamp.yaml]", generated), "job.yaml", naming),
		"one behind a transformer": with(lists("[a.yaml, labels.yaml, b.yaml]", generated), "job.yaml", naming),
		"dropped jobs": with(lists("[a.yaml, b.yaml, stamp.yaml]"), "b.yaml",
			strings.Replace(some("b", "etcd"), "]}", "], jobs: drop}", 1)),
		"a foreign function that makes jobs": with(lists("[maker.yaml, whole.yaml]"),
			"maker.yaml", foreign("maker", "job")),
		"generators": with(lists("[whole.yaml, stamp.yaml]", "generators: [one.yaml, second.yaml]\n"),
			"one.yaml", other),
		"generators alone": {
			"kustomization.yaml": header + "generators: [one.yaml, stamp.yaml]\nlabels: [{pairs: {team: vision}}]\n",
			"one.yaml":           generatorJob, "stamp.yaml": foreign("stamp", "plain"),
		},
		"below one without tegen": {
			"kustomization.yaml":      header + "resources: [base]\nlabels: [{pairs: {team: vision}}]\n",
			"base/kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [a.yaml, stamp.yaml, b.yaml]\n",
			"base/job.yaml":           job, "base/a.yaml": some("a", most), "base/b.yaml": some("b", "etcd"),
			"base/stamp.yaml": foreign("stamp", "plain"),
		},
	}
}

const dataConfig = `apiVersion: v1
kind: ConfigMap
metadata:
  name: map
  annotations:
    config.kubernetes.io/function: |
      exec: {path: tegen, args: [fn]}
data: {generators: "identity, storage, service, network, disruption, worker"}
`

// TestSteps: an overlay with any number of functions is what kustomize builds, byte for byte when kustomize prints
// both: it sorts the fields that tegen has in the order of the API.
func TestSteps(t *testing.T) {
	k := newKustomize(t)
	for what, files := range stepCases() {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, files)
			want, msg, err := k.build(t, dir, full...)
			if err != nil {
				t.Fatalf("%v\n%s", err, msg)
			}
			out, err := krm.Build{Exec: true}.Overlay(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := out.Write(&text); err != nil {
				t.Fatal(err)
			}
			got, msg, err := k.build(t, folder(t, map[string]string{
				"kustomization.yaml": header + "resources: [out.yaml]\n", "out.yaml": text.String(),
			}))
			if err != nil {
				t.Fatalf("%v\n%s", err, msg)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-kustomize +tegen):\n%s", diff)
			}
			for _, note := range out.Notes {
				if strings.Contains(note.Message, "is expected from elsewhere") {
					t.Errorf("another step makes it: %s", note)
				}
			}
			jobs := map[string]bool{}
			for _, b := range out.Bundles {
				if jobs[b.Summary.Name] {
					t.Errorf("job %s has two bundles", b.Summary.Name)
				}
				jobs[b.Summary.Name] = true
			}
		})
	}
}

// TestForeign: a function of somebody else runs with Exec alone, and what cannot run is named with its position and
// what to do.
func TestForeign(t *testing.T) {
	newKustomize(t)
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	replaced := func(old, text string) string { return strings.Replace(foreign("stamp", "plain"), old, text, 1) }
	container := strings.Replace(replaced("exec: {path: stamp}", "container: {image: 'example.org/stamp:1'}"),
		"mode: plain\n", "", 1)
	for what, c := range map[string]struct {
		kustomization string
		files         map[string]string
		exec          bool
		want          string
	}{
		"a file": {
			"transformers: [tegen.yaml, stamp.yaml]\n", nil, false,
			"stamp.yaml:1:1: transformers: Stamp stamp: tegen does not run its program \"stamp\" by default; add " +
				"--enable-exec if you trust the overlay, or remove the entry",
		},
		"the second document of a file": {
			"transformers: [two.yaml]\n",
			map[string]string{"two.yaml": generator + "---\n" + foreign("stamp", "plain")},
			false, "two.yaml:10:1: transformers: Stamp stamp: tegen does not run its program",
		},
		"inline": {
			"transformers:\n- tegen.yaml\n- |-\n  " + strings.ReplaceAll(foreign("stamp", "plain"), "\n", "\n  ") +
				"\n", nil,
			false, "kustomization.yaml:6:3: transformers: Stamp stamp: tegen does not run its program",
		},
		"a directory": {
			"transformers: [tegen.yaml, below]\n", map[string]string{
				"below/kustomization.yaml": "resources: [stamp.yaml]\n", "below/stamp.yaml": foreign("stamp", "plain"),
			}, false, "below: transformers: Stamp stamp: tegen does not run its program",
		},
		"a directory that makes one of another configuration": {
			"transformers: [tegen.yaml, below]\n", map[string]string{
				"below/kustomization.yaml": "resources: [stamp.yaml]\ncommonAnnotations:\n" +
					"  config.kubernetes.io/function: \"exec: {path: stamp}\"\n",
				"below/stamp.yaml": "apiVersion: example.org/v1\nkind: Stamp\nmetadata: {name: stamp}\n",
			}, false, "below: transformers: Stamp stamp: tegen does not run its program",
		},
		"under generators": {
			"transformers: [tegen.yaml]\ngenerators: [stamp.yaml]\n", nil, false,
			"stamp.yaml:1:1: generators: Stamp stamp: tegen does not run its program",
		},
		"under validators": {
			"transformers: [tegen.yaml]\nvalidators: [stamp.yaml]\n", nil, true,
			"stamp.yaml:1:1: validators: Stamp stamp: kustomize accepts no function here",
		},
		"in a base": {
			"bases: [base]\ntransformers: [tegen.yaml]\n", map[string]string{
				"base/kustomization.yaml": "resources: [more.yaml]\ntransformers: [stamp.yaml]\n",
				"base/more.yaml":          configMap, "base/stamp.yaml": foreign("stamp", "plain"),
			}, true, "base/stamp.yaml:1:1: transformers: Stamp stamp: tegen runs functions of a kustomization only if",
		},
		"in a component": {
			"transformers: [tegen.yaml]\ncomponents: [part]\n", map[string]string{
				"part/kustomization.yaml": component + "transformers: [a.yaml]\n", "part/a.yaml": some("a", most),
			}, true, "part/a.yaml:1:1: transformers: Generator a: tegen runs functions of a kustomization only if",
		},
		"a container": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": container},
			true,
			"stamp.yaml:1:1: transformers: Stamp stamp: tegen does not run its container example.org/stamp:1, since " +
				"rendering uses no network; ",
		},
		"a container by an older annotation": {
			"transformers: [tegen.yaml, stamp.yaml]\n", map[string]string{
				"stamp.yaml": "apiVersion: example.org/v1\nkind: Stamp\nmetadata: {name: stamp, annotations: " +
					"{config.kubernetes.io/container: 'example.org/stamp:1'}}\n",
			}, true, "tegen does not run its container example.org/stamp:1",
		},
		"no annotation": {
			"transformers: [tegen.yaml, stamp.yaml]\n", map[string]string{
				"stamp.yaml": "apiVersion: example.org/v1\nkind: Stamp\nmetadata: {name: stamp}\n",
			}, true, "stamp.yaml:1:1: transformers: Stamp stamp: it has no annotation config.kubernetes.io/function",
		},
		"no program": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": replaced("exec: {path: stamp}", "{}")},
			true, "its annotation config.kubernetes.io/function names no program",
		},
		"an annotation that kustomize refuses": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": replaced("path: stamp", "pth: stamp")},
			true, `Stamp stamp: config.kubernetes.io/function unmarshal error: error unmarshaling JSON`,
		},
		"two of one name": {
			"transformers: [tegen.yaml, same.yaml]\n",
			map[string]string{"same.yaml": generator},
			true,
			"same.yaml:1:1: transformers: Generator tegen: another Generator of this name is at ",
		},
		"a program that is not there": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": replaced("path: stamp", "path: ./gone")},
			true, "stamp.yaml:1:1: transformers: Stamp stamp: its program \"./gone\" failed: ",
		},
		"one that fails": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": foreign("stamp", "fail")},
			true,
			"stamp.yaml:1:1: transformers: Stamp stamp: its program \"stamp\" failed: exit status 1; see what",
		},
		"one that makes a job too late": {
			"transformers: [tegen.yaml, stamp.yaml]\n",
			map[string]string{"stamp.yaml": foreign("stamp", "job")},
			true,
			"TrainingJob ml/made comes from a function behind the last Generator and is not rendered",
		},
		"one that asks for a hash": {
			"transformers: [tegen.yaml]\ngenerators: [stamp.yaml]\n",
			map[string]string{"stamp.yaml": foreign("stamp", "hash")},
			true, "it gives ConfigMap ml/stamp the annotation kustomize.config.k8s.io/needs-hash",
		},
		"one that changes what a name has a hash of": {
			"transformers: [tegen.yaml, stamp.yaml]\nconfigMapGenerator: [{name: s, literals: [a=b]}]\n",
			map[string]string{"stamp.yaml": foreign("stamp", "data")},
			true,
			"it changes the content of ConfigMap s-",
		},
		"one that makes a policy": {
			"transformers: [stamp.yaml, tegen.yaml]\n",
			map[string]string{"stamp.yaml": foreign("stamp", "policy")},
			true,
			"stamp.yaml:1:1: transformers: Stamp stamp: it makes the policy ConfigMap ml/stamp, and policies are read",
		},
		"a Generator under generators": {
			"transformers: [tegen.yaml]\ngenerators: [a.yaml]\n",
			map[string]string{"a.yaml": some("a", most)},
			true,
			"a.yaml:1:1: generators: Generator a: kustomize gives it no TrainingJobs here; list it under transformers",
		},
		"a Generator with a mistake behind another": {
			"transformers: [tegen.yaml, a.yaml]\n",
			map[string]string{"a.yaml": some("a", "wroker")},
			true,
			"a.yaml:1:1: transformers: Generator a: spec.generators: \"wroker\" is no generator",
		},
	} {
		t.Run(what, func(t *testing.T) {
			files := map[string]string{
				"kustomization.yaml": header + "resources: [job.yaml]\n" + c.kustomization,
				"job.yaml":           job, "tegen.yaml": generator, "stamp.yaml": foreign("stamp", "plain"),
			}
			maps.Copy(files, c.files)
			_, err := krm.Build{Exec: c.exec}.Overlay(folder(t, files), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	t.Run("one that removes everything", func(t *testing.T) {
		out, err := krm.Build{Exec: true}.Overlay(folder(t, map[string]string{
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml, stamp.yaml]\n",
			"job.yaml":           job, "tegen.yaml": generator, "stamp.yaml": foreign("stamp", "clear"),
		}), nil)
		if err != nil || len(out.Rest) > 0 {
			t.Errorf("%v: %s", err, out.Rest)
		}
	})
}

// TestStepsOfSources: jobs from outside go through all functions, and take the place of no job that is a function.
func TestStepsOfSources(t *testing.T) {
	newKustomize(t)
	files := stepCases()["a foreign one between Generators"]
	given := schema.Source{Name: "given.yaml", Data: []byte(strings.ReplaceAll(job, "resnet", "given"))}
	out, err := krm.Build{Exec: true}.Overlay(folder(t, files), []schema.Source{given})
	if err != nil {
		t.Fatal(err)
	}
	text := string(out.Rest)
	for _, want := range []string{"name: given-worker", "name: given-etcd", "stamp: stamp"} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "resnet") {
		t.Errorf("the job of the overlay is there too:\n%s", text)
	}
	for _, what := range []string{"a job that is a function", "generators"} {
		_, err := krm.Build{Exec: true}.Overlay(folder(t, stepCases()[what]), []schema.Source{given})
		if err == nil || !strings.Contains(err.Error(), "one.yaml:1:1: ") ||
			!strings.Contains(err.Error(), "files of jobs cannot take the place of a job that is a function") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStepFiles: Generators in a row give a job one folder; what one makes is expected by none of them.
func TestStepFiles(t *testing.T) {
	out, err := krm.Overlay(folder(t, stepCases()["two Generators"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	var concerns []string
	for _, f := range out.Bundles[0].Files {
		concerns = append(concerns, f.Concern)
	}
	want := []string{"identity", "service", "network", "disruption", "worker", "etcd"}
	if diff := cmp.Diff(want, concerns); diff != "" || len(out.Bundles) != 1 || len(out.Notes) > 0 {
		t.Errorf("%d bundles, notes %v, files (-want +got):\n%s", len(out.Bundles), out.Notes, diff)
	}
}

// TestContainerForm: an overlay whose tegen kustomize would run in a container renders the same, and nothing is run.
func TestContainerForm(t *testing.T) {
	for _, image := range []string{
		"tegen", "ghcr.io/acme/tegen:1.0.0", "ghcr.io/acme/tegen@sha256:" + strings.Repeat("0", 64),
	} {
		files := stepCases()["two Generators"]
		want := mustOverlay(t, folder(t, files))
		for name := range files {
			files[name] = strings.Replace(files[name], "exec:\n        path: tegen-fn\n",
				"container: {image: '"+image+"'}\n", 1)
		}
		if got := mustOverlay(t, folder(t, files)); got != want || !strings.Contains(files["a.yaml"], image) {
			t.Errorf("%s: %s", image, cmp.Diff(want, got))
		}
	}
	// Another program may do anything.
	others := stepCases()["two Generators"]
	others["a.yaml"] = strings.Replace(others["a.yaml"], "path: tegen-fn", "path: ./wrapper.sh", 1)
	out, err := krm.Overlay(folder(t, others), nil)
	const note = "a.yaml:1:1: note: transformers: Generator a: kustomize runs wrapper.sh for it, and tegen renders " +
		"it without; to run the program, give its configuration another kind"
	if err != nil || len(out.Notes) != 1 || !strings.HasSuffix(out.Notes[0].String(), note) {
		t.Errorf("%v: %v", err, out)
	}
	// A ConfigMap does not name tegen by its kind.
	files := stepCases()["a ConfigMap of tegen"]
	want := mustOverlay(t, folder(t, files))
	files["map.yaml"] = strings.Replace(dataConfig, "exec: {path: tegen, args: [fn]}",
		"container: {image: 'ghcr.io/acme/tegen:1.0.0'}", 1)
	if got := mustOverlay(t, folder(t, files)); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// TestNoJobsLeft: a Generator to which another one leaves no job is noted.
func TestNoJobsLeft(t *testing.T) {
	files := stepCases()["two Generators"]
	files["a.yaml"] = strings.Replace(some("a", most), "]}", "], jobs: drop}", 1)
	files["job.yaml"] = strings.Replace(job, "  rendezvous: {backend: etcd, store: etcd}\n", "", 1)
	out, err := krm.Overlay(folder(t, files), nil)
	const want = "Generator b: no TrainingJob is left for it; remove jobs: drop from the Generator in front of it"
	if err != nil || !slices.ContainsFunc(out.Notes, func(f finding.Finding) bool {
		return f.Line == 1 && strings.Contains(f.Message, want)
	}) {
		t.Errorf("%v: %v", err, out.Notes)
	}
}
