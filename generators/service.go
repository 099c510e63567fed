package generators

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

// workerName is the name of the Indexed Job and of its Service, and the start of every pod's name.
func workerName(j *job.Job) string { return roleName(j, componentWorker) }

// roleName is workerName for any role.
func roleName(j *job.Job, component string) string { return j.Metadata.Name + "-" + component }

// podWorkerName is the name of one bare pod and of its Service.
func podWorkerName(j *job.Job, number int32) string {
	return workerName(j) + "-" + strconv.Itoa(int(number))
}

// podWorkerNumbers are the numbers of the bare pods; the tutorial counts from 1.
func podWorkerNumbers(j *job.Job) []int32 {
	out := make([]int32, j.Spec.Workers.Replicas)
	for i := range out {
		out[i] = j.Spec.Workers.FirstIndex + int32(i)
	}
	return out
}

func service(j *job.Job) []runtime.Object {
	if services := targetOf(j).services; services != nil {
		return services(j)
	}
	return nil
}

// workerService gives the pods of an Indexed Job their names.
func workerService(j *job.Job) []runtime.Object {
	return []runtime.Object{headless(j, workerName(j), componentWorker, selector(j, componentWorker))}
}

// podServices give each bare pod its own name.
func podServices(j *job.Job) []runtime.Object {
	var out []runtime.Object
	for _, i := range podWorkerNumbers(j) {
		out = append(out, headless(j, podWorkerName(j, i), componentWorker, podWorkerLabels(j, i)))
	}
	return out
}

// podWorkerLabels are the tutorial's labels, by which a worker's Service finds its one pod.
func podWorkerLabels(j *job.Job, i int32) map[string]string {
	return map[string]string{"job-name": j.Metadata.Name, "worker": strconv.Itoa(int(i))}
}

func headless(j *job.Job, name, component string, selects map[string]string,
	ports ...corev1.ServicePort,
) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(j, name, component),
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
