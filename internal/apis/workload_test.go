package apis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
)

// pod is the template of most of the objects below.
const pod = "template: {spec: {containers: [{name: c}], subdomain: sub}}"

// ofJobSet are the labels that JobSet's controller gives every pod beside the index of its Job.
const ofJobSet = " jobset.sigs.k8s.io/jobset-name jobset.sigs.k8s.io/jobset-uid " +
	"jobset.sigs.k8s.io/replicatedjob-name jobset.sigs.k8s.io/replicatedjob-replicas " +
	"jobset.sigs.k8s.io/global-replicas jobset.sigs.k8s.io/job-key jobset.sigs.k8s.io/job-global-index " +
	"jobset.sigs.k8s.io/group-name jobset.sigs.k8s.io/restart-attempt"

var workloads = map[string]struct {
	object string
	want   []string
}{
	"Pod": {
		"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}], " +
			"schedulingGates: [{name: g}]}}",
		[]string{" 1 p", "suspended"},
	},
	"Job": {
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, " +
			"completions: 2, suspend: true, " +
			pod + "}}",
		[]string{"spec.template 2 j-* sub by Jobs; job-name=j batch.kubernetes.io/job-name=j controller-uid " +
			"batch.kubernetes.io/controller-uid", "suspended"},
	},
	"Indexed Job": {
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completionMode: Indexed, completions: 4, " +
			pod + "}}",
		[]string{"spec.template 1 j-{0..3}-* sub by Jobs; job-name=j " +
			"batch.kubernetes.io/job-name=j controller-uid " +
			"batch.kubernetes.io/controller-uid batch.kubernetes.io/job-completion-index=#"},
	},
	"CronJob": {
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {" + pod + "}}}}",
		[]string{"spec.jobTemplate.spec.template ? -* sub by Jobs; job-name batch.kubernetes.io/job-name " +
			"controller-uid batch.kubernetes.io/controller-uid"},
	},
	"StatefulSet": {
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 2, ordinals: {start: 5}, " +
			"serviceName: peers, " + pod + "}}",
		[]string{"spec.template 2 s-{5..6} peers; statefulset.kubernetes.io/pod-name=s-# " +
			"apps.kubernetes.io/pod-index=# controller-revision-hash"},
	},
	"Deployment": {
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {" + pod + "}}",
		[]string{"spec.template 1 d-*-* sub; pod-template-hash"},
	},
	"DaemonSet": {
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {" + pod + "}}",
		[]string{"spec.template ? d-* sub; controller-revision-hash"},
	},
	"JobSet": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: " +
			"{suspend: true, replicatedJobs: " +
			"[{name: w, replicas: 1, template: {spec: {parallelism: 2, completions: 2, " + pod + "}}}]}}",
		[]string{
			"spec.replicatedJobs[0].template.spec.template 2 s-w-0-{0..1}-* s by Jobs s-w-0; job-name=s-w-0 " +
				"batch.kubernetes.io/job-name=s-w-0 controller-uid batch.kubernetes.io/controller-uid " +
				"batch.kubernetes.io/job-completion-index=# jobset.sigs.k8s.io/job-index=0" + ofJobSet,
			"makes s", "suspended",
		},
	},
	"JobSet with a coordinator": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: " +
			"{coordinator: {replicatedJob: w}, replicatedJobs: [{name: w, template: {spec: {" + pod + "}}}]}}",
		[]string{"spec.replicatedJobs[0].template.spec.template 1 s-w-0-{0..0}-* s by Jobs s-w-0; job-name=s-w-0 " +
			"batch.kubernetes.io/job-name=s-w-0 controller-uid batch.kubernetes.io/controller-uid " +
			"batch.kubernetes.io/job-completion-index=# jobset.sigs.k8s.io/job-index=0" + ofJobSet +
			" jobset.sigs.k8s.io/coordinator", "makes s"},
	},
	"TrainJob, whose runtime has the pods": {
		"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {suspend: true}}",
		[]string{"suspended"},
	},
	"TrainingRuntime": {
		"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: t}, spec: " +
			"{mlPolicy: {numNodes: 2, torch: {}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {" +
			"completionMode: Indexed, " + pod + "}}}]}}}}",
		[]string{"spec.template.spec.replicatedJobs[0].template.spec.template 2 t-node-0-{0..1}-* t by Jobs " +
			"t-node-0; job-name=t-node-0 batch.kubernetes.io/job-name=t-node-0 controller-uid " +
			"batch.kubernetes.io/controller-uid batch.kubernetes.io/job-completion-index=# " +
			"jobset.sigs.k8s.io/job-index=0" + ofJobSet + "; port 29500; of TrainJob/t", "makes t"},
	},
	"PyTorchJob that has its port": {
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p}, spec: {pytorchReplicaSpecs: {Worker: " +
			"{template: {spec: {containers: [{name: c, ports: [{name: pytorchjob-port, containerPort: 1}]}]}}}}}}",
		[]string{"spec.pytorchReplicaSpecs.Worker.template 1 p-worker-{0..0}", "makes p-worker-0"},
	},
	"PyTorchJob": {
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p}, spec: {runPolicy: {suspend: true}, " +
			"pytorchReplicaSpecs: {Master: {" + pod + "}, Worker: {replicas: 2, " + pod + "}}}}",
		[]string{
			"spec.pytorchReplicaSpecs.Master.template 1 p-master-{0..0}; port 23456",
			"spec.pytorchReplicaSpecs.Worker.template 2 p-worker-{0..1}; port 23456",
			"makes p-master-0 p-worker-0 p-worker-1", "suspended",
		},
	},
	"MPIJob": {
		"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: m}, spec: {mpiReplicaSpecs: " +
			"{Launcher: {" + pod + "}, Worker: {replicas: 2, " + pod + "}}}}",
		[]string{
			"spec.mpiReplicaSpecs.Launcher.template 1 m-launcher-*(m-launcher) m by Jobs m-launcher; " +
				"job-name=m-launcher batch.kubernetes.io/job-name=m-launcher controller-uid " +
				"batch.kubernetes.io/controller-uid",
			"spec.mpiReplicaSpecs.Worker.template 2 m-worker-{0..1} m", "makes m",
		},
	},
	"MxJob": {
		"{apiVersion: mxnet.mlkube.io/v1beta1, kind: MxJob, metadata: {name: m}, spec: " +
			"{RuntimeId: r, replicaSpecs: " +
			"[{mxReplicaType: SCHEDULER, " + pod + "}, {mxReplicaType: WORKER, replicas: 2, " + pod + "}]}}",
		[]string{
			"spec.replicaSpecs[0].template 1 m-scheduler-r-{0..0}-* by a Job each; job-name " +
				"batch.kubernetes.io/job-name controller-uid batch.kubernetes.io/controller-uid",
			"spec.replicaSpecs[1].template 2 m-worker-r-{0..1}-* by a Job each; job-name " +
				"batch.kubernetes.io/job-name controller-uid batch.kubernetes.io/controller-uid",
			"makes m-scheduler-r-0",
		},
	},
	"Volcano's Job": {
		"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: v}, spec: {plugins: {svc: []}, " +
			"tasks: [{name: w, replicas: 2, template: {spec: {containers: [{name: c}]}}}]}}",
		[]string{"spec.tasks[0].template 2 v-w-{0..1} v", "makes v"},
	},
	"Volcano's Job with a subdomain of its own": {
		"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: v}, spec: {plugins: {svc: []}, " +
			"tasks: [{name: w, replicas: 2, " + pod + "}]}}",
		[]string{"spec.tasks[0].template 2 v-w-{0..1} sub", "makes v"},
	},
}

