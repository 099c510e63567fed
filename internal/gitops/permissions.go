package gitops

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tegen-dev/tegen/internal/apis"
)

// applyVerbs are what kustomize-controller needs of a kind (fluxcd/pkg, ssa/manager_apply.go and manager_delete.go). It
// reads each object by its name, and server-side apply of a new object needs patch and create.
var applyVerbs = []string{"get", "create", "patch", "delete"}

const (
	roleKind        = "Role"
	clusterRoleKind = "ClusterRole"
)

// permissions are the rules that allow objects to be applied, by namespace. In a namespace they name kinds, since a
// commit may rename an object. Across namespaces, under "", they name the objects: a rule for all Namespaces or all
// ClusterRoles would permit nearly everything.
func permissions(objects []Object) map[string][]rbacv1.PolicyRule {
	all := map[string][]rbacv1.PolicyRule{}
	add := func(namespace string, rules ...rbacv1.PolicyRule) {
		for _, rule := range rules {
			all[namespace] = mergeRule(all[namespace], rule)
		}
	}
	for _, o := range objects {
		rule := rbacv1.PolicyRule{
			Verbs: applyVerbs, APIGroups: []string{o.Group}, Resources: []string{apis.Plural(o.Kind)},
		}
		if o.clusterScoped() {
			rule.ResourceNames = []string{o.Name}
		} else if o.Namespace == "" {
			continue // Flux does not apply it
		}
		add(o.Namespace, rule)
		add(o.Namespace, o.escalation()...)
	}
	for _, rules := range all {
		slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int {
			return slices.Compare(a.APIGroups, b.APIGroups)
		})
	}
	return all
}

// escalation returns the rules without which the API server refuses an object of RBAC: who writes a role must have its
// permissions. Who binds one must have them too, or the verb bind: Flux tries a binding before its role exists.
func (o Object) escalation() []rbacv1.PolicyRule {
	switch {
	case o.role != nil:
		return o.role.Rules
	case o.ref != nil:
		return []rbacv1.PolicyRule{{
			Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{apis.Plural(o.ref.Kind)}, ResourceNames: []string{o.ref.Name},
		}}
	}
	return nil
}

// mergeRule adds a rule to rules of which one may permit the same of other resources, or of objects of other names.
func mergeRule(rules []rbacv1.PolicyRule, more rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range rules {
		r := &rules[i]
		if !slices.Equal(r.Verbs, more.Verbs) || !slices.Equal(r.APIGroups, more.APIGroups) ||
			len(r.NonResourceURLs)+len(more.NonResourceURLs) > 0 ||
			(r.ResourceNames == nil) != (more.ResourceNames == nil) {
			continue
		}
		if r.ResourceNames == nil {
			r.Resources = union(r.Resources, more.Resources)
			return rules
		}
		if slices.Equal(r.Resources, more.Resources) {
			r.ResourceNames = union(r.ResourceNames, more.ResourceNames)
			return rules
		}
	}
	return append(rules, more)
}

// union returns a new list, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
