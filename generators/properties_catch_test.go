package generators_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestPropertiesCatch breaks a valid bundle in one place at a time: each property must notice its own breakage.
func TestPropertiesCatch(t *testing.T) {
	cases := []struct {
		property string
		what     string
		damage   func(objs []runtime.Object)
	}{
		{
			"names", "hostname of 64 characters",
			func(o []runtime.Object) { trainer(o).Name = "a" + strings.Repeat("b", 61) },
		},
		{"names", "label value", func(o []runtime.Object) { trainer(o).Spec.Template.Labels["x"] = "-" }},
		{"names", "upper-case Service", func(o []runtime.Object) { all[*corev1.Service](o)[0].Name = "Etcd" }},
		{"namespaces", "another namespace", func(o []runtime.Object) { trainer(o).Namespace = "default" }},
		{
			"namespaces", "volume in a namespace",
			func(o []runtime.Object) { all[*corev1.PersistentVolume](o)[0].Namespace = "ml" },
		},
		{"kept", "a claim among the job's objects", func(o []runtime.Object) {
			all[*corev1.PersistentVolumeClaim](o)[0].Labels["tegen.dev/job"] = "resnet"
		}},
		{"kept", "a volume that Flux prunes", func(o []runtime.Object) {
			delete(all[*corev1.PersistentVolume](o)[0].Annotations, "kustomize.toolkit.fluxcd.io/prune")
		}},
		{"kept", "a volume that goes with the Application", func(o []runtime.Object) {
			all[*corev1.PersistentVolume](o)[0].Annotations["argocd.argoproj.io/sync-options"] = "Prune=false"
		}},
		{"kept", "a Service that stays", func(o []runtime.Object) {
			delete(all[*corev1.Service](o)[0].Labels, "tegen.dev/job")
		}},
		{
			"selectors", "label gone",
			func(o []runtime.Object) { delete(trainer(o).Spec.Template.Labels, "app.kubernetes.io/component") },
		},
		{"selectors", "etcd's Service selects workers too", func(o []runtime.Object) {
			for _, s := range all[*corev1.Service](o) {
				delete(s.Spec.Selector, "app.kubernetes.io/component")
			}
		}},
		{"claims", "no kind", func(o []runtime.Object) {
			all[*appsv1.StatefulSet](o)[0].Spec.VolumeClaimTemplates[0].Kind = ""
		}},
		{"references", "Service gone", func(o []runtime.Object) { all[*corev1.Service](o)[0].Name = "other" }},
		{
			"restricted", "root",
			func(o []runtime.Object) { trainer(o).Spec.Template.Spec.SecurityContext.RunAsNonRoot = new(false) },
		},
		{
			"restricted", "no seccomp",
			func(o []runtime.Object) { trainer(o).Spec.Template.Spec.SecurityContext.SeccompProfile = nil },
		},
		{"restricted", "capabilities", func(o []runtime.Object) { container(o).SecurityContext.Capabilities = nil }},
		{
			"restricted", "escalation",
			func(o []runtime.Object) { container(o).SecurityContext.AllowPrivilegeEscalation = nil },
		},
		{"restricted", "host network", func(o []runtime.Object) { trainer(o).Spec.Template.Spec.HostNetwork = true }},
		{"restricted", "hostPath", func(o []runtime.Object) {
			trainer(o).Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/"},
			}
		}},
		{
			"limits", "disk without a limit",
			func(o []runtime.Object) {
				container(o).Resources.Requests[corev1.ResourceEphemeralStorage] = *resourceOf(1)
			},
		},
		{"helpers", "one asks for more than the worker", func(o []runtime.Object) {
			trainer(o).Spec.Template.Spec.InitContainers[0].Resources.Requests[corev1.ResourceCPU] = *resourceOf(2)
		}},
		{
			"accelerator", "GPU requested",
			func(o []runtime.Object) { container(o).Resources.Requests["nvidia.com/gpu"] = *resourceOf(1) },
		},
		{
			"accelerator", "GPU gone",
			func(o []runtime.Object) { delete(container(o).Resources.Limits, "nvidia.com/gpu") },
		},
		{"ports", "metrics for members alone", func(o []runtime.Object) {
			container(o).Ports = append(container(o).Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 9090})
		}},
		{"ports", "nobody let in", func(o []runtime.Object) {
			for _, policy := range all[*networkingv1.NetworkPolicy](o) {
				policy.Spec.Ingress = nil
			}
		}},
		{"images", "latest", func(o []runtime.Object) { container(o).Image = "example.org/train:latest" }},
		{"images", "no tag but a port", func(o []runtime.Object) { container(o).Image = "example.org:5000/train" }},
		{"shm", "on disk", func(o []runtime.Object) { trainer(o).Spec.Template.Spec.Volumes[0].EmptyDir.Medium = "" }},
		{"shm", "above memory", func(o []runtime.Object) {
			trainer(o).Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit = resourceOf(1 << 50)
		}},
		{"scripts", "braces", func(o []runtime.Object) { scriptOf(o, "set -eu\necho ${HOME}") }},
		{"scripts", "substitution", func(o []runtime.Object) { scriptOf(o, "set -eu\necho $(date)") }},
		{"scripts", "no set -e", func(o []runtime.Object) { scriptOf(o, "echo") }},
		{"environment", "used before it is set", func(o []runtime.Object) { slices.Reverse(container(o).Env) }},
	}
	for _, c := range cases {
		t.Run(c.property+"/"+c.what, func(t *testing.T) {
			j := load(t, jobText("resources: {gpu: 1, cpu: 1, memory: 4Gi}",
				"rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: 8Gi}}}",
				"storage: [{mountPath: /data, nfs: {server: nfs, path: /x}, "+
					"dataset: {url: 'http://example.org/a.zip'}}]"))
			objs := objects(j)
			if wrong := properties[c.property](j, objs); len(wrong) > 0 {
				t.Fatalf("wrong before the damage: %q", wrong)
			}
			c.damage(objs)
			if wrong := properties[c.property](j, objs); len(wrong) == 0 {
				t.Error("not noticed")
			}
		})
	}
}

