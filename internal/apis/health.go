package apis

import "k8s.io/apimachinery/pkg/runtime/schema"

// Health says where a controller writes how an object of a kind is. Argo CD and Flux ask in this order: failed, done,
// suspended, running. An object of which none is true is in progress.
type Health struct {
	// Suspend is the path of the field that suspends an object; "" where Suspended has words for it.
	Suspend string
	// Phases are the paths of fields that hold one word each; nil where the words are types of conditions that are
	// True, in status.conditions.
	Phases                           []string
	Failed, Done, Suspended, Running []string // words

	// Jobs is the path of a list in which each child Job has the numbers active, ready and succeeded, in place of
	// Running: all run where none of the active ones is unready.
	Jobs string
	// Passive reports that an object which has not failed is healthy: it waits for pods that another object makes, and
	// that object says so.
	Passive bool
	// None is why there is nothing to ask: a reconciler then counts an object as healthy once it is there.
	None string
}

// HealthOf is the health of a kind, whatever its version; nil for one that is not among Kinds.
func HealthOf(k schema.GroupKind) *Health {
	for i := range Kinds {
		if Kinds[i].GroupKind() == k {
			return Kinds[i].Health
		}
	}
	return nil
}

// The states that Argo CD shows of an object (argo-cd v3.2.11, gitops-engine pkg/health).
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Suspended   = "Suspended"
	Degraded    = "Degraded"
)

// Rule is a rule of Argo CD's ConfigMap argocd-cm.
type Rule struct {
	Kind schema.GroupKind
	Key  string // of the ConfigMap
	Lua  string
}

// Rules are Argo CD's rules for the kinds whose health it does not know or gets wrong: those of Kubernetes, then those
// of Kinds in their order. A suspended object has the health that is passed in.
func Rules(suspended string) []Rule {
	var rules []Rule
	seen := map[schema.GroupKind]bool{}
	add := func(k schema.GroupKind, text string) {
		if !seen[k] {
			seen[k] = true
			rules = append(rules, Rule{k, ruleKey(k), text})
		}
	}
	for _, r := range builtInRules(suspended) {
		add(r.Kind, r.Lua)
	}
	for _, k := range Kinds {
		if k.Health.None == "" {
			add(k.GroupKind(), k.Health.lua(suspended))
		}
	}
	return rules
}

// ruleKey is how argocd-cm names a rule: a kind of the core group has no group before it.
func ruleKey(k schema.GroupKind) string {
	const prefix = "resource.customizations.health."
	if k.Group == "" {
		return prefix + k.Kind
	}
	return prefix + k.Group + "_" + k.Kind
}
