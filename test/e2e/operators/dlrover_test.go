package operators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	tegen "github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/test/cluster"
)

var dlrover = program{
	name: "DLRover's ElasticJob controller", kinds: []string{"ElasticJob"},
	definitions: []string{"elasticjobs.elastic.iml.github.io/v1alpha1"},
	log:         "dlrover", controller: "control-plane=controller-manager",
	probe: func(p *place) {
		p.apply(dlroverJob(p, "probe", "")...)
		p.made(1, p.namespace, dlroverMasters)
	},
	scenarios: slices.Concat(
		each("master", dlroverMaster, dlroverGoldens...),
		each("workers", dlroverWorkers, dlroverGoldens...),
		each("suspended, resumed", dlroverSuspended, "dlrover-elasticjob-suspended"),
		[]scenario{
			{"suspended again", dlroverSuspendedAgain},
			{"success", dlroverSuccess},
			{"a lost worker", dlroverLost},
		},
	),
}

var dlroverGoldens = []string{
	"dlrover-elasticjob-full", "dlrover-elasticjob-torch-mnist", "dlrover-elasticjob-two-of-four", "gang-dlrover-tegen",
}

// dlroverJob renders two workers that any node takes.
func dlroverJob(p *place, name, extra string) []*unstructured.Unstructured {
	p.Helper()
	return p.rendered(name, `  framework: dlrover
  target: elasticjob
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2, min: 1}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}
`+extra)
}

// dlroverMaster: the controller makes the master's pod with the job's labels and annotations, which its own Service
// finds, and hands the annotations that are options to the master. No worker is its doing.
func dlroverMaster(p *place, golden string) {
	job := p.admit(p.golden(golden))
	pods := p.made(1, job.GetNamespace(), dlroverMasters)
	master, name := pods[0], "elasticjob-"+job.GetName()+"-dlrover-master"
	if master.Name != name+"-0" {
		p.Errorf("the master is called %s, want %s-0", master.Name, name)
	}
	for key, value := range job.GetLabels() {
		if master.Labels[key] != value {
			p.Errorf("the master has the label %s: %q, want %q", key, master.Labels[key], value)
		}
	}
	for key, value := range job.GetAnnotations() {
		if master.Annotations[key] != value {
			p.Errorf("the master has the annotation %s: %q, want %q", key, master.Annotations[key], value)
		}
	}
	want := fmt.Sprintf("python -m dlrover.python.master.main --platform pyk8s --namespace %s --job_name %s "+
		"--port 50001", job.GetNamespace(), job.GetName())
	for _, option := range []string{"pending_timeout", "pre_check_bypass"} {
		if value, ok := job.GetAnnotations()[option]; ok {
			want += fmt.Sprintf(" --%s %s", option, value)
		}
	}
	if got := master.Spec.Containers[0].Command; !slices.Equal(got, []string{"/bin/bash", "-c", want}) {
		p.Errorf("the master runs %q, want %q", got, want)
	}
	p.leads(name, master)
	p.remains("no worker", func() error { return p.kept(0, job.GetNamespace(), workers) })
}

// dlroverWorkers: the master makes the workers as its account, with what the template says and its own variables
// behind ours, so that its own would win.
func dlroverWorkers(p *place, golden string) {
	p.nodes(1, 0, "")
	job := p.admit(p.golden(golden))
	p.runMaster(p.master(job.GetNamespace(), job.GetName()))
	template := p.template(job, "spec", "replicaSpecs", "worker", "template")
	replicas := p.number(job, "spec", "replicaSpecs", "worker", "replicas")
	for i, pod := range p.made(replicas, job.GetNamespace(), workers) {
		name := fmt.Sprintf("%s-edljob-worker-%d", job.GetName(), i)
		if pod.Name != name {
			p.Errorf("worker %d is called %s, want %s", i, pod.Name, name)
		}
		for key, value := range template.Labels {
			if pod.Labels[key] != value {
				p.Errorf("%s has the label %s: %q, want %q", name, key, pod.Labels[key], value)
			}
		}
		if !maps.Equal(pod.Annotations, template.Annotations) {
			p.Errorf("%s has the annotations %v, want %v", name, pod.Annotations, template.Annotations)
		}
		sameProgram(p, pod, template)
		if pod.Spec.SchedulerName != cmp.Or(template.Spec.SchedulerName, corev1.DefaultSchedulerName) {
			p.Errorf("%s is for the scheduler %q, want %q", name, pod.Spec.SchedulerName, template.Spec.SchedulerName)
		}
		if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			p.Errorf("%s has the restart policy %s", name, pod.Spec.RestartPolicy)
		}
		p.leads(name, pod)
	}
}

