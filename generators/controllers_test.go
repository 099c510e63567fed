package generators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// controllerJob is a job of a target, of which only some fields differ from one case to the next.
func controllerJob(t *testing.T, target string, spec ...string) *job.Job {
	t.Helper()
	return load(t, jobText(append(slices.Clone(spec), "target: "+target)...))
}

// TestStartControllers: starting a suspended job changes one field of one object, hashed name or not.
func TestStartControllers(t *testing.T) {
	for target, want := range map[string]string{
		"jobset":   "JobSet/resnet spec.suspend",
		"trainjob": "TrainJob/resnet spec.suspend",
	} {
		for _, spec := range [][]string{
			{},
			{"gang: {scheduler: koordinator}"},
			{"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]", "failure: {deadline: 1h}"},
		} {
			before := controllerJob(t, target, append(slices.Clone(spec), "suspend: true")...)
			after := controllerJob(t, target, append(slices.Clone(spec), "suspend: false")...)
			if diff := cmp.Diff([]string{want}, changed(t, objects(before), objects(after))); diff != "" {
				t.Errorf("%s %v (-want +got):\n%s", target, spec, diff)
			}
		}
		hashed := changed(t, objects(controllerJob(t, target, "hashedNames: true", "suspend: true")),
			objects(controllerJob(t, target, "hashedNames: true")))
		if len(hashed) != 1 || !strings.HasSuffix(hashed[0], " spec.suspend") {
			t.Errorf("%s with a hash: %q changed, want spec.suspend alone", target, hashed)
		}
	}
}

// TestScaleVCJob: Volcano's webhook lets a job that runs change its size, and nothing that a size could change.
func TestScaleVCJob(t *testing.T) {
	at := func(n int) *job.Job {
		return controllerJob(t, "vcjob", fmt.Sprintf("workers: {replicas: %d, min: 1, max: 8}", n),
			"gang: {scheduler: volcano}")
	}
	for n := 1; n < 8; n++ {
		want := []string{"Job/resnet spec.tasks[0].replicas"}
		if diff := cmp.Diff(want, changed(t, objects(at(n)), objects(at(n+1)))); diff != "" {
			t.Errorf("from %d to %d workers (-want +got):\n%s", n, n+1, diff)
		}
	}
}

// TestHashedControllers: whatever an API server or a controller would not change in an object is in its name, and what
// it would change is not.
func TestHashedControllers(t *testing.T) {
	name := func(target string, spec ...string) string {
		t.Helper()
		var names []string
		for _, obj := range objects(controllerJob(t, target, append(slices.Clone(spec), "hashedNames: true")...),
			"worker") {
			names = append(names, meta(t, obj).GetName())
		}
		if len(slices.Compact(names)) != 1 {
			t.Errorf("%s: objects of different names: %q", target, names)
		}
		return names[0]
	}
	for _, c := range []struct {
		target, base   string
		renames, keeps []string
	}{
		{
			"jobset", "workers: {replicas: 2}",
			[]string{"workers: {replicas: 3}", "failure: {restarts: 9}", "failure: {deadline: 1h}", "image: x:2"},
			[]string{"ttlAfterFinished: 1h", "gitops: true", "suspend: true"},
		},
		{
			"trainjob", "workers: {replicas: 2}",
			[]string{
				"workers: {replicas: 3}", "workers: {replicas: 2, processes: 4}", "failure: {restarts: 9}",
				"failure: {deadline: 1h}", "image: x:2",
			},
			[]string{"suspend: true", "gitops: true"},
		},
		{
			"vcjob", "workers: {replicas: 3, min: 2, max: 4}",
			[]string{
				"failure: {restarts: 9}", "failure: {fatalExitCodes: [1]}", "ttlAfterFinished: 1h", "image: x:2",
				"gang: {scheduler: volcano, queue: q}",
			},
			[]string{"workers: {replicas: 4, min: 2, max: 4}"},
		},
	} {
		base := name(c.target, c.base)
		with := func(spec string) string {
			if strings.HasPrefix(spec, "workers:") {
				return name(c.target, spec)
			}
			return name(c.target, c.base, spec)
		}
		for _, spec := range c.renames {
			if with(spec) == base {
				t.Errorf("%s: %s is refused or ignored, but the name is the same", c.target, spec)
			}
		}
		for _, spec := range c.keeps {
			if got := with(spec); got != base {
				t.Errorf("%s: %s changes the name from %s to %s", c.target, spec, base, got)
			}
		}
	}
}

