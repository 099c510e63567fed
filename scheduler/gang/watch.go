package gang

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// watch records in the gang cache what becomes of pods.
func (c *coordinator) watch(ctx context.Context) error {
	pods := c.handle.SharedInformerFactory().Core().V1().Pods().Informer()
	registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.seen(nil, obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) { c.seen(old.(*corev1.Pod), obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok && !c.hasSucceeded(pod) {
				c.gone(pod)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	succeeded, err := c.watchSucceeded(ctx)
	if err != nil {
		return fmt.Errorf("watching pods that have succeeded: %w", err)
	}
	c.synced = func() bool { return registration.HasSynced() && succeeded() }
	nodes := c.handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if node, ok := obj.(*corev1.Node); ok {
			c.nodeGone(node.Name)
		}
	}}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return nil
}

// nodeGone makes members let go that hold a place on a node that was deleted: the API would bind them to it all the
// same.
func (c *coordinator) nodeGone(node string) {
	for _, uid := range c.cache.WaitingOn(node) {
		if w := c.handle.GetWaitingPod(types.UID(uid)); w != nil {
			w.Reject(Name, fmt.Sprintf("node %s, on which it held a place, was deleted", node))
		}
	}
}

// watchSucceeded enters pods that have succeeded: they count for their gangs, and kube-scheduler, to which they are as
// good as deleted, does not watch them. Only what a gang is known by is kept of them.
func (c *coordinator) watchSucceeded(ctx context.Context) (synced func() bool, err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(
		c.handle.ClientSet(), 0, informers.WithTransform(gangFields),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) {
			l.FieldSelector = "status.phase=" + string(corev1.PodSucceeded)
		}),
	)
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.succeeded(obj.(*corev1.Pod), true) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				c.succeeded(pod, false)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	return registration.HasSynced, nil
}

// gangFields is a pod without what no gang is known by.
func gangFields(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	annotations := map[string]string{}
	for k, v := range pod.Annotations {
		if strings.HasPrefix(k, gangcache.Prefix) {
			annotations[k] = v
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, Annotations: annotations,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName,
			SchedulingGroup: pod.Spec.SchedulingGroup,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// succeeded enters a pod that has succeeded, or that such a one is deleted.
func (c *coordinator) succeeded(pod *corev1.Pod, there bool) {
	if _, ok := c.gangOf(pod); !ok || pod.Status.Phase != corev1.PodSucceeded {
		return
	}
	c.mu.Lock()
	if there {
		c.ended[uidOf(pod)] = true
	} else {
		delete(c.ended, uidOf(pod))
	}
	c.mu.Unlock()
	if there {
		c.seen(nil, pod)
	} else {
		c.gone(pod)
	}
}

// hasSucceeded says whether a pod that is no longer watched is there all the same.
func (c *coordinator) hasSucceeded(pod *corev1.Pod) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ended[uidOf(pod)]
}

// seen enters a pod as it is now. Most pods of a cluster have no gang, and most updates change nothing that counts.
func (c *coordinator) seen(old, pod *corev1.Pod) {
	m, ok := c.member(pod)
	if !ok {
		if old != nil {
			if _, was := c.gangOf(old); was {
				c.gone(pod)
			}
		}
		if pod.Spec.NodeName != "" {
			c.clearEvictions(pod)
		}
		return
	}
	if old != nil && old.UID != pod.UID { // recreated under its name while the watch was away
		c.gone(old)
	}
	if m.State == gangcache.Absent {
		c.gone(pod)
		return
	}
	uid := uidOf(pod)
	c.mu.Lock()
	c.pods[uid] = pod
	c.mu.Unlock()
	c.apply(c.cache.Put(m, time.Now()))
	c.claimsGenerated(m.Gang, old, pod)
	if pod.Spec.NodeName != "" {
		c.clearEvictions(pod)
	}
	c.look(m.Gang, uid)
	c.reports.look(uid, missingClaim(pod), false)
}

// look reports on a pod of a gang that cannot be tried, and gives up what was kept for the gang.
func (c *coordinator) look(key gangcache.Key, uid gangcache.UID) {
	blocked, broken := c.cache.BlockingReason(uid)
	c.reports.look(uid, blocked, broken)
	if blocked != "" {
		c.dropNominations(key, c.cache.Membership(uid).Group)
	}
}

// clearEvictions forgets what a pod had evicted on its own: it has its place, or needs none.
func (c *coordinator) clearEvictions(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.evicted, gangcache.Key{Namespace: pod.Namespace, Name: pod.Name})
}

func (c *coordinator) gone(pod *corev1.Pod) {
	uid := uidOf(pod)
	key, ok := c.cache.GangOf(uid)
	c.clearEvictions(pod)
	c.mu.Lock()
	delete(c.pods, uid)
	delete(c.nominated, uid)
	c.mu.Unlock()
	c.reports.forget(uid)
	if !ok {
		return
	}
	group := c.cache.Membership(uid).Group
	c.apply(c.cache.Remove(uid, time.Now()))
	if other, ok := c.cache.AnyOf(key); ok {
		c.look(key, other)
		return
	}
	c.reports.close(key)
	c.mu.Lock()
	delete(c.awaiting, key)
	c.mu.Unlock()
	c.dropNominations(key, group)
}

// member is what the gang cache should know of a pod; ok is false for a pod without a gang.
func (c *coordinator) member(pod *corev1.Pod) (m gangcache.Member, ok bool) {
	m = gangcache.Member{
		UID: uidOf(pod), Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time,
		State: c.state(pod),
	}
	if pod.Status.Phase != corev1.PodSucceeded {
		m.Node = pod.Spec.NodeName
	}
	if m.Gang, ok = c.gangOf(pod); !ok || m.Gang.Native {
		return m, ok
	}
	m.Gang, m.Spec, m.Problem = gangcache.FromAnnotations(pod.Namespace, pod.Annotations, c.waiting)
	if slice, err := sliceOf(pod); m.Problem == nil {
		m.Slice, m.Problem = slice, err
	}
	return m, true
}

// gangOf is the gang that a pod declares, well or badly; ok is false for a pod without a gang.
func (c *coordinator) gangOf(pod *corev1.Pod) (key gangcache.Key, ok bool) {
	if group := pod.Spec.SchedulingGroup; c.native && group != nil && group.PodGroupName != nil {
		return gangcache.Key{Namespace: pod.Namespace, Name: *group.PodGroupName, Native: true}, true
	}
	key = gangcache.Key{Namespace: pod.Namespace, Name: pod.Annotations[gangcache.Prefix+gangcache.Name]}
	return key, gangcache.Declared(pod.Annotations)
}

// sliceOf is the slice that a pod gathers with.
func sliceOf(pod *corev1.Pod) (gangcache.Slice, error) {
	owner := ""
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		owner = ref.Name
	}
	return gangcache.SliceOf(pod.Annotations, pod.Labels, owner)
}

// state is where a pod stands.
func (c *coordinator) state(pod *corev1.Pod) gangcache.State {
	placed := pod.Spec.NodeName != ""
	switch {
	case placed && pod.DeletionTimestamp != nil:
		return gangcache.Leaving
	case placed && pod.Status.Phase == corev1.PodFailed:
		return gangcache.Failed
	case placed:
		return gangcache.Bound
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return gangcache.Absent
	case len(pod.Spec.SchedulingGates) > 0, !c.ours(pod):
		return gangcache.Held
	}
	return gangcache.Pending
}

// ours says whether the pod asks for one of this scheduler's profiles.
func (c *coordinator) ours(pod *corev1.Pod) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.profiles[pod.Spec.SchedulerName]
}
