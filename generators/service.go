package generators

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema"
)

// workerName is the name of the Indexed Job and of its Service, and the start of every pod's name.
func workerName(job *schema.Job) string { return roleName(job, componentWorker) }

// roleName is workerName for any role.
func roleName(job *schema.Job, component string) string { return job.Metadata.Name + "-" + component }

// podWorkerName is the name of one bare pod and of its Service.
func podWorkerName(job *schema.Job, number int32) string {
	return workerName(job) + "-" + strconv.Itoa(int(number))
}

// podWorkerNumbers are the numbers of the bare pods; the tutorial counts from 1.
func podWorkerNumbers(job *schema.Job) []int32 {
	out := make([]int32, job.Spec.Workers.Replicas)
	for i := range out {
		out[i] = job.Spec.Workers.FirstIndex + int32(i)
	}
	return out
}

func service(job *schema.Job) []runtime.Object {
	if services := targetOf(job).services; services != nil {
		return services(job)
	}
	return nil
}

// workerService gives the pods of an Indexed Job their names.
func workerService(job *schema.Job) []runtime.Object {
	return []runtime.Object{headless(job, workerName(job), componentWorker, selector(job, componentWorker))}
}

// podServices give each bare pod its own name.
func podServices(job *schema.Job) []runtime.Object {
	var out []runtime.Object
	for _, i := range podWorkerNumbers(job) {
		out = append(out, headless(job, podWorkerName(job, i), componentWorker, podWorkerLabels(job, i)))
	}
	return out
}

// podWorkerLabels are the tutorial's labels, by which a worker's Service finds its one pod.
func podWorkerLabels(job *schema.Job, i int32) map[string]string {
	return map[string]string{"job-name": job.Metadata.Name, "worker": strconv.Itoa(int(i))}
}

func headless(job *schema.Job, name, component string, selects map[string]string,
	ports ...corev1.ServicePort,
) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(job, name, component),
		Spec: corev1.ServiceSpec{
			// A DNS record for each pod: peers dial each other by name, on any port.
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true, // peers are looked up while they start
			Selector:                 selects,
			Ports:                    ports,
		},
	}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name: name, Port: number, TargetPort: intstr.FromString(name),
		Protocol: corev1.ProtocolTCP,
	}
}