// TestControllersRendezvous: the endpoint is the full name of the first pod that the controller makes, and the run's id
// has in it what tells this run from the last.
func TestControllersRendezvous(t *testing.T) {
	for target, want := range map[string][2]string{
		"jobset": {
			"resnet-worker-0-0.resnet.ml.svc.cluster.local:29400",
			"metadata.labels['batch.kubernetes.io/controller-uid']",
		},
		"vcjob": {
			"resnet-worker-0.resnet.ml.svc.cluster.local:29400",
			"metadata.annotations['scheduling.k8s.io/group-name']",
		},
	} {
		j := controllerJob(t, target)
		objs := objects(j)
		got := env(t, worker(t, objs))
		if got["PET_RDZV_ENDPOINT"] != want[0] || got["TEGEN_RUN_UID"] != want[1] ||
			got["PET_RDZV_ID"] != "resnet-$(TEGEN_RUN_UID)" {
			t.Errorf("%s: endpoint %q, run %q, id %q", target, got["PET_RDZV_ENDPOINT"], got["TEGEN_RUN_UID"],
				got["PET_RDZV_ID"])
		}
		if n := len(all[*corev1.Service](objs)); n != 0 {
			t.Errorf("%s: %d Services beside the controller's own", target, n)
		}
		for _, wrong := range references(j, objs) {
			t.Errorf("%s: %s", target, wrong)
		}
	}
	for name := range env(t, worker(t, objects(controllerJob(t, "trainjob")))) {
		if strings.HasPrefix(name, "PET_") {
			t.Errorf("%s is the controller's to set in a TrainJob", name)
		}
	}
}

// TestOneJobSpec: the Job in a JobSet is the Job of target job, but for where it starts and ends and who is dialled.
func TestOneJobSpec(t *testing.T) {
	spec := []string{"workers: {replicas: 3, min: 2, max: 4}", "failure: {restarts: 9, deadline: 1h}"}
	alone := all[*batchv1.Job](objects(controllerJob(t, "job", spec...)))[0].Spec
	inSet := all[*apis.JobSet](objects(controllerJob(t, "jobset", spec...)))[0].Spec.ReplicatedJobs[0].Template.Spec
	alone.Suspend, alone.TTLSecondsAfterFinished, alone.Template.Spec.Subdomain = nil, nil, ""
	for _, s := range []*batchv1.JobSpec{&alone, &inSet} {
		c := &s.Template.Spec.Containers[0]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "PET_RDZV_ENDPOINT" })
	}
	if diff := cmp.Diff(alone, inSet); diff != "" {
		t.Errorf("(-alone +in a JobSet):\n%s", diff)
	}
}

// TestProcessesOfTrainJob: a number is a field of Trainer's; what torchrun counts is left for it to count.
func TestProcessesOfTrainJob(t *testing.T) {
	for processes, want := range map[string]*intstr.IntOrString{
		"3": new(intstr.FromInt32(3)), "auto": nil, "cpu": nil,
	} {
		j := controllerJob(t, "trainjob", "workers: {replicas: 2, processes: "+processes+"}")
		got := all[*apis.TrainJob](objects(j))[0].Spec.Trainer
		if diff := cmp.Diff(want, got.NumProcPerNode); diff != "" || *got.NumNodes != 2 {
			t.Errorf("%s: %+v (-want +got):\n%s", processes, got, diff)
		}
	}
}

// TestVCJobFailures: with maxRetry the job fails, so it is one above what is survived; 0 would be Volcano's own 3.
func TestVCJobFailures(t *testing.T) {
	for restarts, want := range map[int32]int32{0: 1, 1: 2, 6: 7} {
		spec := all[*apis.VCJob](objects(controllerJob(t, "vcjob",
			fmt.Sprintf("failure: {restarts: %d}", restarts))))[0].Spec
		if spec.MaxRetry != want || spec.Tasks[0].Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("restarts %d: maxRetry %d, want %d", restarts, spec.MaxRetry, want)
		}
	}
	codes := controllerJob(t, "vcjob", "launcher: entrypoint", "failure: {fatalExitCodes: [64, 2]}")
	want := []apis.VCPolicy{
		{ExitCode: new(int32(2)), Action: "TerminateJob"},
		{ExitCode: new(int32(64)), Action: "TerminateJob"},
		{Event: "PodFailed", Action: "RestartPod"},
	}
	if diff := cmp.Diff(want, all[*apis.VCJob](objects(codes))[0].Spec.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}