func trainer(objs []runtime.Object) *batchv1.Job {
	jobs := all[*batchv1.Job](objs)
	return jobs[len(jobs)-1]
}

func container(objs []runtime.Object) *corev1.Container {
	return &trainer(objs).Spec.Template.Spec.Containers[0]
}

func scriptOf(objs []runtime.Object, script string) {
	all[*batchv1.Job](objs)[0].Spec.Template.Spec.Containers[0].Command[2] = script
}

// TestRoundTrip: the YAML holds the whole object, and a strict reader finds nothing in it that it does not know.
func TestRoundTrip(t *testing.T) {
	eachJob(t, func(t *testing.T, _ *job.Job, objs []runtime.Object) {
		for _, obj := range objs {
			read, err := manifest.Read(id(t, obj), []byte(text(t, obj)))
			if err != nil {
				t.Fatal(err)
			}
			if len(read) != 1 {
				t.Fatalf("%s: read %d objects", id(t, obj), len(read))
			}
			back := read[0]
			if u, custom := back.(*unstructured.Unstructured); custom {
				back, _ = apis.Decode(u.GroupVersionKind(), u.Object)
			}
			if !equality.Semantic.DeepEqual(obj, back) {
				t.Errorf("%s changed on its way through YAML (-generated +read):\n%s", id(t, obj),
					cmp.Diff(obj, back, cmpopts.EquateEmpty()))
			}
		}
	})
}

// TestDeterminism: equal input gives equal bytes, whether it was loaded once or twice.
func TestDeterminism(t *testing.T) {
	first := map[string]string{}
	eachJob(t, func(t *testing.T, j *job.Job, objs []runtime.Object) {
		key := t.Name() + " " + j.Metadata.Name
		first[key] = yamlOf(objs)
		if again := yamlOf(objects(j)); again != first[key] {
			t.Errorf("another render differs (-first +now):\n%s", cmp.Diff(first[key], again))
		}
	})
	for _, c := range fixtures(t) {
		for _, j := range loadAll(t, c.sources...) {
			key := t.Name() + "/" + c.name + " " + j.Metadata.Name
			if again := yamlOf(objects(j)); again != first[key] {
				t.Errorf("%s: loaded again it differs (-first +now):\n%s", key, cmp.Diff(first[key], again))
			}
		}
	}
}

var placeholder = regexp.MustCompile(`<[A-Z0-9_-]{2,}>`)

// TestText looks at the YAML as a cluster's parser does: maps of metadata hold strings alone, and nothing is left for
// a person or for Flux to fill in.
func TestText(t *testing.T) {
	eachJob(t, func(t *testing.T, _ *job.Job, objs []runtime.Object) {
		for _, obj := range objs {
			text := text(t, obj)
			if m := placeholder.FindString(text); m != "" {
				t.Errorf("%s holds the placeholder %s", id(t, obj), m)
			}
			if strings.Contains(text, "${") {
				t.Errorf("%s holds ${, which Flux would replace", id(t, obj))
			}
			if strings.Contains(text, "\nstatus:") || strings.Contains(text, "creationTimestamp") {
				t.Errorf("%s holds what only a cluster writes", id(t, obj))
			}
			for _, wrong := range nonStrings(values(t, text), "") {
				t.Errorf("%s: %s", id(t, obj), wrong)
			}
		}
	})
	// The check itself, on what YAML makes of careless text.
	careless := "metadata:\n  labels: {a: 4}\n  annotations:\n    b: true\nspec:\n  selector: {c: on}\n  " +
		"nodeSelector: {d: 1.5}\n"
	if got := nonStrings(values(t, careless), ""); len(got) != 4 {
		t.Errorf("found %q, want 4", got)
	}
}

// nonStrings finds values that are not strings in every mapping from string to string that Kubernetes has.
func nonStrings(v any, at string) (wrong []string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			wrong = append(wrong, nonStrings(item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		for key, child := range v {
			path := at + "." + key
			m, isMap := child.(map[string]any)
			switch key {
			case "labels", "annotations", "matchLabels", "nodeSelector", "parameters", "volumeAttributes", "selector":
				if !isMap {
					break
				}
				for k, value := range m {
					_, isMap := value.(map[string]any) // a selector of expressions has matchLabels below it
					if _, ok := value.(string); !ok && !isMap {
						wrong = append(wrong, fmt.Sprintf("%s[%s] is %v, not a string", path, k, value))
					}
				}
			}
			wrong = append(wrong, nonStrings(child, path)...)
		}
	}
	return wrong
}
