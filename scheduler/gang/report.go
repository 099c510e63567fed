package gang

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

const (
	// gathering is how long a gang may lack pods before that is reported: controllers create them one after another.
	gathering = 3 * time.Second
	// repeat is how often at most something new is reported of a pod: what there is room for may change with every pod
	// that goes.
	repeat = 10 * time.Second
	// others is how long the reports on the other members of a gang wait once it has found no room: kube-scheduler
	// writes of the one that it tried meanwhile, and the first word does not wait for the last.
	others = 200 * time.Millisecond
	// reporters is how many pods are reported on at a time.
	reporters = 8
)

// reported is a message, and when it was reported.
type reported struct {
	message string
	at      time.Time
}

// reporter reports to users why the pods of a gang are not placed. kube-scheduler reports on the one pod that it tried;
// the reporter says the same of the others, as an event and as the condition PodScheduled, which autoscalers of
// clusters count. It works in the background, pod by pod, and repeats nothing.
type reporter struct {
	coordinator *coordinator
	queue       workqueue.TypedRateLimitingInterface[gangcache.UID]

	leads func(context.Context) bool

	mu      sync.Mutex
	last    map[gangcache.UID]reported // what was reported of a pod
	verdict map[gangcache.Key]string   // why a gang found no room
}

func newReporter(c *coordinator, leads func(context.Context) bool) *reporter {
	return &reporter{
		coordinator: c,
		queue:       workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[gangcache.UID]()),
		leads:       leads,
		last:        map[gangcache.UID]reported{}, verdict: map[gangcache.Key]string{},
	}
}

// run reports until the context ends.
func (r *reporter) run(ctx context.Context) {
	defer r.queue.ShutDown()
	for range reporters {
		go func() {
			for r.next(ctx) {
			}
		}()
	}
	<-ctx.Done()
}

// next reports on one pod; false where there will be no more.
func (r *reporter) next(ctx context.Context) bool {
	uid, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(uid)
	again, err := r.report(ctx, uid)
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Reporting on a member of a gang; trying again", "uid", uid)
		r.queue.AddRateLimited(uid)
	default:
		r.queue.Forget(uid)
		if again > 0 {
			r.queue.AddAfter(uid, again)
		}
	}
	return true
}

// look reports on a pod of a gang that cannot be tried: at once where something must be mended, after a while where
// pods are missing that may be on their way.
func (r *reporter) look(uid gangcache.UID, blocked string, broken bool) {
	switch {
	case broken:
		r.queue.Add(uid)
	case blocked != "":
		r.queue.AddAfter(uid, gathering)
	}
}

// forget drops what is known of a pod that has gone.
func (r *reporter) forget(uid gangcache.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, uid)
}

// close drops what is known of a gang that has no pods any more.
func (r *reporter) close(key gangcache.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.verdict, key)
}

// refused reports to the other members of a gang what kube-scheduler says of the one that it tried.
func (r *reporter) refused(uid gangcache.UID, wants []gangcache.Want, message string) {
	r.coordinator.metrics.refusals.Inc()
	r.mu.Lock()
	r.last[uid] = reported{message, time.Now()}
	r.mu.Unlock()
	r.spread(uid, wants, message)
}

// spread reports to the other members of a gang what keeps one of them, and so all.
func (r *reporter) spread(uid gangcache.UID, wants []gangcache.Want, message string) {
	r.mu.Lock()
	for _, w := range wants {
		r.verdict[w.Gang] = message
	}
	r.mu.Unlock()
	for _, w := range wants {
		if w.Gang.Native {
			r.coordinator.groups.report(w.Gang, message)
		}
	}
	time.AfterFunc(others, func() {
		for _, w := range wants {
			for _, other := range w.Candidates {
				if other != uid {
					r.queue.Add(other)
				}
			}
		}
	})
}

// placed ends a gang's refusal.
func (r *reporter) placed(a gangcache.Admission) {
	r.coordinator.metrics.admissions.Inc()
	r.coordinator.metrics.admissionSeconds.Observe(a.Waited.Seconds())
	r.close(a.Gang)
	if a.Gang.Native {
		r.coordinator.groups.report(a.Gang, "")
	}
}

// message is what there is to say of a pod, "" for nothing: it is placed or being placed, or kube-scheduler says it,
// which is silent on a pod without its ResourceClaims.
func (r *reporter) message(pod *corev1.Pod) string {
	uid := uidOf(pod)
	if blocked, _ := r.coordinator.cache.BlockingReason(uid); blocked != "" {
		return blocked
	}
	if why := missingClaim(pod); why != "" {
		r.spread(uid, r.coordinator.cache.Attempt(uid).Wants, why) // nothing if others do not wait for this one
		return why
	}
	v := r.coordinator.cache.Admit(uid)
	if v.OK {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdict[v.Gang]
}

// report writes what there is to say of a pod, unless it was reported; again is when to look at it once more.
func (r *reporter) report(ctx context.Context, uid gangcache.UID) (again time.Duration, err error) {
	r.coordinator.mu.RLock()
	pod := r.coordinator.pods[uid]
	r.coordinator.mu.RUnlock()
	if pod == nil || pod.Spec.NodeName != "" {
		return 0, nil
	}
	message := r.message(pod)
	if message == "" {
		return 0, nil
	}
	if !r.leads(ctx) {
		return repeat, nil // the scheduler that leads reports it, and this one may have to take over
	}
	r.mu.Lock()
	last := r.last[uid]
	r.mu.Unlock()
	if last.message == message {
		return 0, nil
	}
	if wait := time.Until(last.at.Add(repeat)); wait > 0 {
		return wait, nil
	}
	if err := r.write(ctx, pod, message); err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("reporting on pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.mu.Lock()
	r.last[uid] = reported{message, time.Now()}
	r.mu.Unlock()
	return 0, nil
}

// write puts the message where users and autoscalers look.
func (r *reporter) write(ctx context.Context, pod *corev1.Pod, message string) error {
	note := message
	if len(note) > validation.NoteLengthLimit {
		note = strings.ToValidUTF8(note[:validation.NoteLengthLimit], "") // cut inside a character, it would be none
	}
	r.coordinator.handle.EventRecorder().Eventf(
		pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", note,
	)
	status := pod.Status.DeepCopy()
	changed := podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: message,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(
			&pod.Status, pod.Generation, corev1.PodScheduled,
		),
	})
	if !changed {
		return nil
	}
	return util.PatchPodStatus(ctx, r.coordinator.handle.ClientSet(), pod.Name, pod.Namespace, &pod.Status, status)
}
