// Package gang is the plugin TegenGang: pods that declare a gang are placed
// together or not at all. A gang is declared by Koordinator's annotations or by
// a PodGroup of scheduling.k8s.io, so that one set of manifests works on
// Koordinator's scheduler and on this one.
//
// What may happen to a gang is decided in package gangcache. Here its decisions
// meet kube-scheduler: one member of a gang looks for room on behalf of all
// (fit.go), the others enter the queue once there is room, hold their places
// until the minimum is reached (permit.go), and bind together. A gang without
// room holds nothing; one pod of it waits for a change in the cluster.
package gang

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/tegen-dev/tegen/scheduler/args"
	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// Name of the plugin in a KubeSchedulerConfiguration. GangScheduling is kube-scheduler's own.
const Name = "TegenGang"

var (
	_ fwk.PreEnqueuePlugin  = &Gang{}
	_ fwk.QueueSortPlugin   = &Gang{}
	_ fwk.EnqueueExtensions = &Gang{}
	_ fwk.PreFilterPlugin   = &Gang{}
	_ fwk.FilterPlugin      = &Gang{}
	_ fwk.PostFilterPlugin  = &Gang{}
	_ fwk.ReservePlugin     = &Gang{}
	_ fwk.PermitPlugin      = &Gang{}
	_ fwk.PostBindPlugin    = &Gang{}
	_ fwk.SignPlugin        = &Gang{}
)

// Args are the plugin's args in a KubeSchedulerConfiguration. All profiles read those of the first.
type Args struct {
	// DefaultWaitingTimeSeconds is how long placed members wait for the others where the gang does not say; 600 by
	// default, as Koordinator's.
	DefaultWaitingTimeSeconds *int64 `json:"defaultWaitingTimeSeconds,omitempty"`
}

func (a Args) waiting() (time.Duration, error) {
	if a.DefaultWaitingTimeSeconds == nil {
		return 10 * time.Minute, nil
	}
	if *a.DefaultWaitingTimeSeconds < 1 {
		return 0, fmt.Errorf("defaultWaitingTimeSeconds is %d: it must be at least 1", *a.DefaultWaitingTimeSeconds)
	}
	return time.Duration(*a.DefaultWaitingTimeSeconds) * time.Second, nil
}

// Gang is the plugin of one profile. All profiles of a process share one gang cache: preemption must know the gangs of all.
type Gang struct {
	*office
	profile   framework.Framework
	preempter *defaultpreemption.DefaultPreemption // for pods without a gang
}

// office is what the profiles share.
type office struct {
	cache   *gangcache.Cache
	waiting time.Duration
	native  bool // PodGroups are this plugin's business, not kube-scheduler's own
	reports *reporter
	groups  *podGroups
	binds   *turnstile
	synced  func() bool // all pods that there were at the start are in the gang cache

	mu       sync.RWMutex
	handle   framework.Framework             // of the first profile: queue, waiting pods and clients are the process's
	profiles map[string]bool                 // names of the profiles that have the plugin
	pods     map[gangcache.UID]*corev1.Pod   // members as they were last seen
	ended    map[gangcache.UID]bool          // members that have succeeded
	evicted  map[gangcache.Key][]*corev1.Pod // pods that were told to leave to make room for a gang
	promised map[gangcache.UID]promise       // members for which room is kept until those have left
}

// newGang makes the plugin of a profile. kube-scheduler makes the plugins of one profile after another.
func (s *scheduler) newGang(ctx context.Context, configuration runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	f, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("%s needs the framework of kube-scheduler, not %T", Name, handle)
	}
	if s.office == nil {
		o, err := open(ctx, configuration, f)
		if err != nil {
			return nil, err
		}
		s.office = o
	}
	return s.office.join(ctx, f)
}

// open makes what the profiles share, and starts to watch.
func open(ctx context.Context, configuration runtime.Object, handle framework.Framework) (*office, error) {
	var a Args
	if err := args.Decode(configuration, &a); err != nil {
		return nil, fmt.Errorf("reading the args of %s: %w", Name, err)
	}
	waiting, err := a.waiting()
	if err != nil {
		return nil, fmt.Errorf("reading the args of %s: %w", Name, err)
	}
	o := &office{
		cache: gangcache.New(), waiting: waiting, handle: handle,
		native:   !utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload),
		profiles: map[string]bool{}, pods: map[gangcache.UID]*corev1.Pod{}, ended: map[gangcache.UID]bool{},
		evicted: map[gangcache.Key][]*corev1.Pod{}, promised: map[gangcache.UID]promise{},
	}
	o.reports = newReporter(o)
	o.binds = newTurnstile(func(uid gangcache.UID) { o.answer(uid, time.Millisecond) })
	register(o.cache.Stats)
	if err := o.watch(ctx); err != nil {
		return nil, err
	}
	go o.reports.run(ctx)
	if o.native {
		o.groups = newPodGroups(o)
		go o.groups.run(ctx)
	}
	return o, nil
}

// join makes the plugin of one more profile.
func (o *office) join(ctx context.Context, handle framework.Framework) (*Gang, error) {
	o.mu.Lock()
	o.profiles[handle.ProfileName()] = true
	o.mu.Unlock()
	// The values that kube-scheduler gives its own preemption where a configuration says nothing.
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	preempter, err := defaultpreemption.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, fmt.Errorf("making the preemption of single pods: %w", err)
	}
	g := &Gang{office: o, profile: handle, preempter: preempter}
	preempter.IsEligiblePod = g.goesAlone
	return g, nil
}

// Name is the plugin's.
func (*Gang) Name() string { return Name }

func uidOf(pod *corev1.Pod) gangcache.UID { return gangcache.UID(pod.UID) }

// apply carries out a change that the gang cache returned. It must not be called with a lock held.
func (o *office) apply(c gangcache.Change) {
	for _, uid := range c.Reject {
		o.answer(uid, time.Millisecond)
	}
	o.binds.enter(c.Allow...)
	o.wake(c.Wake)
	for _, a := range c.Admitted {
		o.reports.placed(a)
	}
	if len(c.Later) > 0 {
		time.AfterFunc(c.After, func() { o.wake(c.Later) })
	}
}

// answer tells a pod that waits for its gang what was decided. One that the framework does not count among those that
// wait yet, as Permit has only just returned, is told after a pause, which doubles up to a second.
func (o *office) answer(uid gangcache.UID, pause time.Duration) {
	bind, letGo := o.cache.Answer(uid)
	if !bind && !letGo {
		o.binds.leave(uid)
		return
	}
	w := o.handle.GetWaitingPod(types.UID(uid))
	switch {
	case w == nil && pause < time.Second:
		time.AfterFunc(pause, func() { o.answer(uid, 2*pause) })
	case w == nil:
		o.binds.leave(uid)
	case bind:
		w.Allow(Name)
	default:
		w.Reject(Name, "another member of its gang found no place")
	}
}

// wake lets pods be tried. Those that the queue does not know yet are tried when they enter it.
func (o *office) wake(uids []gangcache.UID) {
	if len(uids) == 0 {
		return
	}
	pods := make(map[string]*corev1.Pod, len(uids))
	o.mu.RLock()
	for _, uid := range uids {
		if p := o.pods[uid]; p != nil {
			pods[p.Namespace+"/"+p.Name] = p
		}
	}
	o.mu.RUnlock()
	o.handle.Activate(klog.Background(), pods)
}
