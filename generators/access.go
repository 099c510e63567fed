package generators

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// dlroverHome is the namespace in which DLRover's installation binds a role to the account of masters.
const dlroverHome = "dlrover"

// access lets DLRover's master make the workers. Its controller runs it under the namespace's account "default" and
// grants that account nothing outside its own namespace (dlrover#384, #1037). The role is ours and not the
// installation's ClusterRole default-role, which may be absent or renamed, and would also let every pod of that account
// run commands in others and delete jobs.
func access(j *job.Job) []runtime.Object {
	if j.Spec.Framework != job.FrameworkDLRover || j.Metadata.Namespace == dlroverHome {
		return nil
	}
	name := j.Metadata.Name + "-" + componentMaster
	group := []string{apis.DLRoverJobKind.Group}
	role := &rbacv1.Role{
		ObjectMeta: meta(j, name, "access"),
		Rules: []rbacv1.PolicyRule{ // what dlrover/python/scheduler/kubernetes.py of v0.6.1 calls
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{
				"create", "delete",
				"get", "list", "patch", "watch",
			}},
			{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create", "get", "patch"}},
			{APIGroups: group, Resources: []string{"elasticjobs"}, Verbs: []string{"get", "list", "watch"}},
			// Workers are owned by the job with blockOwnerDeletion, which OpenShift asks this for (dlrover#1436).
			{APIGroups: group, Resources: []string{"elasticjobs/finalizers"}, Verbs: []string{"update"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta(j, name, "access"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Name: defaultAccount,
			Namespace: j.Metadata.Namespace,
		}},
	}
	return []runtime.Object{role, binding}
}
