package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// verdict is what becomes of one change, why, and what to do about it.
type verdict struct {
	Class
	why, remedy string
}

// pair is an object that both states have.
type pair struct {
	*comparison
	was, is *object
}

// rule is what applies to the changed fields of a kind, but for metadata.
type rule struct {
	kind string // Kind or Kind.group
	of   func(p *pair, f field) verdict
}

// rules are those of the kinds that tegen renders and of what runs beside them.
var rules = []rule{
	{"Job.batch", (*pair).job},
	{"CronJob.batch", (*pair).cronJob},
	{"Pod", (*pair).pod},
	{"Deployment.apps", (*pair).deployment},
	{"StatefulSet.apps", (*pair).statefulSet},
	{"DaemonSet.apps", (*pair).daemonSet},
	{"PersistentVolumeClaim", (*pair).claim},
	{"PersistentVolume", (*pair).volume},
	{"StorageClass.storage.k8s.io", (*pair).storageClass},
	{"Service", (*pair).service},
	{"ConfigMap", (*pair).config},
	{"Secret", (*pair).secret},
	{"RoleBinding.rbac.authorization.k8s.io", (*pair).binding},
	{"ClusterRoleBinding.rbac.authorization.k8s.io", (*pair).binding},
	{"PriorityClass.scheduling.k8s.io", (*pair).priorityClass},
	{"ResourceClaimTemplate.resource.k8s.io", (*pair).wholeSpec},
	{"ResourceClaim.resource.k8s.io", (*pair).wholeSpec},
	{"JobSet.jobset.x-k8s.io", (*pair).jobSet},
	{"TrainJob.trainer.kubeflow.org", (*pair).trainJob},
	{"TrainingRuntime.trainer.kubeflow.org", (*pair).trainingRuntime},
	{"PyTorchJob.kubeflow.org", (*pair).kubeflowJob},
	{"MXJob.kubeflow.org", (*pair).kubeflowJob},
	{"MPIJob.kubeflow.org", (*pair).kubeflowJob},
	{"Job.batch.volcano.sh", (*pair).volcanoJob},
	{"Namespace", (*pair).free},
	{"ServiceAccount", (*pair).free},
	{"Role.rbac.authorization.k8s.io", (*pair).free},
	{"ClusterRole.rbac.authorization.k8s.io", (*pair).free},
	{"NetworkPolicy.networking.k8s.io", (*pair).free},
	{"PodDisruptionBudget.policy", (*pair).free},
	{"LimitRange", (*pair).free},
	{"ResourceQuota", (*pair).free},
}

// changed collects what differs between two versions of an object.
func (c *comparison) changed(was, is *object) {
	p := &pair{c, was, is}
	c.blind[0] = c.blind[0] || was.blind
	c.blind[1] = c.blind[1] || is.blind
	for _, f := range fieldsOf(was, is) {
		v := p.verdict(f)
		if v.Class == Refused {
			v = p.anew(v)
			v.remedy = p.remedy(v.remedy)
		}
		change := Change{Class: v.Class, Path: f.path.String(), Old: f.old, New: f.new, Why: v.why, Remedy: v.remedy}
		if is.is("Secret") {
			change.Path = f.path.keys().String()
			change.Old, change.New, change.Hidden = nil, nil, true
		}
		c.add(is, change)
	}
}

func (p *pair) verdict(f field) verdict {
	switch {
	case f.path.matches("apiVersion"):
		return verdict{InPlace, "the same object in another version of its API", ""}
	case f.path.matches("metadata"):
		return p.metadata(f)
	}
	for _, r := range rules {
		if p.is.is(r.kind) {
			return r.of(p, f)
		}
	}
	return verdict{
		Unknown, "its controller and its webhooks decide: " + p.is.Kind + " has no rule here",
		"try it: kubectl apply --server-side --dry-run=server",
	}
}

// free is the rule of kinds whose fields may all change.
func (p *pair) free(field) verdict { return verdict{Class: InPlace} }

const queueLabel = "kueue.x-k8s.io/queue-name"

func (p *pair) metadata(f field) verdict {
	if f.path.matches("metadata.labels."+queueLabel) || len(f.path) == 3 && f.path[2] == queueLabel {
		if p.suspended(p.was) {
			return verdict{InPlace, "a suspended job may change its queue", ""}
		}
		return verdict{
			Refused, "Kueue's webhook lets only a suspended job change its queue",
			"suspend the job first, or delete it and let it be made anew",
		}
	}
	return verdict{Class: InPlace}
}

// suspended says whether a workload has no pods since it is suspended.
func (p *pair) suspended(o *object) bool { return suspended(o) }

func suspended(o *object) bool {
	return yes(o.at("spec", "suspend")) || yes(o.at("spec", "runPolicy", "suspend")) ||
		o.is("Pod") && len(items(o.at("spec", "schedulingGates"))) > 0
}

// hashKept is the remedy where an object changed and kept a name that has a hash of its content: something changed it
// after tegen rendered it, and no field of the job would give it another name.
const hashKept = "make the change in the TrainingJob, or in a kustomization that is built before tegen runs: then " +
	"the " +
	"hash in the name changes too; 'tegen check' finds what was changed afterwards; or delete it first"

// remedy replaces the advice to use a hashed name for an object that has one.
func (p *pair) remedy(otherwise string) string {
	if hashed := text(p.is.annotations()[names.ContentHash]) != ""; hashed &&
		(otherwise == newName || otherwise == anewByHand) {
		return hashKept
	}
	return otherwise
}

// anew is what becomes of a change that is refused where an annotation has a reconciler delete the object.
func (p *pair) anew(v verdict) verdict {
	how := recreatedBy(p.is)
	if how == "" {
		return v
	}
	const kubectl = "; kubectl apply is refused"
	switch {
	case p.is.is("PersistentVolumeClaim") || p.is.is("PersistentVolume") || p.is.is("Namespace"):
		return verdict{
			Data, "it cannot change, and " + how + " has it deleted and made anew: what it holds goes",
			"take the annotation away; make a claim of another name",
		}
	case p.is.is("StatefulSet.apps") && text(p.was.at("spec", "persistentVolumeClaimRetentionPolicy",
		"whenDeleted")) == "Delete":
		return verdict{Data, "it cannot change, and " + how + " has it deleted and made anew: its claims go, since " +
			"whenDeleted is Delete", "take the annotation away; delete it with --cascade=orphan first"}
	}
	return verdict{Recreate, "it cannot change, and " + how + " has it deleted and made anew: its pods end, and " +
		"begin " +
		"again" + kubectl, ""}
}

// recreatedBy is the annotation by which a reconciler deletes an object whose change is refused. Argo CD replaces with
// Replace=true alone, which is refused too.
func recreatedBy(o *object) string {
	for _, metadata := range []map[string]any{o.annotations(), o.labels()} {
		for _, k := range slices.Sorted(maps.Keys(metadata)) {
			value := text(metadata[k])
			if k == names.ArgoSyncOptions && !strings.Contains(value, "Force=true") || !names.Recreates(k, value) {
				continue
			}
			return k + ": " + value
		}
	}
	return ""
}
