package krm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/krm"
)

// labelled is an object with the labels of the job of these tests.
func labelled(version, kind, namespace, name string) string {
	text := "apiVersion: " + version + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
	if namespace != "" {
		text += "  namespace: " + namespace + "\n"
	}
	return text + "  labels:\n    app.kubernetes.io/managed-by: tegen\n    tegen.dev/job: resnet\n" +
		"    tegen.dev/namespace: ml\n"
}

// TestKeepsForeign: labels alone make no object one that tegen rendered. What the job cannot be rendered to passes
// through, with a note; what an earlier version of it may have been rendered to goes.
func TestKeepsForeign(t *testing.T) {
	for text, kept := range map[string]bool{
		labelled("v1", "Secret", "other", "token"):                            true, // of no job of the list
		labelled("v1", "Secret", "ml", "token"):                               true,
		labelled("v1", "Secret", "", "resnet-ssh"):                            true, // in no namespace
		labelled("v1", "ConfigMap", "ml", "resnet-settings"):                  true,
		labelled("v1", "Service", "ml", "web"):                                true,
		labelled("serving.knative.dev/v1", "Service", "ml", "resnet"):         true,
		labelled("apps/v1", "DaemonSet", "ml", "resnet"):                      true,
		labelled("rbac.authorization.k8s.io/v1", "ClusterRole", "", "resnet"): true,
		labelled("v1", "Namespace", "", "other"):                              true,
		labelled("v1", "PersistentVolume", "", "nlp-resnet-data"):             true,
		labelled("v1", "PersistentVolume", "", "ml-resnet-data"):              true, // without the label of data
		labelled("v1", "PersistentVolumeClaim", "ml", "resnet-mine"):          true,

		labelled("v1", "Secret", "ml", "resnet-ssh"):                           false,
		labelled("v1", "ConfigMap", "ml", "resnet-ssh-0123abcd"):               false,
		labelled("batch/v1", "Job", "ml", "resnet-worker-0123abcd"):            false,
		labelled("v1", "Namespace", "", "ml"):                                  false,
		labelled("scheduling.volcano.sh/v1beta1", "PodGroup", "ml", "resnet"):  false,
		labelled("kubeflow.org/v1", "PyTorchJob", "ml", "resnet"):              false,
		labelled("policy/v1beta1", "PodDisruptionBudget", "ml", "resnet-etcd"): false,
	} {
		rl := list(t, "", job, text)
		n, err := yaml.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t, rl); err != nil {
			t.Fatal(err)
		}
		id := n.GetKind() + " " + n.GetNamespace() + "/" + n.GetName()
		is := slices.Contains(itemTexts(t, rl), must(t, n.String))
		noted := kept && n.GetNamespace() != "other" // which has no job
		said := false
		for _, r := range rl.Results {
			said = said || strings.Contains(r.Message, "it has the labels of job resnet, which does not render it")
		}
		if is != kept || said != noted {
			t.Errorf("%s: kept %t, noted %t; want %t, %t", id, is, said, kept, noted)
		}
	}
}

func must(t *testing.T, f func() (string, error)) string {
	t.Helper()
	text, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSomeGenerators: of what some of the generators make, references to what the others make are noted, and generators
// that make nothing are refused.
func TestSomeGenerators(t *testing.T) {
	only := func(names string) string { return plainGenerator + "spec: {generators: [" + names + "]}\n" }
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: resnet, namespace: ml}\n"
	c10d := strings.Replace(job, "  rendezvous: {backend: etcd, store: etcd}\n", "", 1)
	const note = "ServiceAccount ml/resnet is expected from elsewhere, because spec.generators is worker, service; " +
		"add identity, which renders it, or run that generator separately"
	for what, c := range map[string]struct {
		config string
		items  []string
		note   string
		err    string
	}{
		"worker and service": {only("worker, service"), []string{c10d}, note, ""},
		"what is beside it":  {only("worker, service"), []string{c10d, account}, "", ""},
		"all that it needs":  {only("worker, service, identity"), []string{c10d}, "", ""},
		"nothing": {
			only("gang"),
			[]string{c10d},
			"",
			"spec.generators: gang: nothing is rendered of resnet: gang needs fields such as " +
				"spec: {gang: {scheduler: coscheduling}}; set them, or name other generators",
		},
		"nothing of one job": {
			only("gang"), []string{c10d, strings.Replace(c10d, "name: resnet", "name: other", 1) +
				"  gang: {scheduler: volcano, queue: a}\n"}, "spec.generators: gang: nothing is rendered of resnet", "",
		},
		"nothing, since the job turns it off": {
			only("network"),
			[]string{c10d + "  network: {policy: false}\n"},
			"",
			"network is turned off by fields of the job",
		},
		"no jobs": {only("gang"), []string{configMap}, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			rl := list(t, c.config, c.items...)
			err := run(t, rl)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			said := ""
			for _, r := range rl.Results {
				said += r.Message + "\n"
			}
			if err == nil && (said == "") != (c.note == "") || !strings.Contains(said, c.note) {
				t.Errorf("notes %q, want %q", said, c.note)
			}
			if err != nil {
				return
			}
			files := map[string]string{
				"kustomization.yaml": header + "resources: [a.yaml]\ntransformers: [tegen.yaml]\n",
				"a.yaml":             strings.Join(c.items, "---\n"), "tegen.yaml": c.config,
			}
			if out := overlayNotes(t, folder(t, files)); !strings.Contains(out, c.note) || c.note == "" && out != "" {
				t.Errorf("an overlay notes %q, want %q", out, c.note)
			}
		})
	}
}

