package gang

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

const podGroupScheduled = "PodGroupScheduled" // the condition of k8s.io/api/scheduling

// versions of scheduling.k8s.io in which PodGroups have spec.schedulingPolicy.gang.minCount, the newest first
// (k8s.io/api/scheduling, 1.36 and 1.37).
var versions = []string{"v1", "v1beta1", "v1alpha3", "v1alpha2"}

// podGroups records in the gang cache what the cluster's own PodGroups ask for, in whatever version the cluster serves.
type podGroups struct {
	coordinator *coordinator

	queue workqueue.TypedRateLimitingInterface[gangcache.Key]

	mu       sync.Mutex
	messages map[gangcache.Key]string // that are not written yet
}

func newPodGroups(c *coordinator) *podGroups {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[gangcache.Key]())
	return &podGroups{coordinator: c, queue: queue, messages: map[gangcache.Key]string{}}
}

// run watches PodGroups once the cluster serves them, until the context ends.
func (p *podGroups) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	version := ""
	// It ends with the context only.
	_ = wait.PollUntilContextCancel(ctx, time.Minute, true, func(context.Context) (bool, error) {
		version = p.served()
		return version != "", nil
	})
	if version == "" {
		return
	}
	client, err := dynamic.NewForConfig(p.coordinator.handle.KubeConfig())
	if err != nil {
		logger.Error(err, "Making a client for PodGroups; they are not watched")
		return
	}
	resource := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: "podgroups"}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	if _, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.put(obj) },
		UpdateFunc: func(_, obj any) { p.put(obj) },
		DeleteFunc: func(obj any) { p.drop(obj) },
	}); err != nil {
		logger.Error(err, "Watching PodGroups")
		return
	}
	logger.Info("Watching PodGroups", "version", version)
	factory.Start(ctx.Done())
	go func() {
		for p.next(ctx, client.Resource(resource)) {
		}
	}()
	<-ctx.Done()
	p.queue.ShutDown()
}

// served is the newest version of PodGroups that the cluster serves and this scheduler knows, "" for none.
func (p *podGroups) served() string {
	discovery := p.coordinator.handle.ClientSet().Discovery()
	for _, v := range versions {
		list, err := discovery.ServerResourcesForGroupVersion("scheduling.k8s.io/" + v)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if r.Name == "podgroups" {
				return v
			}
		}
	}
	return ""
}

// spec is what a PodGroup asks for; its pods are on their own where it asks for nothing.
func (p *podGroups) spec(u *unstructured.Unstructured) (gangcache.Spec, error) {
	spec := gangcache.Spec{
		Min: 1, Mode: gangcache.Strict, Policy: gangcache.WaitingAndRunning, Waiting: p.coordinator.waiting,
	}
	gang, found, err := unstructured.NestedMap(u.Object, "spec", "schedulingPolicy", "gang")
	if err != nil || !found {
		return spec, err
	}
	n, _, err := unstructured.NestedInt64(gang, "minCount")
	if err != nil || n < 1 || n > gangcache.MaxMembers {
		return spec, fmt.Errorf(
			"PodGroup %s: spec.schedulingPolicy.gang.minCount must be a number from 1 to %d", u.GetName(),
			gangcache.MaxMembers,
		)
	}
	spec.Min = int(n)
	spec.Layers, err = constraints(u)
	return spec, err
}

// constraints are the layers in which the pods of a PodGroup must gather.
func constraints(u *unstructured.Unstructured) ([]gangcache.Layer, error) {
	list, _, err := unstructured.NestedSlice(u.Object, "spec", "schedulingConstraints", "topology")
	if err != nil {
		return nil, fmt.Errorf("PodGroup %s: %w", u.GetName(), err)
	}
	if len(list) > gangcache.MaxLayers {
		return nil, fmt.Errorf(
			"PodGroup %s: spec.schedulingConstraints.topology may have %d keys at most", u.GetName(),
			gangcache.MaxLayers,
		)
	}
	var out []gangcache.Layer
	for _, item := range list {
		constraint, _ := item.(map[string]any)
		label, _ := constraint["key"].(string)
		if label == "" {
			return nil, fmt.Errorf(
				"PodGroup %s: spec.schedulingConstraints.topology: each needs a key, a label of nodes", u.GetName(),
			)
		}
		out = append(out, gangcache.Layer{Label: label, Required: true})
	}
	return out, nil
}

func (p *podGroups) put(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := gangcache.Key{Namespace: u.GetNamespace(), Name: u.GetName(), Native: true}
	spec, err := p.spec(u)
	p.coordinator.apply(p.coordinator.cache.SetPodGroup(key, spec, err, time.Now()))
}

func (p *podGroups) drop(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := gangcache.Key{Namespace: u.GetNamespace(), Name: u.GetName(), Native: true}
	p.coordinator.apply(p.coordinator.cache.RemovePodGroup(key, time.Now()))
}

// report writes into a PodGroup's conditions that it has no room, or with an empty message that it has its minimum.
// Nothing waits for it; of several messages for one PodGroup the last is written last.
func (p *podGroups) report(key gangcache.Key, message string) {
	p.mu.Lock()
	p.messages[key] = message
	p.mu.Unlock()
	p.queue.Add(key)
}

// next writes one condition; false where there will be no more. One that is refused because another writer was faster
// is written again.
func (p *podGroups) next(ctx context.Context, client dynamic.NamespaceableResourceInterface) bool {
	key, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(key)
	p.mu.Lock()
	message, ok := p.messages[key]
	delete(p.messages, key)
	p.mu.Unlock()
	if !ok {
		return true
	}
	c := metav1.Condition{
		Type: podGroupScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled",
		Message: "the gang has the places it needs",
	}
	if message != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Unschedulable", message
	}
	err := write(ctx, client.Namespace(key.Namespace), key.Name, c)
	if err == nil || apierrors.IsNotFound(err) {
		p.queue.Forget(key)
		return true
	}
	klog.FromContext(ctx).Error(err, "Writing the condition of a PodGroup; trying again", "podGroup", key.String())
	p.mu.Lock()
	if _, newer := p.messages[key]; !newer {
		p.messages[key] = message
	}
	p.mu.Unlock()
	p.queue.AddRateLimited(key)
	return true
}

// write sets one condition of a PodGroup and leaves the others.
func write(ctx context.Context, client dynamic.ResourceInterface, name string, c metav1.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	u, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading PodGroup %s: %w", name, err)
	}
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &status); err != nil {
		return fmt.Errorf("reading the conditions of PodGroup %s: %w", name, err)
	}
	if !meta.SetStatusCondition(&status.Status.Conditions, c) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// another writer's conditions are not overwritten
		"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()},
		"status":   status.Status,
	})
	if err != nil {
		return fmt.Errorf("encoding the conditions of PodGroup %s: %w", name, err)
	}
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("patching PodGroup %s: %w", name, err)
	}
	return nil
}
