package operators

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

var torchElastic = program{
	name: "TorchElastic's controller", kinds: []string{"ElasticJob"},
	definitions: []string{"elasticjobs.elastic.pytorch.org/v1alpha1"},
	log:         "torchelastic", controller: "app=torch-elastic",
	probe: func(p *place) {
		p.apply(p.golden("companion-elasticjob")...)
		p.made(2, "training", "job-name=imagenet-elastic")
	},
	scenarios: append(
		each("pods", torchElasticPods, "torchelastic-elasticjob-full", "torchelastic-elasticjob-imagenet",
			"companion-elasticjob"),
		scenario{"dropped fields", torchElasticDrops},
		scenario{"success", torchElasticSuccess},
		scenario{"restarts", torchElasticRestarts},
		scenario{"lost workers", torchElasticLost},
		scenario{"scaling", torchElasticScaling},
	),
}

// torchElasticPods: pods and their Services are called as the rendezvous and tegen plan expect; the controller's
// options stand before ours, and no variable is added.
func torchElasticPods(p *place, golden string) {
	job := p.admit(p.golden(golden))
	worker := torchElasticWorker(p, job)
	replicas := p.number(job, "spec", "replicaSpecs", "Worker", "replicas")
	pods := p.made(replicas, job.GetNamespace(), "job-name="+job.GetName())
	for i, pod := range pods {
		if want := fmt.Sprintf("%s-worker-%d", job.GetName(), i); pod.Name != want {
			p.Errorf("pod %d is called %s, want %s", i, pod.Name, want)
		}
		got, want := pod.Spec.Containers[0], worker.Spec.Containers[0]
		spec := job.Object["spec"].(map[string]any)
		all := append([]string{
			"--rdzv_backend=etcd",
			fmt.Sprint("--rdzv_endpoint=", spec["rdzvEndpoint"]),
			"--rdzv_id=" + job.GetName(),
			fmt.Sprintf("--nnodes=%d:%d", p.number(job, "spec", "minReplicas"), p.number(job, "spec", "maxReplicas")),
		}, want.Args...)
		if !slices.Equal(got.Args, all) || !slices.Equal(got.Command, want.Command) {
			p.Errorf("pod %s runs %q with %q, want %q with %q", pod.Name, got.Command, got.Args, want.Command, all)
		}
		if len(got.Env) != len(want.Env) {
			p.Errorf("pod %s has the variables %v, want %v", pod.Name, got.Env, want.Env)
		}
		policy, _, _ := unstructured.NestedString(job.Object, "spec", "replicaSpecs", "Worker", "restartPolicy")
		if policy == "ExitCode" { // which the controller does by itself
			policy = string(corev1.RestartPolicyNever)
		}
		if string(pod.Spec.RestartPolicy) != policy {
			p.Errorf("pod %s has the restart policy %s, want %s", pod.Name, pod.Spec.RestartPolicy, policy)
		}
		for key, value := range worker.Annotations {
			if pod.Annotations[key] != value {
				p.Errorf("pod %s has the annotation %s: %q, want %q", pod.Name, key, pod.Annotations[key], value)
			}
		}
		service, err := p.client.CoreV1().Services(pod.Namespace).Get(p.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			p.Error(err)
		} else if service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Ports) > 0 {
			p.Errorf("the Service %s has the address %q and the ports %v, want none", service.Name,
				service.Spec.ClusterIP, service.Spec.Ports)
		}
	}
}

// torchElasticWorker is the template of an ElasticJob's workers.
func torchElasticWorker(p *place, job *unstructured.Unstructured) (t corev1.PodTemplateSpec) {
	p.Helper()
	return p.template(job, "spec", "replicaSpecs", "Worker", "template")
}

