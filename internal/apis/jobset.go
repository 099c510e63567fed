package apis

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// JobSetKind is JobSet's one API version (kubernetes-sigs/jobset v0.12.0, api/jobset/v1alpha2).
var JobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}

// JobSet runs several Jobs as one.
type JobSet = Custom[JobSetSpec]

// JobSetSpec is JobSet.spec.
type JobSetSpec struct {
	ReplicatedJobs          []ReplicatedJob      `json:"replicatedJobs"`
	Network                 *JobSetNetwork       `json:"network,omitempty"`
	SuccessPolicy           *JobSetSuccessPolicy `json:"successPolicy,omitempty"`
	FailurePolicy           *JobSetFailurePolicy `json:"failurePolicy,omitempty"`
	Coordinator             *JobSetCoordinator   `json:"coordinator,omitempty"`
	Suspend                 *bool                `json:"suspend,omitempty"`
	ManagedBy               *string              `json:"managedBy,omitempty"`
	TTLSecondsAfterFinished *int32               `json:"ttlSecondsAfterFinished,omitempty"`
}

// ReplicatedJob is a Job, Replicas times.
type ReplicatedJob struct {
	Name      string                  `json:"name"`
	Replicas  int32                   `json:"replicas,omitempty"`
	DependsOn []JobSetDependency      `json:"dependsOn,omitempty"`
	Template  batchv1.JobTemplateSpec `json:"template"`
}

// JobSetDependency is a ReplicatedJob listed before, whose Jobs must be Ready or Complete.
type JobSetDependency struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// JobSetNetwork is how pods find each other; the Service is named Subdomain, or like the JobSet.
type JobSetNetwork struct {
	EnableDNSHostnames       *bool  `json:"enableDNSHostnames,omitempty"`
	Subdomain                string `json:"subdomain,omitempty"`
	PublishNotReadyAddresses *bool  `json:"publishNotReadyAddresses,omitempty"`
}

// JobSetSuccessPolicy selects the Jobs that must succeed.
type JobSetSuccessPolicy struct {
	Operator             string   `json:"operator"`
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// JobSetFailurePolicy is how often all Jobs are made again when one has failed.
type JobSetFailurePolicy struct {
	MaxRestarts     int32               `json:"maxRestarts,omitempty"`
	RestartStrategy string              `json:"restartStrategy,omitempty"`
	Rules           []JobSetFailureRule `json:"rules,omitempty"`
}

// JobSetFailureRule is what a failed Job means for all, in place of a counted restart; the first that applies decides.
type JobSetFailureRule struct {
	Name                        string   `json:"name"`
	Action                      string   `json:"action"`
	OnJobFailureReasons         []string `json:"onJobFailureReasons,omitempty"`
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns,omitempty"`
	TargetReplicatedJobs        []string `json:"targetReplicatedJobs,omitempty"`
}

// JobSetCoordinator names a pod whose host name all Jobs and pods carry.
type JobSetCoordinator struct {
	ReplicatedJob string `json:"replicatedJob"`
	JobIndex      int32  `json:"jobIndex,omitempty"`
	PodIndex      int32  `json:"podIndex,omitempty"`
}

// jobIndexLabel is which of the replicas of its Job made a pod.
const jobIndexLabel = "jobset.sigs.k8s.io/job-index"

// subdomain is where the pods' hostnames resolve.
func (s *JobSetSpec) subdomain(name string) string {
	if s.Network != nil && s.Network.Subdomain != "" {
		return s.Network.Subdomain
	}
	return name
}

func (s *JobSetSpec) services(m *metav1.ObjectMeta) []ServiceSet {
	return oneService(s.subdomain(m.Name))
}

// MostChildJobs is how many child Jobs of a JobSet are listed: as many as a TrainingJob may have workers.
const MostChildJobs = 4096

// excess is the field with which a JobSet exceeds MostChildJobs.
func (s *JobSetSpec) excess() Excess {
	all := 0
	for i := range s.ReplicatedJobs {
		if all += int(max(s.ReplicatedJobs[i].Replicas, 1)); all > MostChildJobs {
			return Excess{fmt.Sprintf("spec.replicatedJobs[%d].replicas", i), all, MostChildJobs}
		}
	}
	return Excess{}
}

// podSets are one for each child Job, of no more than MostChildJobs.
func (s *JobSetSpec) podSets(m *metav1.ObjectMeta) (all []PodSet) {
	for i := range s.ReplicatedJobs {
		j := &s.ReplicatedJobs[i]
		for n := range min(int(max(j.Replicas, 1)), MostChildJobs-len(all)) {
			job := fmt.Sprintf("%s-%s-%d", m.Name, j.Name, n)
			set := jobSpecSet(fmt.Sprintf("spec.replicatedJobs[%d].template.spec.template", i), &j.Template.Spec, job)
			if !set.Numbered && j.Template.Spec.CompletionMode == nil { // JobSet's webhook sets it
				set.Numbered, set.Labels = true, append(set.Labels, indexLabel)
			}
			set.Labels = append(set.Labels, Label{Key: jobIndexLabel, Value: strconv.Itoa(n)})
			set.Jobs, set.Subdomain = []string{job}, s.subdomain(m.Name)
			set.Annotations = append([]string{jobIndexLabel}, jobSetKeys...)
			if s.Coordinator != nil {
				set.Annotations = append(set.Annotations, coordinatorKey)
			}
			for _, key := range set.Annotations[1:] {
				set.Labels = append(set.Labels, Label{Key: key})
			}
			all = append(all, set)
		}
	}
	return all
}

// jobSetKeys are what its controller puts on every pod, as labels and as annotations (kubernetes-sigs/jobset v0.12.0,
// pkg/controllers/jobset_controller.go, labelAndAnnotateObject).
var jobSetKeys = []string{
	"jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid", "jobset.sigs.k8s.io/replicatedjob-name",
	"jobset.sigs.k8s.io/replicatedjob-replicas", "jobset.sigs.k8s.io/global-replicas", "jobset.sigs.k8s.io/job-key",
	"jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/group-name", "jobset.sigs.k8s.io/restart-attempt",
}

// coordinatorKey is where it writes the host name of the coordinator, in a set that has one.
const coordinatorKey = "jobset.sigs.k8s.io/coordinator"

var jobSetController = Controller{
	Name:  "JobSet",
	Since: "v0.12.0",
	Install: []string{"kubectl apply --server-side -f " +
		"https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml"},
	Check:  "kubectl get deployment -n jobset-system jobset-controller-manager",
	Serves: "`target: jobset`",
}

// jobSetHealth asks the conditions of JobSet (api/jobset/v1alpha2/jobset_types.go), none of which says that pods run.
var jobSetHealth = Health{
	Suspend: "spec.suspend",
	Failed:  []string{"Failed"},
	Done:    []string{"Completed"},
	Jobs:    "status.replicatedJobsStatus",
}