// leads waits for a Service that selects a pod.
func (p *place) leads(name string, pod corev1.Pod) {
	p.Helper()
	p.eventually("the Service "+name, func() error {
		service, err := p.client.CoreV1().Services(pod.Namespace).Get(p.Context(), name, metav1.GetOptions{})
		if err == nil && !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			err = fmt.Errorf("it selects %v, and %s has %v", service.Spec.Selector, pod.Name, pod.Labels)
		}
		return err
	})
}

// sameProgram checks that a worker runs what its template says, with the master's variables after the template's.
func sameProgram(p *place, pod corev1.Pod, template corev1.PodTemplateSpec) {
	p.Helper()
	got, want := pod.Spec.Containers[0], template.Spec.Containers[0]
	if !slices.Equal(got.Command, want.Command) || !slices.Equal(got.Args, want.Args) {
		p.Errorf("%s runs %q with %q, want %q with %q", pod.Name, got.Command, got.Args, want.Command, want.Args)
	}
	if len(got.Resources.Limits) != len(want.Resources.Limits) {
		p.Errorf("%s has the limits %v, want %v", pod.Name, got.Resources.Limits, want.Resources.Limits)
	}
	for name, amount := range want.Resources.Limits {
		if other := got.Resources.Limits[name]; !amount.Equal(other) {
			p.Errorf("%s has the limit %s: %s, want %s", pod.Name, name, other.String(), amount.String())
		}
	}
	for i, v := range want.Env {
		if i >= len(got.Env) || got.Env[i].Name != v.Name {
			p.Fatalf("%s has the variables %v, want %v first", pod.Name, got.Env, want.Env)
		}
	}
	for _, v := range got.Env[len(want.Env):] {
		text := fmt.Sprintf("{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, metadata: {name: job, namespace: "+
			"training}, spec: {framework: dlrover, target: elasticjob, image: 'resnet:1.0', command: [train], "+
			"env: [{name: %s, value: x}]}}", v.Name)
		_, err := tegen.Load([]tegen.Source{{Name: "job.yaml", Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), "is set by DLRover's master") {
			p.Errorf("the master sets %s, and of a job that does tegen says: %v", v.Name, err)
		}
	}
}

// dlroverSuspended: the master is there, and waits; one field starts the workers.
func dlroverSuspended(p *place, golden string) {
	p.nodes(1, 8, "")
	job := p.admit(p.golden(golden))
	p.runMaster(p.master(job.GetNamespace(), job.GetName()))
	p.dlroverPhase(job, "Suspended")
	p.remains("no worker", func() error { return p.kept(0, job.GetNamespace(), workers) })
	p.set(job, false, "spec", "suspend")
	p.foretold(golden)
	p.dlroverPhase(job, "Running")
}

// dlroverSuspendedAgain: a job that runs goes on, whatever the field says then: docs/suspend.md.
func dlroverSuspendedAgain(p *place) {
	p.nodes(1, 0, "")
	job := p.admit(dlroverJob(p, "again", "  suspend: true\n"))
	p.runMaster(p.master(p.namespace, "again"))
	p.dlroverPhase(job, "Suspended")
	p.set(job, false, "spec", "suspend")
	p.running(2, p.namespace, workers)
	p.set(job, true, "spec", "suspend")
	p.remains("the workers run", func() error { return p.kept(2, p.namespace, workers) })
}

// dlroverSuccess: when the workers have ended the master does, and the job has succeeded; all its pods stay.
func dlroverSuccess(p *place) {
	p.nodes(1, 0, "")
	objects := dlroverJob(p, "success", "")
	job := p.admit(objects)
	p.runMaster(p.master(p.namespace, "success"))
	pods := p.running(2, p.namespace, workers)
	p.dlroverPhase(job, "Running")
	p.end(cluster.OutcomeSucceeded, pods...)
	p.dlroverPhase(job, "Succeeded")
	p.imported(objects, job)
	p.remains("all pods are kept", func() error { return p.kept(3, p.namespace, "") })
}

// dlroverLost: the master makes a worker that was killed again, under the next number and with its rank.
func dlroverLost(p *place) {
	p.nodes(1, 0, "")
	p.admit(dlroverJob(p, "lost", ""))
	p.runMaster(p.master(p.namespace, "lost"))
	pods := p.running(2, p.namespace, workers)
	p.exit(137, pods[1])
	p.eventually("a third worker", func() error {
		pod, err := p.client.CoreV1().Pods(p.namespace).Get(p.Context(), "lost-edljob-worker-2", metav1.GetOptions{})
		if err == nil && pod.Labels["elasticjob.dlrover/rank-index"] != "1" {
			p.Fatalf("it has the labels %v", pod.Labels)
		}
		return err
	})
}

// dlroverPhase waits for a phase of a job.
func (p *place) dlroverPhase(job *unstructured.Unstructured, want string) {
	p.Helper()
	p.eventually("the phase "+want, func() error {
		got, _, err := unstructured.NestedString(p.live(job).Object, "status", "phase")
		if err == nil && got != want {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
}
