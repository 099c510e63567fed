package operators

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/test/cluster"
)

// volcanoGroup: the rendered PodGroup is the only one, its scheduler places the minimum and then the rest, and the job
// ends as it does without a gang.
func volcanoGroup(p *place) {
	p.nodes(1, 2, "")
	p.queue("research")
	p.priority("batch", 7)
	objects := p.golden("gang-volcano")
	p.apply(objects...)
	job := p.the("Job", objects)
	pods := p.running(2, job.GetNamespace(), workers)
	group := p.live(p.the("PodGroup", objects))
	if err := p.groupPhase(job.GetNamespace(), "Running"); err != nil {
		p.eventually("one PodGroup", func() error { return p.groupPhase(job.GetNamespace(), "Running") })
	}
	for _, pod := range pods {
		if got := pod.Annotations[apis.VCRunAnnotation]; got != group.GetName() {
			p.Errorf("pod %s is of the PodGroup %q, want %q", pod.Name, got, group.GetName())
		}
	}
	p.nodes(1, 2, "")
	p.end(cluster.OutcomeSucceeded, p.running(4, job.GetNamespace(), workers)...)
	p.condition(job, "Complete")
	p.remains("one PodGroup", func() error {
		if groups := p.list(apis.VolcanoPodGroupKind, job.GetNamespace()); len(groups) != 1 {
			return fmt.Errorf("there are %d", len(groups))
		}
		return nil
	})
}

// volcanoRoles: no worker can stand in for a server.
func volcanoRoles(p *place) {
	p.queue("research")
	objects := p.golden("mxnet-job-gang-volcano")
	p.apply(objects...)
	namespace := p.the("PodGroup", objects).GetNamespace()
	p.remains("nothing runs", func() error {
		all, err := p.pods(namespace, "")
		for _, pod := range all {
			if pod.Spec.NodeName != "" {
				return fmt.Errorf("%s has a node", pod.Name)
			}
		}
		return err
	})
	p.nodes(1, 0, "")
	p.running(5, namespace, "")
	if err := p.groupPhase(namespace, "Running"); err != nil {
		p.eventually("one PodGroup", func() error { return p.groupPhase(namespace, "Running") })
	}
}

// volcanoQueues: Volcano refuses a job of a queue that is missing or closed, and the PodGroup of a Job.
func volcanoQueues(p *place) {
	for _, target := range []string{"vcjob", "job"} {
		d := dialect{scheduler: "volcano", target: target, more: ", queue: e2e"}
		kind := map[string]string{"vcjob": "Job", "job": "PodGroup"}[target]
		refused := func(because string) {
			p.enter(p.namespace)
			err := p.applyOne(p.the(kind, d.job(p, target, 4)))
			if err == nil || !strings.Contains(err.Error(), because) {
				p.Errorf("%s of target %s: %v, want %q", kind, target, err, because)
			}
		}
		refused("unable to find")
		queue := p.queue("e2e")
		p.command(queue, "CloseQueue")
		p.queueState(queue, "Closed")
		refused("`Closed`")
		p.delete(p.Context(), queue)
		p.eventually("the queue to be gone", func() error {
			if live, err := p.get(p.Context(), queue); err == nil {
				return fmt.Errorf("%s is there", live.GetName())
			}
			return nil
		})
	}
}

// command tells Volcano what to do with an object, as vcctl does.
func (p *place) command(o *unstructured.Unstructured, action string) {
	p.Helper()
	live := p.live(o)
	namespace := live.GetNamespace()
	if namespace == "" {
		namespace = p.namespace
	}
	p.apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
		"metadata": map[string]any{"name": strings.ToLower(action), "namespace": namespace},
		"action":   action,
		"target": map[string]any{
			"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "name": live.GetName(),
			"uid": string(live.GetUID()),
		},
	}})
}

// vcJobCommand: a Command holds a job back and lets it go on, and is gone when it was heard.
func vcJobCommand(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 4}", "")
	p.running(4, p.namespace, workers)
	p.command(job, "AbortJob")
	p.phase(job, "Aborted")
	p.running(0, p.namespace, workers)
	p.remains("no worker", func() error { return p.placed(p.namespace, 0) })
	p.command(job, "ResumeJob")
	p.running(4, p.namespace, workers)
	p.phase(job, "Running")
}

// volcanoOf is the experiment with a target that has a controller of its own.
func volcanoOf(target string, other program, experiment func(dialect, *place)) func(*place) {
	return func(p *place) {
		p.needs(other)
		experiment(dialect{scheduler: "volcano", target: target}, p)
	}
}

// volcanoPriority: of two gangs that wait, the one of higher priority is placed, although it came later.
func volcanoPriority(p *place) {
	p.priority("e2e-low", 1)
	p.priority("e2e-high", 2)
	for _, level := range []string{"low", "high"} {
		d := dialect{scheduler: "volcano", target: "job", more: ", priority: e2e-" + level}
		p.apply(d.job(p, level, 4)...)
		p.eventually("the pods of "+level, func() error {
			pods, err := p.pods(p.namespace, "tegen.dev/job="+level)
			if err == nil && len(pods) != 4 {
				err = fmt.Errorf("there are %d", len(pods))
			}
			return err
		})
	}
	volcanoGroups.give(p, 4)
	for _, pod := range p.running(4, p.namespace, workers) {
		if pod.Labels["tegen.dev/job"] != "high" {
			p.Errorf("pod %s runs", pod.Name)
		}
	}
}

// volcanoClosed: what runs in a queue that is closed goes on, and what waits there is held back until it is opened.
func volcanoClosed(p *place) {
	queue := p.queue("e2e")
	d := dialect{scheduler: "volcano", target: "vcjob", more: ", queue: e2e"}
	d.give(p, 4)
	p.apply(d.job(p, "runs", 4)...)
	p.running(4, p.namespace, workers)
	p.apply(d.job(p, "waits", 4)...)
	p.command(queue, "CloseQueue")
	p.queueState(queue, "Closing")
	d.give(p, 4)
	p.remains("one job", func() error { return p.placed(p.namespace, 4) })
	p.command(queue, "OpenQueue")
	p.running(8, p.namespace, workers)
}

// vcJobOneRetry: to go on counts as a failure, of which this job survives none.
func vcJobOneRetry(p *place) {
	p.nodes(1, 4, p.namespace)
	job := p.vcJob("{replicas: 4}", "  failure: {restarts: 0}")
	p.running(4, p.namespace, workers)
	p.command(job, "AbortJob")
	p.phase(job, "Aborted")
	p.command(job, "ResumeJob")
	p.phase(job, "Failed")
	p.running(0, p.namespace, workers)
}
