// Package gang is the plugin TegenGang: pods that declare a gang are placed together or not at all. A gang is declared
// by Koordinator's annotations or by a PodGroup of scheduling.k8s.io, so that one set of manifests works on
// Koordinator's scheduler and on this one.
//
// What may happen to a gang is decided in package gangcache. Here its decisions meet kube-scheduler: one member of a
// gang looks for room on behalf of all (simulation.go), the others enter the queue once there is room, hold their
// places until the minimum is reached (permit.go), and bind together. A gang without room holds nothing; one pod of it
// waits for a change in the cluster.
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

// Gang is the plugin of one profile. All profiles of a process share one gang cache: preemption must know the gangs of
// all.
type Gang struct {
	shared    *coordinator
	profile   framework.Framework
	preempter *defaultpreemption.DefaultPreemption // for pods without a gang
	indexes   []int                                // 0, 1, 2 and so on, for dry runs: one at a time
}

// coordinator is what the profiles share.
type coordinator struct {
	cache   *gangcache.Cache
	waiting time.Duration
	native  bool // PodGroups are this plugin's business, not kube-scheduler's own
	metrics *gangMetrics
	reports *reporter
	groups  *podGroups
	binds   *bindLimiter
	synced  func() bool // all pods that there were at the start are in the gang cache

	mu        sync.RWMutex
	handle    framework.Framework             // of the first profile: queue, waiting pods and clients are the process's
	profiles  map[string]bool                 // names of the profiles that have the plugin
	pods      map[gangcache.UID]*corev1.Pod   // members as they were last seen
	ended     map[gangcache.UID]bool          // members that have succeeded
	evicted   map[gangcache.Key][]*corev1.Pod // pods that are being evicted to make room for a gang
	nominated map[gangcache.UID]nomination    // members for which room is kept until those have left
	awaiting  map[gangcache.Key]gangcache.UID // pods that look for room again when members get their ResourceClaims
}

// newGang makes the plugin of a profile. kube-scheduler makes the plugins of one profile after another.
func (s *scheduler) newGang(ctx context.Context, configuration runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	f, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("%s needs the framework of kube-scheduler, not %T", Name, handle)
	}
	if s.coordinator == nil {
		c, err := s.open(ctx, configuration, f)
		if err != nil {
			return nil, err
		}
		s.coordinator = c
	}
	return s.coordinator.join(ctx, f)
}

// open makes what the profiles share, and starts to watch.
func (s *scheduler) open(
	ctx context.Context, configuration runtime.Object, handle framework.Framework,
) (*coordinator, error) {
	var a Args
	if err := args.Decode(configuration, &a); err != nil {
		return nil, fmt.Errorf("reading the args of %s: %w", Name, err)
	}
	waiting, err := a.waiting()
	if err != nil {
		return nil, fmt.Errorf("reading the args of %s: %w", Name, err)
	}
	c := &coordinator{
		cache: gangcache.New(), waiting: waiting, handle: handle,
		native:   !utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload),
		profiles: map[string]bool{}, pods: map[gangcache.UID]*corev1.Pod{}, ended: map[gangcache.UID]bool{},
		evicted: map[gangcache.Key][]*corev1.Pod{}, nominated: map[gangcache.UID]nomination{},
		awaiting: map[gangcache.Key]gangcache.UID{},
	}
	c.metrics = newMetrics(s.registry, c.cache.Stats)
	c.reports = newReporter(c, s.election.leads)
	c.binds = newBindLimiter(func(uid gangcache.UID) { c.answer(uid, time.Millisecond) })
	if err := c.watch(ctx); err != nil {
		return nil, err
	}
	go c.reports.run(ctx)
	if c.native {
		c.groups = newPodGroups(c)
		go c.groups.run(ctx)
	}
	return c, nil
}

// join makes the plugin of one more profile.
func (c *coordinator) join(ctx context.Context, handle framework.Framework) (*Gang, error) {
	c.mu.Lock()
	c.profiles[handle.ProfileName()] = true
	c.mu.Unlock()
	// The values that kube-scheduler gives its own preemption where a configuration says nothing.
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	preempter, err := defaultpreemption.New(
		ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate),
	)
	if err != nil {
		return nil, fmt.Errorf("making the preemption of single pods: %w", err)
	}
	g := &Gang{shared: c, profile: handle, preempter: preempter}
	preempter.IsEligiblePod = g.goesAlone
	return g, nil
}

// Name is the plugin's.
func (*Gang) Name() string { return Name }

func uidOf(pod *corev1.Pod) gangcache.UID { return gangcache.UID(pod.UID) }

// apply carries out a change that the gang cache returned. It must not be called with a lock held.
func (c *coordinator) apply(change gangcache.Change) {
	for _, uid := range change.Reject {
		c.answer(uid, time.Millisecond)
	}
	c.binds.add(change.Allow...)
	c.wake(change.Wake)
	for _, a := range change.Admitted {
		c.reports.placed(a)
	}
	if len(change.Later) > 0 {
		time.AfterFunc(change.After, func() { c.wake(change.Later) })
	}
}

// answer lets a waiting pod bind or rejects it, as was decided. One that the framework does not count among those that
// wait yet, as Permit has only just returned, is answered after a pause, which doubles up to a second.
func (c *coordinator) answer(uid gangcache.UID, pause time.Duration) {
	bind, letGo := c.cache.Answer(uid)
	if !bind && !letGo {
		c.binds.done(uid)
		return
	}
	w := c.handle.GetWaitingPod(types.UID(uid))
	switch {
	case w == nil && pause < time.Second:
		time.AfterFunc(pause, func() { c.answer(uid, 2*pause) })
	case w == nil:
		c.binds.done(uid)
	case bind:
		w.Allow(Name)
	default:
		w.Reject(Name, "another member of its gang found no place")
	}
}

// wake lets pods be tried. Those that the queue does not know yet are tried when they enter it.
func (c *coordinator) wake(uids []gangcache.UID) {
	if len(uids) == 0 {
		return
	}
	pods := make(map[string]*corev1.Pod, len(uids))
	c.mu.RLock()
	for _, uid := range uids {
		if p := c.pods[uid]; p != nil {
			pods[p.Namespace+"/"+p.Name] = p
		}
	}
	c.mu.RUnlock()
	c.handle.Activate(klog.Background(), pods)
}
