package operators

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/cluster"
)

// dataServers selects the pods of the group beside the workers.
const dataServers = "app.kubernetes.io/component=data"

// vcGroup is that group, for a job of vcJob's.
const vcGroup = "  groups: [{name: data, replicas: 2, command: [serve]}]\n"

// vcJobOrdered: no worker is made before the servers run that it waits for, and the servers go when the workers have
// decided the job.
func vcJobOrdered(p *place) {
	p.queue("team")
	p.nodes(2, 8, "")
	objects := p.golden("groups-vcjob")
	p.apply(objects...)
	job := p.the("Job", objects)
	namespace := job.GetNamespace()
	p.eventually("the servers", func() error { return p.selected(namespace, dataServers, 2) })
	p.remains("no worker before the servers run", func() error { return p.selected(namespace, workers, 0) })
	p.change(p.added[0], `{"metadata":{"labels":{"disk":"nvme"}}}`)
	p.foretold("groups-vcjob")
	p.vcService(job)
	p.imported(objects, job)
	trained := p.running(2, namespace, workers)
	p.end(cluster.OutcomeSucceeded, trained[0])
	p.remains("a job of which one worker has ended", func() error { return p.inPhase(job, "Running") })
	p.end(cluster.OutcomeSucceeded, trained[1])
	p.phase(job, "Completed")
	p.running(0, namespace, dataServers)
}

// vcJobAnew: a failed pod of either group has all pods of the job made anew, as often as the job survives.
func vcJobAnew(p *place) {
	p.nodes(1, 2, p.namespace)
	p.nodes(1, 0, "") // for the servers
	job := p.vcJob("{replicas: 2}", vcGroup+"  failure: {restartAll: 2}")
	before := append(p.running(2, p.namespace, workers), p.running(2, p.namespace, dataServers)...)
	for _, failed := range []int{3, 0} { // a server, a worker
		p.end(cluster.OutcomeFailed, before[failed])
		var after []corev1.Pod
		p.eventually("all pods to be made anew", func() error {
			after = append(p.running(2, p.namespace, workers), p.running(2, p.namespace, dataServers)...)
			if n := common(before, after); n > 0 {
				return fmt.Errorf("%d of before are there", n)
			}
			return nil
		})
		before = after
	}
	p.end(cluster.OutcomeFailed, before[1])
	p.phase(job, "Failed")
	p.running(0, p.namespace, "")
}

// vcJobGroupsGang: workers and group are one gang, in which no pod of the group stands in for a worker.
func vcJobGroupsGang(p *place) {
	p.nodes(1, 1, p.namespace)
	p.nodes(1, 0, "") // for the servers, with room for all of them
	p.vcJob("{replicas: 2}", vcGroup+"  gang: {scheduler: volcano}")
	p.remains("nothing runs", func() error {
		pods, err := p.pods(p.namespace, "")
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				return fmt.Errorf("%s has a node", pod.Name)
			}
		}
		return err
	})
	p.nodes(1, 1, p.namespace)
	p.running(2, p.namespace, workers)
	p.running(2, p.namespace, dataServers)
}

// vcJobKeys: plugins of the controller give every pod its keys where root's are, and a file with the hosts of each task
// of the name that it is rendered with; a pod that is evicted has all made anew, and the group that dials decides.
func vcJobKeys(p *place) {
	const dialling = "app.kubernetes.io/component=mpi-run"
	p.nodes(2, 0, "")
	objects := p.golden("groups-vcjob-ssh")
	p.apply(objects...)
	job := p.the("Job", objects)
	namespace := job.GetNamespace()
	whole := func() []corev1.Pod {
		return append(p.running(2, namespace, workers), p.running(1, namespace, dialling)...)
	}
	before := whole()
	for _, pod := range before {
		at := map[string]string{} // kind and name of what is mounted, by path
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			for _, v := range pod.Spec.Volumes {
				switch {
				case v.Name != m.Name:
				case v.Secret != nil:
					at[m.MountPath] = "Secret " + v.Secret.SecretName
				case v.ConfigMap != nil:
					at[m.MountPath] = "ConfigMap " + v.ConfigMap.Name
				}
			}
		}
		if !strings.HasPrefix(at["/root/.ssh"], "Secret halo-") || at["/etc/volcano"] != "ConfigMap halo-svc" {
			p.Errorf("pod %s has %v", pod.Name, at)
		}
	}
	hosts, err := p.client.CoreV1().ConfigMaps(namespace).Get(p.Context(), "halo-svc", metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	for _, file := range []string{"worker.host", "mpi_run.host"} {
		if hosts.Data[file] == "" {
			p.Errorf("there are no hosts in %s, among %v", file, hosts.Data)
		}
	}
	p.imported(objects, job)
	err = p.client.CoreV1().Pods(namespace).Delete(p.Context(), before[0].Name, metav1.DeleteOptions{})
	if err != nil {
		p.Fatal(err)
	}
	var after []corev1.Pod
	p.eventually("all pods to be made anew", func() error {
		after = whole()
		if n := common(before, after); n > 0 {
			return fmt.Errorf("%d of before are there", n)
		}
		return nil
	})
	p.end(cluster.OutcomeSucceeded, after[2])
	p.phase(job, "Completed")
}