func overlayNotes(t *testing.T, dir string) (text string) {
	t.Helper()
	out, err := krm.Overlay(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range out.Notes {
		text += n.String() + "\n"
	}
	return text
}

// TestStale: objects that the job no longer renders are removed. Objects of others stay.
func TestStale(t *testing.T) {
	other := strings.Replace(job, "name: resnet", "name: bert", 1)
	elsewhere := strings.Replace(job, "namespace: ml", "namespace: nlp", 1)
	before := list(t, "", job, other, elsewhere)
	process(t, before)
	items := slices.DeleteFunc(itemTexts(t, before), func(s string) bool {
		return strings.Contains(s,
			"kind: TrainingJob")
	})

	c10d := strings.Replace(job, "  rendezvous: {backend: etcd, store: etcd}\n", "", 1)
	got := process(t, list(t, "", append(items, c10d)...), "left out: job resnet no longer renders it")
	var want []string
	for _, id := range rendered {
		want = append(want, strings.ReplaceAll(id, "resnet", "bert"), strings.Replace(id, " ml/", " nlp/", 1))
		if !strings.HasSuffix(id, "resnet-etcd") && !strings.HasSuffix(id, "resnet-etcd-peer") {
			want = append(want, id)
		}
	}
	want = append(want, "TrainingJob ml/resnet")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStaleVolumes: objects without a namespace are told apart by the label that says whose they are.
func TestStaleVolumes(t *testing.T) {
	volume := "  storage: [{mountPath: /data, nfs: {server: nfs, path: /x}}]\n"
	before := list(t, "", job+volume, strings.Replace(job, "namespace: ml", "namespace: nlp", 1)+volume)
	process(t, before)
	items := slices.DeleteFunc(itemTexts(t, before), func(s string) bool {
		return strings.Contains(s,
			"kind: TrainingJob")
	})
	got := process(t, list(t, "", append(items, job)...), "left out: job resnet no longer renders it")
	volumes := slices.DeleteFunc(got, func(id string) bool { return !strings.HasPrefix(id, "PersistentVolume") })
	slices.Sort(volumes)
	if diff := cmp.Diff([]string{"PersistentVolume /nlp-resnet-data", "PersistentVolumeClaim nlp/resnet-data"},
		volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTwice: an item that has the name of a rendered object, and is not of an earlier run, is refused. Of a kind of
// another group it is another object.
func TestTwice(t *testing.T) {
	const renders = ": job resnet renders an object of this name: rename or remove one of them"
	for _, c := range []struct{ version, kind, metadata, want string }{
		{"v1", "Service", "name: resnet-worker, namespace: ml", "Service ml/resnet-worker" + renders},
		{"v1", "Service", "name: resnet-worker, namespace: nlp", ""},
		{"serving.knative.dev/v1", "Service", "name: resnet-worker, namespace: ml", ""},
		{"policy/v1beta1", "PodDisruptionBudget", "name: resnet-etcd, namespace: ml", "resnet-etcd" + renders},
		{"example.com/v1", "PodDisruptionBudget", "name: resnet-etcd, namespace: ml", ""},
		{
			"batch/v1", "Job", "name: resnet-worker, namespace: ml, labels: {app: resnet}",
			"Job ml/resnet-worker" + renders,
		},
	} {
		text := "apiVersion: " + c.version + "\nkind: " + c.kind + "\nmetadata: {" + c.metadata + "}\n"
		err := run(t, list(t, "", job, text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", text, err, c.want)
		}
	}
}
