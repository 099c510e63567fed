package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuse makes a gang that does not fit, under a scheduler that leads already. Its last pod is made when the scheduler
// has all others and is quiet, and the clock starts before the request that makes it. The gang is refused when an event
// or a condition says of it how many pods it needs and for how many there is room; all are reported when every pod has
// that condition.
func (b *bench) refuse(ctx context.Context, s *standby, t trial, gpus int) (f figure, err error) {
	cpu, err := s.cpu()
	if err != nil {
		return f, err
	}
	if _, err := s.lead(ctx); err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan struct{})
	reported, err := b.refusals(ctx, t, first)
	if err != nil {
		return f, err
	}
	if err := b.create(ctx, t, s.contender, t.pods-1, gpus); err != nil {
		return f, err
	}
	if err := s.awaitIdle(ctx, t.pods-1); err != nil {
		return f, err
	}
	before, err := s.cpu()
	if err != nil {
		return f, err
	}
	start := time.Now()
	if _, err := b.Client().CoreV1().Pods(namespace).Create(ctx, t.pod(s.contender, t.pods-1, gpus),
		metav1.CreateOptions{}); err != nil {
		return f, fmt.Errorf("making the last pod: %w", err)
	}
	verdict, err := s.cpuAt(ctx, first)
	if err != nil {
		return f, err
	}
	var m moments
	select {
	case m = <-reported:
	case <-ctx.Done():
		return f, fmt.Errorf("waiting for the gang to be refused: %w", context.Cause(ctx))
	}
	if m.err != nil {
		return f, m.err
	}
	after, err := s.cpu()
	if err != nil {
		return f, err
	}
	f = figure{First: m.first.Sub(start), Last: m.last.Sub(start), CPU: after - cpu, Verdict: verdict - before}
	f.Memory, err = s.memory()
	return f, err
}

// cpuAt is what the scheduler has used when a channel is closed.
func (s *standby) cpuAt(ctx context.Context, when <-chan struct{}) (time.Duration, error) {
	select {
	case <-when:
		return s.cpu()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for the gang to be refused: %w", context.Cause(ctx))
	}
}

// sighting is a refusal that was seen: a pod's condition, or with no pod an event.
type sighting struct {
	pod string
	at  time.Time
	err error
}

// refusals sends when the first event or condition refused the trial's gang, and when the last of its pods had the
// condition.
func (b *bench) refusals(ctx context.Context, t trial, first chan<- struct{}) (<-chan moments, error) {
	words := fmt.Sprintf("gang %s/%s needs %d pods at once and has room for ", namespace, t.gangName(0), t.gang)
	pods, events := b.Client().CoreV1().Pods(namespace), b.Client().EventsV1().Events(namespace)
	// There is no pod, so that this version will do for both.
	list, err := events.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	sightings := make(chan sighting, t.pods)
	send := func(s sighting) {
		select {
		case sightings <- s:
		case <-ctx.Done(): // nobody listens any more
		}
	}
	look := func(o metav1.Object) bool {
		switch o := o.(type) {
		case *corev1.Pod:
			if strings.Contains(scheduled(o), words) {
				send(sighting{pod: o.Name, at: time.Now()})
			}
		case *eventsv1.Event:
			if strings.Contains(o.Note, words) {
				send(sighting{at: time.Now()})
			}
		}
		return false
	}
	from := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	go func() { send(sighting{err: b.follow(ctx, pods, from, look)}) }()
	go func() { send(sighting{err: b.follow(ctx, events, from, look)}) }()
	out := make(chan moments, 1)
	go func() { out <- collect(sightings, t.pods, first) }()
	return out, nil
}

// collect waits until n pods were refused. It closes first at the first sighting, whatever that is.
func collect(sightings <-chan sighting, n int, first chan<- struct{}) moments {
	var m moments
	seen := map[string]bool{}
	for len(seen) < n {
		s := <-sightings
		if first != nil {
			close(first)
			first = nil
		}
		if s.err != nil {
			m.err = fmt.Errorf("%w; %d of %d pods are refused", s.err, len(seen), n)
			return m
		}
		if m.first.IsZero() {
			m.first = s.at
		}
		if s.pod != "" {
			seen[s.pod], m.last = true, s.at
		}
	}
	return m
}

// scheduled is the message of a pod's condition PodScheduled where that is false.
func scheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
