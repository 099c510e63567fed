package controllers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/wait"
)

const (
	// patience is for one thing to happen in a cluster where everything does within a second or two, on a machine that
	// also compiles.
	patience = 90 * time.Second
	poll     = 200 * time.Millisecond // eight fixtures at once ask often enough
)

// world is the cluster that all tests share.
type world struct {
	c         *cluster.Cluster
	dynamic   dynamic.Interface
	resources map[schema.GroupVersionKind]metav1.APIResource
	versions  map[schema.GroupKind]string  // one of each kind
	nodes     []*unstructured.Unstructured // for what fixtures ask for
	empty     []byte                       // an inventory of them

	mu      sync.Mutex
	outlive map[string][]string // what stays in a namespace once its jobs are deleted, as Kind/name
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	wait.Until(t, what, patience, poll, check)
}

// discover asks the cluster what it serves: each kind in the version that it prefers, and in all others.
func (w *world) discover(t *testing.T) {
	t.Helper()
	config := w.c.Config()
	config.WarningHandler = rest.NoWarnings{} // listing everything includes what is deprecated
	var err error
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	_, lists, err := w.c.Client().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	w.resources, w.versions = map[schema.GroupVersionKind]metav1.APIResource{}, map[schema.GroupKind]string{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				r.Group, r.Version = gv.Group, gv.Version
				w.resources[gv.WithKind(r.Kind)] = r
				if gk := gv.WithKind(r.Kind).GroupKind(); w.versions[gk] == "" {
					w.versions[gk] = r.Version // the first group version is the preferred one
				}
			}
		}
	}
}

// on is the client for an object's kind and namespace; nil where the cluster does not serve the kind.
func (w *world) on(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	r, ok := w.resources[obj.GroupVersionKind()]
	if !ok {
		return nil
	}
	client := w.dynamic.Resource(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name})
	if r.Namespaced {
		return client.Namespace(obj.GetNamespace())
	}
	return client
}

// served leaves out what only an installation of another project would take, a PodGroup of a gang scheduler for
// instance, and skips the test where it is Kubernetes' own kind in a version that this release does not have.
func (w *world) served(t *testing.T, b *bundle) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range b.objects {
		gvk := obj.GroupVersionKind()
		if _, ok := w.resources[gvk]; ok {
			objects = append(objects, obj)
		} else if scheme.Scheme.IsGroupRegistered(gvk.Group) {
			t.Skipf("%s of %s is not in this release of Kubernetes", gvk.Kind, gvk.GroupVersion())
		}
	}
	return objects
}

// apply does what kubectl apply --server-side does, and refuses a field that the API server does not know.
func (w *world) apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range objects {
		if err := w.applyOne(t.Context(), obj); err != nil {
			t.Fatalf("applying %s %s/%s: %v", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
		}
	}
}