// TestWorkloads: the pods of each kind, in one line a set: path, pods, names and hostnames, Service, Jobs, and
// the labels that its controller adds.
func TestWorkloads(t *testing.T) {
	for name, c := range workloads {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Read(name, []byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			w := apis.WorkloadOf(objects[0])
			if w == nil {
				t.Fatalf("%T is no workload", objects[0])
			}
			var got []string
			for _, s := range w.PodSets() {
				got = append(got, words(&s))
			}
			var services []string
			for _, set := range w.Services() {
				services = slices.AppendSeq(services, set.Names())
			}
			if len(services) > 0 {
				got = append(got, "makes "+strings.Join(services, " "))
			}
			if w.Suspended() {
				got = append(got, "suspended")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// words are a set in one line.
func words(s *apis.PodSet) string {
	count, name := fmt.Sprint(s.Replicas), s.Name
	if s.Uncounted {
		count = "?"
	}
	if s.Numbered {
		name += fmt.Sprintf("-{%d..%d}", s.First, s.First+s.Numbers()-1)
	}
	name += strings.Repeat("-*", s.Random)
	if s.Host != "" {
		name += "(" + s.Host + ")"
	}
	line := s.Path + " " + count + " " + name
	if s.Subdomain != "" {
		line += " " + s.Subdomain
	}
	if s.JobEach {
		line += " by a Job each"
	} else if s.ByJobs {
		line += " " + strings.Join(append([]string{"by Jobs"}, s.Jobs...), " ")
	}
	var labels []string
	for _, l := range s.Labels {
		label := l.Key
		if l.Value != "" || l.Numbered {
			label += "=" + l.Value
		}
		if l.Numbered {
			label += "#"
		}
		labels = append(labels, label)
	}
	if len(labels) > 0 {
		line += "; " + strings.Join(labels, " ")
	}
	for _, p := range s.Ports {
		line += fmt.Sprintf("; port %d", p.ContainerPort)
	}
	if s.Owner != "" {
		line += "; of " + s.Owner
	}
	return line
}

// TestBuiltIn: no kind of apps, batch or the core group has pods of a template and is missing.
func TestBuiltIn(t *testing.T) {
	var missing []string
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		spec, ok := typ.FieldByName("Spec")
		if !ok || !slices.Contains([]string{"", "apps", "batch"}, gvk.Group) || gvk.Version != "v1" {
			continue
		}
		_, pods := spec.Type.FieldByName("Template")
		if pods && !apis.IsBuiltIn(gvk.Kind) {
			missing = append(missing, gvk.Kind)
		}
	}
	if diff := cmp.Diff([]string{"ReplicationController"}, missing); diff != "" { // which nobody writes any more
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKindsOnce: a kind stands in the list once, and one that Kubernetes does not serve has a controller.
func TestKindsOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range apis.Kinds {
		if seen[k.String()] {
			t.Errorf("%s is there twice", k)
		}
		seen[k.String()] = true
		if builtIn := k.Group == "scheduling.k8s.io" || k.Group == "resource.k8s.io"; builtIn != (k.Controller == nil) {
			t.Errorf("%s: controller %v", k, k.Controller)
		}
	}
}
