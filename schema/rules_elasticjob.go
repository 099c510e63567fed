package schema

import (
	"fmt"
	"strings"
)

var elasticjobRules = []rule{
	{(*validation).elasticJob, "framework target launcher command args rendezvous.backend rendezvous.id podTemplate"},
	{(*validation).elasticJobFailure, "framework target failure"},
}

// elasticJob holds a job to what TorchElastic's controller does on its own: it hands --rdzv_backend=etcd,
// --rdzv_endpoint, --rdzv_id and --nnodes to every container before its args, and nothing else.
func (r *validation) elasticJob() {
	s := &r.Spec
	if s.Framework != FrameworkTorchelastic || s.Target != TargetElasticJob {
		return
	}
	if s.Rendezvous.Backend != BackendEtcd {
		r.fail("spec.rendezvous.backend", "requires",
			"the controller of target elasticjob passes --rdzv_backend=etcd to every worker: set backend: etcd, and "+
				"store: etcd or external")
	}
	if s.Rendezvous.ID != "" {
		r.fail("spec.rendezvous.id", "requires",
			"the controller of target elasticjob names the run like the job: leave it out")
	}
	l := s.Launch()
	if last := len(s.Command) - 1; l != nil && last >= 0 && l.Program != "" &&
		!launcherWord().MatchString(s.Command[last]) {
		r.fail(fmt.Sprintf("spec.command[%d]", last), "requires",
			"the controller of target elasticjob puts its options before args: let the command end with the "+
				"launcher, and move the rest to args")
	}
	if l != nil {
		for _, o := range l.Options {
			if o.Name == "nnodes" || strings.HasPrefix(o.Name, "rdzv_") && o.Name != "rdzv_conf" {
				r.fail(o.path, "requires",
					"--%s is passed by the controller of target elasticjob: leave it out, spec.workers and "+
						"spec.rendezvous say it", o.Name)
			}
		}
	}
	for i, c := range r.patch().Spec.Containers {
		if c.Name != "worker" {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d]", i), "requires",
				"the controller of target elasticjob passes the launcher's options to every container, which %q does "+
					"not read: target job or pytorchjob takes more containers", c.Name)
		}
	}
}

// LeavesFailed says whether a worker that failed stays so and the others go on, on targets that do not count the
// failures of each.
func (s *Spec) LeavesFailed() bool {
	n := s.Failure.RestartsPerWorker
	return n != nil && *n == 0 &&
		(s.Target == TargetVCJob || s.Target == TargetElasticJob && s.Framework == FrameworkTorchelastic)
}

// elasticJobFailure refuses to leave killed workers as they are: TorchElastic's controller makes them again wherever it
// makes no others again (ExitCode, kubeflow/common v0.0.0-20200327002023-0b3a4c3fca85, pkg/util/train).
func (r *validation) elasticJobFailure() {
	const at = "spec.failure.ignoreDisruptions"
	if s := &r.Spec; s.Target == TargetElasticJob && s.LeavesFailed() && r.IsSet(at) && !s.Failure.IgnoreDisruptions {
		r.fail(at, "requires", "the controller of target elasticjob makes workers again that were killed where it "+
			"leaves those that failed: leave it out")
	}
}
