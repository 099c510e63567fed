package operators

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

var mxnetOperator = program{
	name: "Kubeflow Training Operator with MXJob", kinds: []string{"MXJob"},
	definitions: []string{"mxjobs.kubeflow.org/v1"},
	log:         "training-operator-1.8", controller: "control-plane=kubeflow-training-operator",
	probe: func(p *place) {
		objects := p.golden("mxnet-mxjob-full")
		p.apply(objects...)
		p.condition(p.the("MXJob", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", mxJobLife},
		{"pods as foretold", func(p *place) {
			p.nodes(6, 8, "")
			p.eachForetold("mxnet-mxjob-minimal", "mxnet-mxjob-byteps")
		}},
		{"variables", mxJobVariables},
		{"roles", mxJobRoles},
		{"failure", mxJobFailure},
		{"deadline", mxJobDeadline},
		{"expiry", mxJobExpiry},
	},
}

// mxJob renders a scheduler, a server and two workers with more in their spec.
func (p *place) mxJob(name, more string) []*unstructured.Unstructured {
	p.Helper()
	return p.rendered(name, `  framework: mxnet
  target: mxjob
  image: registry.example/mxnet:1.9
  command: [python, train.py]
  workers: {replicas: 2}
`+more)
}

// mxJobLife: one field starts and stops all roles, and the scheduler's end is the job's: what still runs is deleted.
func mxJobLife(p *place) {
	p.nodes(2, 8, "")
	objects := p.mxJob("life", "  suspend: true\n")
	p.apply(objects...)
	job := p.the("MXJob", objects)
	p.condition(job, "Suspended")
	p.remains("no pod", func() error { return p.exist(p.namespace, 0) })
	p.set(job, false, "spec", "runPolicy", "suspend")
	all := []string{"life-scheduler-0", "life-server-0", "life-worker-0", "life-worker-1"}
	pods := p.running(4, p.namespace, "")
	p.named(pods, all...)
	p.reached(pods)
	p.set(job, true, "spec", "runPolicy", "suspend")
	p.gone(p.namespace)
	p.set(job, false, "spec", "runPolicy", "suspend")
	pods = p.running(4, p.namespace, "")
	p.imported(objects, job)
	p.end(cluster.OutcomeSucceeded, pods[2:]...)
	p.remains("scheduler and server", func() error {
		rest, err := p.pods(p.namespace, "app.kubernetes.io/component!=worker")
		if err == nil && len(rest) != 2 {
			err = fmt.Errorf("there are %d", len(rest))
		}
		return err
	})
	p.end(cluster.OutcomeSucceeded, pods[0])
	p.condition(job, "Succeeded")
	p.left(p.namespace, "life-scheduler-0", "life-worker-0", "life-worker-1")
	p.imported(objects, job)
}

// mxJobVariables: the operator's variables of ps-lite stand behind ours in every role, and win.
func mxJobVariables(p *place) {
	p.nodes(6, 8, "")
	objects := p.golden("mxnet-mxjob-byteps")
	job := p.the("MXJob", objects)
	setEnv(p, job, "mxReplicaSpecs", "Worker", "DMLC_ROLE", "DMLC_NUM_WORKER")
	p.apply(objects...)
	for _, pod := range p.running(5, job.GetNamespace(), "") {
		role := pod.Labels["app.kubernetes.io/component"]
		want := map[string]string{
			"DMLC_ROLE": role, "DMLC_PS_ROOT_URI": "byteps-mxnet-job-scheduler-0", "DMLC_PS_ROOT_PORT": "9091",
			"DMLC_NUM_SERVER": "2", "DMLC_NUM_WORKER": "2", "DMLC_USE_KUBERNETES": "1", "DMLC_WORKER_ID": "-",
		}
		ours := []string{"HOME", "PYTHONUNBUFFERED"}
		if role == "worker" {
			want["DMLC_WORKER_ID"] = pod.Name[len(pod.Name)-1:]
			ours = []string{"DMLC_ROLE", "DMLC_NUM_WORKER"}
		}
		p.have(pod, "mxnet", want)
		p.behind(pod, "mxnet", ours)
		if config := p.variables(pod, "mxnet")["MX_CONFIG"]; !strings.Contains(config, `"task":{"type":"`+role+`"`) {
			p.Errorf("pod %s: MX_CONFIG is %s", pod.Name, config)
		}
	}
}

// mxJobRoles: each role has the pod fields of its own. Its pods wait for nodes that nobody has.
func mxJobRoles(p *place) {
	var objects []*unstructured.Unstructured
	for _, o := range p.golden("roles-mxjob") {
		if o.GetLabels()["tegen.dev/job"] == "shopping" { // the other is for an operator of 2017
			objects = append(objects, o)
		}
	}
	p.apply(objects...)
	namespace := p.the("MXJob", objects).GetNamespace()
	var pods []corev1.Pod
	p.eventually("four pods", func() (err error) {
		pods, err = p.pods(namespace, "")
		if err == nil && len(pods) != 4 {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	for _, pod := range pods {
		role := pod.Labels["app.kubernetes.io/component"]
		want := map[string]string{"server": "memory", "scheduler": "system"}[role]
		if got := pod.Spec.NodeSelector["pool"]; got != want {
			p.Errorf("pod %s selects the pool %q, want %q", pod.Name, got, want)
		}
		if c := pod.Spec.Containers[0]; c.Name != "mxnet" || c.TTY != (role == "server") ||
			c.WorkingDir != "/incubator-mxnet/example/image-classification" {
			p.Errorf("pod %s has the container %s (tty %v) in %s", pod.Name, c.Name, c.TTY, c.WorkingDir)
		}
	}
}

// mxJobFailure: one failed pod of any role ends the job, and what runs is deleted.
func mxJobFailure(p *place) {
	p.nodes(2, 8, "")
	objects := p.mxJob("broken", "")
	p.apply(objects...)
	pods := p.running(4, p.namespace, "")
	p.end(cluster.OutcomeFailed, pods[1])
	p.condition(p.the("MXJob", objects), "Failed")
	p.left(p.namespace, "broken-server-0")
}

func mxJobDeadline(p *place) {
	p.nodes(2, 8, "")
	objects := p.mxJob("late", "  failure: {deadline: 5s}\n")
	p.apply(objects...)
	p.missesDeadline(p.the("MXJob", objects), 4)
}

func mxJobExpiry(p *place) {
	p.nodes(2, 8, "")
	objects := p.mxJob("brief", "  ttlAfterFinished: 5s\n")
	p.apply(objects...)
	job := p.the("MXJob", objects)
	p.end(cluster.OutcomeSucceeded, p.running(4, p.namespace, "")[0])
	p.condition(job, "Succeeded")
	p.vanishes(job)
}