// torchElasticDrops: of the fields that tegen renders the controller, built of Kubernetes 1.15, loses these, in the
// pods and, since it writes the status by an update of the whole object, in the ElasticJob too.
func torchElasticDrops(p *place) {
	objects := p.golden("companion-elasticjob")
	p.apply(objects...)
	job := p.the("ElasticJob", objects)
	pods := p.made(2, job.GetNamespace(), "job-name="+job.GetName())
	if c := pods[0].Spec.SecurityContext; c.SeccompProfile != nil || c.FSGroupChangePolicy != nil {
		p.Errorf("the pods' security context is %v: neither seccompProfile nor fsGroupChangePolicy was expected", c)
	}
	p.eventually("a status", func() error {
		_, found, err := unstructured.NestedSlice(p.live(job).Object, "status", "conditions")
		if err == nil && !found {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	live := torchElasticWorker(p, p.live(job))
	if c := live.Spec.SecurityContext; c.SeccompProfile != nil || c.FSGroupChangePolicy != nil {
		p.Errorf("the ElasticJob has kept %v", c)
	}
}

// torchElasticSuccess: when all workers have succeeded, the job has, and they stay with their logs.
func torchElasticSuccess(p *place) {
	p.nodes(2, 8, "")
	objects := p.golden("companion-elasticjob")
	p.apply(objects...)
	job := p.the("ElasticJob", objects)
	p.foretold("companion-elasticjob")
	p.condition(job, "Running")
	p.end(cluster.OutcomeSucceeded, p.running(2, job.GetNamespace(), workers)...)
	p.condition(job, "Succeeded")
	p.imported(objects, job)
	p.remains("the workers are kept", func() error { return p.kept(2, job.GetNamespace(), workers) })
}

// torchElasticRestarts: after as many restarts as failure.restarts says, counted over all containers, the job has
// failed, and what runs is deleted.
func torchElasticRestarts(p *place) {
	p.nodes(2, 8, "")
	job := p.admit(p.rendered("restarts", `  target: elasticjob
  image: registry.example/resnet:1.0
  command: [python, train.py]
  workers: {replicas: 2, min: 1, max: 3}
  resources: {cpu: 1, memory: 1Gi}
  rendezvous: {backend: etcd, store: external, endpoint: "etcd:2379"}
  failure: {restarts: 2}
`))
	pods := p.running(2, p.namespace, workers)
	p.restarted(1, pods[0])
	p.remains("the job runs", func() error { return p.kept(2, p.namespace, workers) })
	p.restarted(1, pods[1])
	p.condition(job, "Failed")
	p.made(0, p.namespace, workers)
}

// torchElasticLost: a worker that was deleted is made again under its name. One that has failed as a whole, as evicted
// pods have, ends the job, and the controller outlives that.
func torchElasticLost(p *place) {
	p.nodes(2, 8, "")
	job := p.admit(p.golden("companion-elasticjob"))
	pods := p.running(2, job.GetNamespace(), workers)
	if err := p.client.CoreV1().Pods(pods[1].Namespace).Delete(p.Context(), pods[1].Name,
		metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	p.eventually("another "+pods[1].Name, func() error {
		pod, err := p.client.CoreV1().Pods(pods[1].Namespace).Get(p.Context(), pods[1].Name, metav1.GetOptions{})
		if err == nil && pod.UID == pods[1].UID {
			err = fmt.Errorf("it is the same one, %s", pod.Status.Phase)
		}
		return err
	})
	p.end(cluster.OutcomeFailed, p.running(2, job.GetNamespace(), workers)[0])
	p.condition(job, "Failed")
	p.delete(p.Context(), job)
	p.made(0, job.GetNamespace(), workers)
	p.apply(job)
	p.running(2, job.GetNamespace(), workers)
}

// torchElasticScaling: another number of replicas is more or fewer pods, and those that stay are the same ones.
func torchElasticScaling(p *place) {
	p.nodes(3, 8, "")
	objects := p.golden("companion-elasticjob")
	p.apply(objects...)
	job := p.the("ElasticJob", objects)
	first := p.running(2, job.GetNamespace(), workers)
	p.set(job, int64(3), "spec", "replicaSpecs", "Worker", "replicas")
	more := p.running(3, job.GetNamespace(), workers)
	p.set(job, int64(1), "spec", "replicaSpecs", "Worker", "replicas")
	fewer := p.running(1, job.GetNamespace(), workers)
	if more[0].UID != first[0].UID || more[1].UID != first[1].UID || fewer[0].UID != first[0].UID {
		p.Errorf("pods were made anew: %s, then %s, then %s", names(first), names(more), names(fewer))
	}
	if got := strings.Join(more[0].Spec.Containers[0].Args[:4], " "); !strings.Contains(got, "--nnodes=1:3") {
		p.Errorf("the launcher is told %s", got)
	}
}

func names(pods []corev1.Pod) (all []string) {
	for _, pod := range pods {
		all = append(all, fmt.Sprintf("%s (%s)", pod.Name, pod.UID))
	}
	return all
}
