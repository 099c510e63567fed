package operators

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/test/cluster"
)

var trainer = program{
	name: "Kubeflow Trainer", kinds: []string{"TrainJob", "TrainingRuntime"},
	definitions: []string{
		"trainjobs.trainer.kubeflow.org/v1alpha1", "trainingruntimes.trainer.kubeflow.org/v1alpha1",
		"jobsets.jobset.x-k8s.io/v1alpha2",
	},
	log: "trainer", controller: "app.kubernetes.io/name=trainer",
	probe: func(p *place) {
		objects := p.trainJob("asleep", "  suspend: true\n")
		p.apply(objects...)
		p.condition(p.the("TrainJob", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", trainJobLife},
		{"pods as foretold", func(p *place) {
			p.nodes(4, 8, "")
			p.eachForetold("torchelastic-trainjob-minimal")
		}},
		{"runtime", trainJobRuntime},
		{"failure", trainJobFailure},
		{"deadline", trainJobDeadline},
		{"refusals", trainJobRefusals},
		{"gangs", trainJobGangs},
		{"JAX", trainJobJAX},
		{"changes as diff says", asDiffSays("trainjob")},
		{"checkpoint, sidecar, spot", around("trainjob")},
		{"managed elsewhere", elsewhere("TrainJob", "trainjob", "")},
	},
}

// trainJob renders two workers with more in their spec.
func (p *place) trainJob(name, more string) []*unstructured.Unstructured {
	p.Helper()
	return p.rendered(name, `  target: trainjob
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2, processes: 2}
  resources: {gpu: 2, cpu: 1, memory: 4Gi}
`+more)
}

// jobSetOf is the JobSet that Trainer makes of a TrainJob.
func jobSetOf(job *unstructured.Unstructured) *unstructured.Unstructured {
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(apis.JobSetKind)
	set.SetNamespace(job.GetNamespace())
	set.SetName(job.GetName())
	return set
}

// trainJobLife: one field starts and stops it, its pods are those of a JobSet of its name, and torchrun's variables are
// Trainer's, behind ours and in place of any of their names.
func trainJobLife(p *place) {
	p.nodes(2, 8, "")
	objects := p.trainJob("life", "  suspend: true\n")
	job, runtime := p.the("TrainJob", objects), p.the("TrainingRuntime", objects)
	replaced := []any{
		map[string]any{"name": "HOME", "value": "/tmp"}, map[string]any{"name": "PET_NNODES", "value": "9"},
	}
	eachContainer(p, runtime, func(c map[string]any) { c["env"] = replaced })
	p.apply(objects...)
	p.condition(job, "Suspended")
	p.remains("no worker", func() error { return p.exist(p.namespace, 0) })
	p.set(job, false, "spec", "suspend")
	pods := p.running(2, p.namespace, workers)
	for i, pod := range pods {
		if want := fmt.Sprintf("life-node-0-%d", i); pod.Spec.Hostname != want || pod.Spec.Subdomain != "life" {
			p.Errorf("pod %s is %s in %s, want %s in life", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain, want)
		}
		p.behind(pod, "node", []string{"HOME", "PET_NNODES"})
		p.have(pod, "node", map[string]string{
			"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_MASTER_ADDR": "life-node-0-0.life",
			"PET_MASTER_PORT": "29500", "PET_RDZV_ENDPOINT": "-", "PET_RDZV_BACKEND": "-",
			"PET_NODE_RANK": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
		})
	}
	p.set(job, true, "spec", "suspend")
	p.gone(p.namespace)
	p.set(job, false, "spec", "suspend")
	pods = p.running(2, p.namespace, workers)
	p.end(cluster.OutcomeSucceeded, pods...)
	p.condition(job, "Complete")
	p.condition(jobSetOf(job), "Completed")
}

// trainJobRuntime: what is done to the runtime reaches no job that is there, not even one that was stopped meanwhile.
func trainJobRuntime(p *place) {
	p.nodes(2, 8, "")
	objects := p.trainJob("copied", "")
	job, runtime := p.the("TrainJob", objects), p.the("TrainingRuntime", objects)
	p.apply(objects...)
	p.running(2, p.namespace, workers)
	p.imported(objects, job, runtime)
	eachContainer(p, runtime, func(c map[string]any) { c["image"] = "registry.example/resnet:2.0" })
	p.apply(runtime)
	first := func() error {
		pods, err := p.pods(p.namespace, workers)
		for _, pod := range pods {
			if got := pod.Spec.Containers[0].Image; got != "registry.example/resnet:1.0" {
				err = fmt.Errorf("it is %s", got)
			}
		}
		return err
	}
	p.remains("the image", first)
	p.set(job, true, "spec", "suspend")
	p.gone(p.namespace)
	p.set(job, false, "spec", "suspend")
	p.running(2, p.namespace, workers)
	p.remains("the image", first)
}

// trainJobFailure: a worker that failed too often fails the job, and its JobSet is made anew if somebody deletes it.
func trainJobFailure(p *place) {
	p.nodes(2, 8, "")
	objects := p.trainJob("broken", "  failure: {restarts: 0}\n")
	p.apply(objects...)
	job := p.the("TrainJob", objects)
	p.end(cluster.OutcomeFailed, p.running(2, p.namespace, workers)[1])
	p.condition(job, "Failed")
	p.imported(objects, job)
	set := p.live(jobSetOf(job))
	p.delete(p.Context(), set)
	p.eventually("another JobSet", func() error {
		again, err := p.get(p.Context(), set)
		if err == nil && again.GetUID() == set.GetUID() {
			err = fmt.Errorf("it is the first")
		}
		return err
	})
	p.running(2, p.namespace, workers)
}

// trainJobDeadline: at its deadline the job has failed, and nothing of it runs.
func trainJobDeadline(p *place) {
	p.nodes(2, 8, "")
	objects := p.trainJob("late", "  failure: {deadline: 10s}\n")
	p.apply(objects...)
	job := p.the("TrainJob", objects)
	p.running(2, p.namespace, workers)
	p.condition(job, "Failed")
	p.gone(p.namespace)
	p.vanishes(jobSetOf(job))
	p.imported(objects, job)
}

// trainJobRefusals: the webhook refuses a job whose runtime is not there yet, and torchrun's variables in the job.
func trainJobRefusals(p *place) {
	objects := p.trainJob("early", "")
	job, runtime := p.the("TrainJob", objects), p.the("TrainingRuntime", objects)
	p.refused(job, "specified trainingRuntime must be created before the TrainJob is created")
	p.apply(runtime)
	reserved := job.DeepCopy()
	reserved.Object["spec"].(map[string]any)["trainer"].(map[string]any)["env"] = []any{
		map[string]any{"name": "PET_NNODES", "value": "9"},
	}
	p.refused(reserved, "must not have reserved envs")
	p.apply(job)
}

// trainJobGangs: Trainer makes the PodGroup of a gang, where the cluster has its kind.
func trainJobGangs(p *place) {
	tried := 0
	for _, gang := range []struct{ scheduler, definition, field string }{
		{"coscheduling", "podgroups.scheduling.x-k8s.io/v1alpha1", "minMember"},
		{"volcano", "podgroups.scheduling.volcano.sh/v1beta1", "minMember"},
	} {
		if missing := p.absent(p.T, program{definitions: []string{gang.definition}}); missing != "" {
			p.Logf("%s: %s is not served", gang.scheduler, missing)
			continue
		}
		tried++
		objects := p.trainJob(gang.scheduler, "  gang: {scheduler: "+gang.scheduler+"}\n")
		p.apply(objects...)
		kind := apis.CoschedulingPodGroupKind
		if gang.scheduler == "volcano" {
			kind = apis.VolcanoPodGroupKind
		}
		job := p.live(p.the("TrainJob", objects))
		p.eventually("the PodGroup", func() error {
			for _, group := range p.list(kind, p.namespace) {
				n, _, _ := unstructured.NestedInt64(group.Object, "spec", gang.field)
				if group.GetName() == gang.scheduler && n == 2 && metav1.IsControlledBy(&group, job) {
					return nil
				}
			}
			return fmt.Errorf("there is none of 2")
		})
		p.delete(p.Context(), objects...)
	}
	if tried == 0 {
		p.Skip("the cluster has no PodGroups of scheduler-plugins or Volcano")
	}
}

// eachContainer changes the containers of a runtime's pods.
func eachContainer(p *place, runtime *unstructured.Unstructured, change func(map[string]any)) {
	p.Helper()
	jobs, _, _ := unstructured.NestedSlice(runtime.Object, "spec", "template", "spec", "replicatedJobs")
	for _, j := range jobs {
		path := []string{"template", "spec", "template", "spec", "containers"}
		containers, _, _ := unstructured.NestedSlice(j.(map[string]any), path...)
		for _, c := range containers {
			change(c.(map[string]any))
		}
		if err := unstructured.SetNestedSlice(j.(map[string]any), containers, path...); err != nil {
			p.Fatal(err)
		}
	}
	err := unstructured.SetNestedSlice(runtime.Object, jobs, "spec", "template", "spec", "replicatedJobs")
	if err != nil {
		p.Fatal(err)
	}
}
