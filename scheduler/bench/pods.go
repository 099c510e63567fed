package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

const (
	namespace    = "default"
	podsPerNode  = 90 // of 96 CPUs
	gpusPerNode  = 8
	nodesPerRack = 20
	writers      = 16 // pods that are made at a time
)

// pod is the i-th of a trial. All pods ask for the same, whoever places them; those that are to be refused for GPUs
// too.
func (t trial) pod(c contender, i, gpus int) *corev1.Pod {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1"),
		corev1.ResourceMemory: resource.MustParse("2Gi"),
	}
	if gpus > 0 {
		requests[cluster.GPU] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("pod-%05d", i),
			Labels: map[string]string{"app": "bench"},
		},
		Spec: corev1.PodSpec{
			SchedulerName: c.profile,
			Containers: []corev1.Container{{
				Name: "worker", Image: "example.com/worker", Resources: corev1.ResourceRequirements{
					Requests: requests,
					Limits:   requests,
				},
			}},
		},
	}
	if t.gang == 0 {
		return pod
	}
	dialects[c.dialect].member(pod, t.gangName(i/t.gang), t.gang)
	if t.gathers != "" {
		pod.Annotations[gangcache.Prefix+gangcache.TopologyKey] = fmt.Sprintf(
			`{"gatherStrategy":[{"layer":%q,"strategy":%q}]}`, cluster.RackLabel, t.gathers,
		)
	}
	return pod
}

func (t trial) gangName(i int) string { return fmt.Sprintf("gang-%04d", i) }

// create makes the first n pods of a trial, several at a time, in their order.
func (b *bench) create(ctx context.Context, t trial, c contender, n, gpus int) error {
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range todo {
				if _, err := b.Client().CoreV1().Pods(namespace).Create(ctx, t.pod(c, i, gpus),
					metav1.CreateOptions{}); err != nil {
					errs[w] = fmt.Errorf("making pod %d: %w", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// clear deletes all pods and groups of a trial at once, and waits until the API has none.
func (b *bench) clear(ctx context.Context, c contender) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := b.Client().CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	d := dialects[c.dialect]
	if d.group != nil {
		if err := b.Dynamic().Resource(d.of).Namespace(namespace).DeleteCollection(ctx, now,
			metav1.ListOptions{}); err != nil {
			return fmt.Errorf("deleting PodGroups: %w", err)
		}
	}
	return until(ctx, 50*time.Millisecond, "all pods and PodGroups to be gone", func() (string, bool) {
		pods, err := b.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err.Error(), false
		}
		if d.group == nil || len(pods.Items) > 0 {
			return "some pods are left", len(pods.Items) == 0
		}
		groups, err := b.Dynamic().Resource(d.of).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err.Error(), false
		}
		return "some PodGroups are left", len(groups.Items) == 0
	})
}

// until polls for a state until the context ends, and then says what there was instead.
func until(ctx context.Context, interval time.Duration, what string, state func() (string, bool)) error {
	for {
		saw, ok := state()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last saw: %s", what, context.Cause(ctx), saw)
		case <-time.After(interval):
		}
	}
}
