package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MPIJobKind is the MPI operator's own API, which is not training-operator's kubeflow.org/v1 MPIJob
// (kubeflow/mpi-operator v0.8.0, pkg/apis/kubeflow/v2beta1).
var MPIJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}

// MPIJob is a launcher that starts processes in workers by ssh.
type MPIJob = Custom[MPIJobSpec]

// MPIJobSpec is MPIJob.spec; mpiImplementation is OpenMPI when left out, and says how the host file is written.
type MPIJobSpec struct {
	SlotsPerWorker         *int32                 `json:"slotsPerWorker,omitempty"`
	LauncherCreationPolicy string                 `json:"launcherCreationPolicy,omitempty"`
	SSHAuthMountPath       string                 `json:"sshAuthMountPath,omitempty"`
	MPIImplementation      string                 `json:"mpiImplementation,omitempty"`
	RunLauncherAsWorker    *bool                  `json:"runLauncherAsWorker,omitempty"` // since v0.6
	RunPolicy              RunPolicy              `json:"runPolicy,omitempty"`
	MPIReplicaSpecs        map[string]ReplicaSpec `json:"mpiReplicaSpecs"`
}

// The roles of an MPIJob: the keys of MPIReplicaSpecs.
const (
	MPILauncher = "Launcher"
	MPIWorker   = "Worker"
)

// services is the one Service, for the launcher and the workers (newJobService in pkg/controller).
func (s *MPIJobSpec) services(m *metav1.ObjectMeta) []ServiceSet { return oneService(m.Name) }

func (s *MPIJobSpec) podSets(m *metav1.ObjectMeta) (all []PodSet) {
	if launcher, ok := s.MPIReplicaSpecs[MPILauncher]; ok {
		job := m.Name + "-launcher"
		all = append(all, PodSet{
			Path:      "spec.mpiReplicaSpecs." + MPILauncher + ".template",
			Template:  &launcher.Template,
			Replicas:  1,
			Name:      job,
			Random:    1,
			Host:      job, // newLauncherPodTemplate names the host like the Job
			Subdomain: m.Name,
			ByJobs:    true,
			Jobs:      []string{job},
			Labels:    jobLabels(job),
		})
	}
	if worker, ok := s.MPIReplicaSpecs[MPIWorker]; ok {
		all = append(all, PodSet{
			Path:      "spec.mpiReplicaSpecs." + MPIWorker + ".template",
			Template:  &worker.Template,
			Replicas:  orOne(worker.Replicas),
			Name:      m.Name + "-worker",
			Numbered:  true,
			Subdomain: m.Name,
		})
	}
	return all
}

var mpiOperator = Controller{
	Name:  "MPI Operator",
	Since: "v0.8.0",
	Install: []string{"kubectl apply --server-side -f " +
		"https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.0/deploy/v2beta1/mpi-operator.yaml"},
	Check:  "kubectl get deployment -n mpi-operator mpi-operator",
	Serves: "`target: mpijob`",
}
