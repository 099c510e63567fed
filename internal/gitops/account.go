package gitops

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckTree returns every object of a tree that no account of --service-account can be limited to.
func (f Flux) CheckTree(folders []Folder) error {
	if f.ServiceAccount == "" {
		return nil
	}
	var errs []error
	if slices.Contains(namespaces(folders), f.Namespace) {
		errs = append(errs, fmt.Errorf("--service-account: the tree has objects in %s, the namespace of the account: "+
			"a pod there can run as each account of the namespace, so that no permission limits it. Move the job to "+
			"another namespace, or set --namespace", f.Namespace))
	}
	for _, o := range objects(folders) {
		if o.role != nil && o.role.AggregationRule != nil {
			errs = append(errs, fmt.Errorf("--service-account: the API server lets only cluster-admin write the "+
				"ClusterRole %s, which has an aggregationRule: write its rules instead, or apply it separately",
				o.Name))
		}
	}
	return errors.Join(errs...)
}

// account returns the ServiceAccount that Flux applies a tree as, and its permissions: in each namespace a Role, and a
// ClusterRole for the objects that are in no namespace.
func (f Flux) account(folders []Folder) []runtime.Object {
	meta := metav1.ObjectMeta{Name: f.ServiceAccount, Namespace: f.Namespace}
	if f.OnRemoval == Delete { // as this account, which has to be there as long as the Kustomizations
		meta.Annotations = map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}
	}
	all := []runtime.Object{&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(bool)}}
	rules := permissions(objects(folders))
	for _, namespace := range f.waits(folders) { // for the pods of these, which it lists
		rules[namespace] = append(rules[namespace], rbacv1.PolicyRule{
			Verbs: []string{"list"}, APIGroups: []string{"", "apps"}, Resources: []string{"pods", "replicasets"},
		})
	}
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		all = append(all, f.grant(namespace, rules[namespace], meta)...)
	}
	return all
}

// waits are the namespaces with objects whose pods Flux lists while it waits (fluxcd/cli-utils, kstatus/polling).
func (f Flux) waits(folders []Folder) []string {
	all := map[string]bool{}
	for _, folder := range folders {
		for _, o := range folder.Objects {
			if f.Wait && endless(folder) == "" && o.Group == "apps" && o.Kind != "DaemonSet" {
				all[o.Namespace] = true
			}
		}
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// grant returns a role and its binding, which are cluster-scoped if there is no namespace. Several trees can have jobs
// in a namespace, so that the name has that of the tree's Kustomizations.
func (f Flux) grant(namespace string, rules []rbacv1.PolicyRule, account metav1.ObjectMeta) []runtime.Object {
	meta := metav1.ObjectMeta{
		Name: "tegen:" + f.Namespace + ":" + f.Name, Namespace: namespace, Annotations: account.Annotations,
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}}
	if namespace == "" {
		ref.Kind = clusterRoleKind
		return []runtime.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects},
		}
	}
	return []runtime.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects},
	}
}

// accountNotes tell what the account may do, and what it gets from roles of the tree.
func (f Flux) accountNotes(folders []Folder) []string {
	var roles []string
	for _, o := range objects(folders) {
		if o.role != nil {
			roles = append(roles, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
	}
	cluster, namespaced := kinds(folders)
	notes := []string{fmt.Sprintf("the account %s/%s can apply only the kinds and namespaces of the tree: %s. For "+
		"another kind, namespace, role or cluster-scoped object apply the new output of this command before the commit",
		f.Namespace, f.ServiceAccount, contents(folders, cluster, namespaced))}
	if len(roles) > 0 {
		notes = append(notes, fmt.Sprintf("the account %s/%s also has the permissions of the roles that it writes: %s",
			f.Namespace, f.ServiceAccount, strings.Join(union(roles, nil), ", ")))
	}
	if unknown := unknownKinds(folders); unknown != "" {
		notes = append(notes, "check the resource names in the Roles: tegen has no definition of "+unknown)
	}
	return notes
}
