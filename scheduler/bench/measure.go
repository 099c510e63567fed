package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tegen-dev/tegen/scheduler/bench/internal/markdown"
)

// patience is how long one trial may take: minutes on a busy machine.
const patience = 10 * time.Minute

// figure is what one trial took.
type figure struct {
	// First and Last are when the API had the first binding and the last, since the scheduler became leader. Of a gang
	// that is refused they are when the first pod was reported and the last, since that was made.
	First, Last time.Duration
	// CPU of the scheduler, user and system, from before the first pod was made.
	CPU time.Duration
	// Calls to the API server: bindings, events, conditions, from leadership to the last binding.
	Calls int
	// Verdict is the scheduler's CPU from before the last pod of a gang that is refused was made to the first word.
	Verdict time.Duration
	// Memory is the most that was resident.
	Memory int64
}

func (f figure) String() string {
	return fmt.Sprintf("first after %s, all after %s, %s of CPU, %d API calls, %s", markdown.Seconds(f.First),
		markdown.Seconds(f.Last), markdown.Seconds(f.CPU), f.Calls, megabytes(float64(f.Memory)))
}

// try runs a trial from an empty cluster to an empty cluster, with a scheduler of its own: none profits from, or pays
// for, what was before.
func (b *bench) try(ctx context.Context, t trial, o options) (f figure, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v", patience))
	defer cancel()
	c := b.contenders[t.by]
	s, err := b.standBy(ctx, c)
	if err != nil {
		return f, err
	}
	alive, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.process.Done():
			stop(fmt.Errorf("%s ended", t.by))
		case <-alive.Done():
		}
	}()
	if err = b.podGroups(alive, t, c); err == nil {
		if t.refuse {
			f, err = b.refuse(alive, s, t, o.gpusToRefuse())
		} else {
			f, err = b.place(alive, s, t, o.profiles)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w; see %s", err, s.process.Log())
	}
	return f, errors.Join(err, s.process.Kill(), b.clear(ctx, c), b.Err())
}

// place makes all pods while the scheduler may only watch, then makes it leader and waits until all are bound.
func (b *bench) place(ctx context.Context, s *standby, t trial, profiles string) (f figure, err error) {
	cpu, err := s.cpu()
	if err != nil {
		return f, err
	}
	if err := b.create(ctx, t, s.contender, t.pods, 0); err != nil {
		return f, err
	}
	if err := s.awaitIdle(ctx, t.pods); err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bound, err := b.bindings(ctx, t.pods)
	if err != nil {
		return f, err
	}
	calls, err := s.calls(ctx)
	if err != nil {
		return f, err
	}
	profiled := s.profile(ctx, profiles, t)
	start, err := s.lead(ctx)
	if err != nil {
		return f, err
	}
	times := <-bound
	if times.err != nil {
		return f, times.err
	}
	after, err := s.cpu()
	if err != nil {
		return f, err
	}
	memory, err := s.memory()
	if err != nil {
		return f, err
	}
	called, err := s.calls(ctx)
	f = figure{
		First: times.first.Sub(start), Last: times.last.Sub(start), CPU: after - cpu, Calls: called - calls,
		Memory: memory,
	}
	return f, errors.Join(err, <-profiled)
}

// moments are when the first and the last of some pods were seen.
type moments struct {
	first, last time.Time
	err         error
}

// bindings sends when n pods have been bound. The API server itself picks the pods that have a node, so that each is
// one event.
func (b *bench) bindings(ctx context.Context, n int) (<-chan moments, error) {
	pods := b.Client().CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	out := make(chan moments, 1)
	go func() {
		var m moments
		seen := map[string]bool{}
		bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		m.err = b.follow(ctx, pods, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: bound},
			func(o metav1.Object) bool {
				m.last = time.Now()
				if len(seen) == 0 {
					m.first = m.last
				}
				seen[o.GetName()] = true
				return len(seen) == n
			})
		if m.err != nil {
			m.err = fmt.Errorf("%w; %d of %d pods are bound", m.err, len(seen), n)
		}
		out <- m
	}()
	return out, nil
}

// follow shows the objects that change until last says that this was the last. The API server closes watches whose
// reader a busy machine slows down; it goes on where such a one ended.
func (b *bench) follow(ctx context.Context, of interface {
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}, o metav1.ListOptions, last func(metav1.Object) bool,
) error {
	for {
		events, err := of.Watch(ctx, o)
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		done, err := drain(events, &o.ResourceVersion, last)
		events.Stop()
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("watching: %w", context.Cause(ctx))
		case err != nil:
			return err
		}
		b.progress.Printf("the API server closed a watch; it goes on, but a figure may be too large")
	}
}

// drain reads a watch to its end.
func drain(events watch.Interface, version *string, last func(metav1.Object) bool) (done bool, err error) {
	for event := range events.ResultChan() {
		o, ok := event.Object.(metav1.Object)
		if !ok {
			return false, fmt.Errorf("watching: %w", apierrors.FromObject(event.Object))
		}
		*version = o.GetResourceVersion()
		if last(o) {
			return true, nil
		}
	}
	return false, nil
}