func (w *world) applyOne(ctx context.Context, obj *unstructured.Unstructured) error {
	text, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.on(obj).Patch(ctx, obj.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "tegen-e2e", Force: new(true), FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// enter makes the bundle's namespace with what its jobs expect there, and a quota without limits, which counts what
// its pods request.
func (w *world) enter(t *testing.T, b *bundle) {
	t.Helper()
	ctx, client := t.Context(), w.c.Client()
	stays := []string{"ConfigMap/kube-root-ca.crt", "ResourceQuota/count", "ServiceAccount/default"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, j := range b.jobs {
		for _, expected := range j.Expects {
			if w.provide(t, b, expected) && !slices.Contains(stays, expected) {
				stays = append(stays, expected)
			}
		}
	}
	w.mu.Lock()
	w.outlive[b.namespace] = stays
	w.mu.Unlock()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "count"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1M")}},
	}
	for name := range total(b.jobs, peak) {
		if b.counted(name) {
			quota.Spec.Hard[quotaName(name)] = resource.MustParse("1E")
		}
	}
	if _, err := client.CoreV1().ResourceQuotas(b.namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace's account, certificate and quota", func() error {
		if _, err := client.CoreV1().ServiceAccounts(b.namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		if _, err := client.CoreV1().ConfigMaps(b.namespace).Get(ctx, "kube-root-ca.crt",
			metav1.GetOptions{}); err != nil {
			return err
		}
		quota, err := client.CoreV1().ResourceQuotas(b.namespace).Get(ctx, "count", metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) < len(quota.Spec.Hard) {
			err = fmt.Errorf("the quota counts %v yet", quota.Status.Used)
		}
		return err
	})
}

// provide makes Kind/name, which a bundle names and does not hold, and says whether it is in the bundle's namespace.
func (w *world) provide(t *testing.T, b *bundle, expected string) bool {
	t.Helper()
	kind, name, _ := strings.Cut(expected, "/")
	version, content := "v1", map[string]any{}
	switch kind {
	case "ConfigMap", "Secret", "ServiceAccount":
	case "Service":
		content["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(2379)}}}
	case "PersistentVolumeClaim":
		content["spec"] = map[string]any{
			"accessModes": []any{"ReadWriteMany"}, "storageClassName": "",
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}
	case "PriorityClass":
		version, content["value"] = "scheduling.k8s.io/v1", int64(0) // nothing is preempted
		for _, of := range b.templates() {
			if of.PreemptionPolicy != nil && of.PriorityClassName == name { // a pod's must be that of its class
				content["preemptionPolicy"] = string(*of.PreemptionPolicy)
			}
		}
	case "RuntimeClass":
		version, content["handler"] = "node.k8s.io/v1", name
	default:
		if !strings.Contains(kind, ".") {
			t.Fatalf("a job expects %s, which this test does not know how to make", expected)
		}
		return false // another project's, whose kinds are not here
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetAPIVersion(version)
	obj.SetKind(kind)
	obj.SetName(name)
	if w.resources[obj.GroupVersionKind()].Namespaced {
		obj.SetNamespace(b.namespace)
	}
	if err := w.applyOne(t.Context(), obj); err != nil {
		t.Fatalf("making %s: %v", expected, err)
	}
	return obj.GetNamespace() != ""
}

// runScheduler starts the stock scheduler with a profile for every name that a pod asks for, so that the pods of gang
// schedulers, which are not here, get nodes too: one by one.
func (w *world) runScheduler(t *testing.T, fixtures []*fixture) {
	t.Helper()
	names := map[string]bool{corev1.DefaultSchedulerName: true}
	for _, f := range fixtures {
		for _, b := range f.bundles {
			for _, spec := range b.templates() {
				if spec.SchedulerName != "" {
					names[spec.SchedulerName] = true
				}
			}
		}
	}
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: " +
		"{leaderElect: false}\n" +
		"podMaxBackoffSeconds: 2\n" + // what waits for a claim does so for moments
		fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}\nprofiles:\n", w.c.Kubeconfig())
	for name := range names {
		config += fmt.Sprintf("- schedulerName: %s\n", name)
	}
	file := filepath.Join(w.c.Dir(), "profiles.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	program, err := cluster.Program(ctx, io.Discard, "kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.c.Run(ctx, "profiles", program, "--config="+file, "--secure-port=0",
		"--feature-gates=GenericWorkload=true,GangScheduling=true")
	if err != nil {
		t.Fatal(err)
	}
}

// bindClaims plays what provisions volumes: every claim that names none gets one of its own, as long as the test runs.
func (w *world) bindClaims(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for made := map[string]bool{}; ctx.Err() == nil; time.Sleep(poll) {
			// Where this fails, it is tried again, and in the end a test says which claim is not bound.
			claims, err := w.c.Client().CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, claim := range claims.Items {
				if claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" &&
					!made[string(claim.UID)] {
					made[string(claim.UID)] = w.makeVolume(ctx, &claim) == nil
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func (w *world) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	_, err := w.c.Client().CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "made-for-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"},
			},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func peak(j *plan.Job) corev1.ResourceList   { return j.Requests.Peak }
func steady(j *plan.Job) corev1.ResourceList { return j.Requests.Steady }

// total adds up what jobs request.
func total(jobs []*plan.Job, of func(*plan.Job) corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, j := range jobs {
		for name, q := range of(j) {
			s := sum[name]
			s.Add(q)
			sum[name] = s
		}
	}
	return sum
}

// counted says whether a quota may count a resource: one of CPU or memory refuses pods of which any container asks for
// none, as an author may want it.
func (b *bundle) counted(name corev1.ResourceName) bool {
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		return true
	}
	for _, of := range b.templates() {
		for _, c := range slices.Concat(of.InitContainers, of.Containers) {
			_, requested := c.Resources.Requests[name]
			if _, limited := c.Resources.Limits[name]; !requested && !limited {
				return false
			}
		}
	}
	return true
}

// quotaName is what a quota calls a request.
func quotaName(name corev1.ResourceName) corev1.ResourceName { return "requests." + name }
