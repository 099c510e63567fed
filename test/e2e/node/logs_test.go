package node

import (
	"bufio"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// podLog watches the pods of a job and reads the logs of all their containers, each from its start to its end.
type podLog struct {
	j       *testJob
	ctx     context.Context
	cancel  context.CancelFunc
	readers sync.WaitGroup

	mu       sync.Mutex
	pods     map[string]*corev1.Pod // the last state of each, by UID, of those that are gone too
	order    []string
	reading  map[string]bool // containers by ID
	finished map[string]bool
}

// follow starts to read what the job's pods print. An error fails the test.
func (j *testJob) follow() {
	j.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // past the test's own end, for the report
	p := &podLog{
		j: j, ctx: ctx, cancel: cancel, pods: map[string]*corev1.Pod{}, reading: map[string]bool{},
		finished: map[string]bool{},
	}
	j.pods = p
	factory := informers.NewSharedInformerFactoryWithOptions(j.client, 0, informers.WithNamespace(j.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = instance + "=" + j.name }))
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.see(obj) },
		UpdateFunc: func(_, obj any) { p.see(obj) },
		DeleteFunc: func(obj any) { p.see(obj) },
	}); err != nil {
		cancel()
		j.t.Fatalf("watching the pods of %s: %v", j.name, err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(j.t.Context().Done(), informer.HasSynced) {
		cancel()
		j.t.Fatalf("watching the pods of %s: the test ended", j.name)
	}
}

func (p *podLog) stop() {
	p.cancel()
	p.readers.Wait()
}

// see starts to read the containers of a pod that have started since.
func (p *podLog) see(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		if gone, isGone := obj.(cache.DeletedFinalStateUnknown); isGone {
			pod, ok = gone.Obj.(*corev1.Pod)
		}
		if !ok {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	uid := string(pod.UID)
	if p.pods[uid] == nil {
		p.order = append(p.order, uid)
	}
	p.pods[uid] = pod
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		from := source{pod.Name, pod.UID, c.Name}
		if last := c.LastTerminationState.Terminated; last != nil {
			p.finished[last.ContainerID] = true
			p.read(from, last.ContainerID, true)
		}
		if now := c.State.Terminated; now != nil {
			p.finished[now.ContainerID] = true
			p.read(from, now.ContainerID, false)
		}
		if c.State.Running != nil {
			p.read(from, c.ContainerID, false)
		}
	}
}

// read reads one container's log, once, in a goroutine of its own. The lock is held.
func (p *podLog) read(from source, id string, previous bool) {
	if id == "" || p.reading[id] {
		return
	}
	p.reading[id] = true
	p.readers.Go(func() {
		// A log that breaks off is read again, from its start: events that are known are left out. One of a container
		// that has ended is tried as often as the kubelet may need to write its end.
		for tries := 0; p.ctx.Err() == nil && tries < 3; {
			if p.ended(from, id) || previous {
				tries++
			}
			if err := p.stream(from, previous); err == nil && (p.ended(from, id) || previous) {
				return
			}
			select {
			case <-p.ctx.Done():
			case <-time.After(poll):
			}
		}
	})
}

// ended says whether a container has ended, or its pod is gone.
func (p *podLog) ended(from source, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished[id] {
		return true
	}
	pod := p.pods[string(from.uid)]
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed
}

func (p *podLog) stream(from source, previous bool) error {
	options := &corev1.PodLogOptions{Container: from.container, Follow: !previous, Previous: previous}
	log, err := p.j.client.CoreV1().Pods(p.j.namespace).GetLogs(from.pod, options).Stream(p.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it was only read
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.j.add(from, lines.Text())
	}
	return lines.Err()
}

// seen counts the pods of a component that there are and were.
func (j *testJob) seen(component string) (n int) {
	for _, pod := range j.pods.states() {
		if pod.Labels[componentLabel] == component {
			n++
		}
	}
	return n
}

// states are the last of all pods, in the order in which they came.
func (p *podLog) states() (pods []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uid := range p.order {
		pods = append(pods, p.pods[uid])
	}
	return pods
}
