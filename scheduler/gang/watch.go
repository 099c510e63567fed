package gang

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// watch records in the gang cache what becomes of pods.
func (o *office) watch(ctx context.Context) error {
	registration, err := o.handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.seen(nil, obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) { o.seen(old.(*corev1.Pod), obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok && !o.hasSucceeded(pod) {
				o.gone(pod)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	succeeded, err := o.watchSucceeded(ctx)
	if err != nil {
		return fmt.Errorf("watching pods that have succeeded: %w", err)
	}
	o.synced = func() bool { return registration.HasSynced() && succeeded() }
	return nil
}

// watchSucceeded enters pods that have succeeded: they count for their gangs, and kube-scheduler, to which they are as
// good as deleted, does not watch them. Only what a gang is known by is kept of them.
func (o *office) watchSucceeded(ctx context.Context) (synced func() bool, err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(o.handle.ClientSet(), 0, informers.WithTransform(membership),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.FieldSelector = "status.phase=" + string(corev1.PodSucceeded) }))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { o.succeeded(obj.(*corev1.Pod), true) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				o.succeeded(pod, false)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	return registration.HasSynced, nil
}

// membership is a pod without what no gang is known by.
func membership(obj any) (any, error) {
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
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName, SchedulingGroup: pod.Spec.SchedulingGroup},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// succeeded enters a pod that has succeeded, or that such a one is deleted.
func (o *office) succeeded(pod *corev1.Pod, there bool) {
	if _, ok := o.member(pod); !ok || pod.Status.Phase != corev1.PodSucceeded {
		return
	}
	o.mu.Lock()
	if there {
		o.ended[uidOf(pod)] = true
	} else {
		delete(o.ended, uidOf(pod))
	}
	o.mu.Unlock()
	if there {
		o.seen(nil, pod)
	} else {
		o.gone(pod)
	}
}

// hasSucceeded says whether a pod that is no longer watched is there all the same.
func (o *office) hasSucceeded(pod *corev1.Pod) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.ended[uidOf(pod)]
}

// seen enters a pod as it is now. Most pods of a cluster have no gang, and most updates change nothing that counts.
func (o *office) seen(old, pod *corev1.Pod) {
	m, ok := o.member(pod)
	if !ok {
		if old != nil {
			if _, was := o.member(old); was {
				o.gone(pod)
			}
		}
		if pod.Spec.NodeName != "" {
			o.settled(pod)
		}
		return
	}
	if old != nil && old.UID != pod.UID { // recreated under its name while the watch was away
		o.gone(old)
	}
	if m.State == gangcache.Absent {
		o.gone(pod)
		return
	}
	uid := uidOf(pod)
	o.mu.Lock()
	o.pods[uid] = pod
	o.mu.Unlock()
	o.apply(o.cache.Put(m, time.Now()))
	if pod.Spec.NodeName != "" {
		o.settled(pod)
	}
	o.look(m.Gang, uid)
}

// look reports on a pod of a gang that cannot be tried, and gives up what was kept for the gang.
func (o *office) look(key gangcache.Key, uid gangcache.UID) {
	o.reports.look(uid)
	if hurdle, _ := o.cache.BlockingReason(uid); hurdle != "" {
		o.breakPromises(key, o.cache.Membership(uid).Group)
	}
}

// settled forgets what a pod had evicted on its own: it has its place, or needs none.
func (o *office) settled(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.evicted, gangcache.Key{Namespace: pod.Namespace, Name: pod.Name})
}

func (o *office) gone(pod *corev1.Pod) {
	uid := uidOf(pod)
	key, ok := o.cache.GangOf(uid)
	o.settled(pod)
	o.mu.Lock()
	delete(o.pods, uid)
	delete(o.promised, uid)
	o.mu.Unlock()
	o.reports.forget(uid)
	if !ok {
		return
	}
	group := o.cache.Membership(uid).Group
	o.apply(o.cache.Remove(uid, time.Now()))
	if other, ok := o.cache.AnyOf(key); ok {
		o.look(key, other)
		return
	}
	o.reports.close(key)
	o.breakPromises(key, group)
}

// member is what the gang cache should know of a pod; ok is false for a pod without a gang.
func (o *office) member(pod *corev1.Pod) (m gangcache.Member, ok bool) {
	m = gangcache.Member{UID: uidOf(pod), Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time, State: o.state(pod)}
	if group := pod.Spec.SchedulingGroup; o.native && group != nil && group.PodGroupName != nil {
		m.Gang = gangcache.Key{Namespace: pod.Namespace, Name: *group.PodGroupName, Native: true}
		return m, true
	}
	if !gangcache.Declared(pod.Annotations) {
		return m, false
	}
	m.Gang, m.Spec, m.Problem = gangcache.FromAnnotations(pod.Namespace, pod.Annotations, o.waiting)
	return m, true
}

// state is where a pod stands.
func (o *office) state(pod *corev1.Pod) gangcache.State {
	placed := pod.Spec.NodeName != ""
	switch {
	case placed && (pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil):
		return gangcache.Failed
	case placed:
		return gangcache.Bound
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return gangcache.Absent
	case len(pod.Spec.SchedulingGates) > 0, !o.ours(pod):
		return gangcache.Held
	}
	return gangcache.Pending
}

// ours says whether the pod asks for one of this scheduler's profiles.
func (o *office) ours(pod *corev1.Pod) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.profiles[pod.Spec.SchedulerName]
}
