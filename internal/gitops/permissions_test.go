package gitops

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/test/upstream"
)

func account(f *Flux) { f.ServiceAccount, f.OnRemoval = "jobs", Delete }

// granting is a tree with objects of RBAC, and with kinds in several namespaces and in none.
func granting(t *testing.T) []Folder {
	t.Helper()
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	all, err := ReadTree(fstest.MapFS{
		"bert/kustomization.yaml": {Data: []byte("metadata: {namespace: research}\n")},
		"bert/worker.yaml": {Data: []byte(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: bert, namespace: research}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: bert}
`)},
		"hvd/kustomization.yaml": {Data: []byte("metadata: {namespace: training}\n")},
		"hvd/keygen.yaml": {Data: []byte(rbac + `kind: Role
metadata: {name: keygen, namespace: training}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [ssh], verbs: [get, patch]}]
---
` + rbac + `kind: RoleBinding
metadata: {name: keygen, namespace: training}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keygen}
---
` + rbac + `kind: RoleBinding
metadata: {name: view, namespace: training}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
---
apiVersion: batch/v1
kind: Job
metadata: {name: keygen, namespace: training}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: keygen, namespace: training}
`)},
		"overlay/kustomization.yaml": {Data: []byte("{}")},
		"overlay/all.yaml": {Data: []byte(rbac + `kind: ClusterRole
metadata: {name: nodes}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list]}]
---
` + rbac + `kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: shared}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
`)},
	}, "rendered/eks")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPermissions: an account may write the kinds of a namespace, the cluster-scoped objects by their names, and has
// what the API server asks of who writes a role or binds one.
func TestPermissions(t *testing.T) {
	got := map[string][]string{}
	for namespace, rules := range permissions(objects(granting(t))) {
		for _, r := range rules {
			got[namespace] = append(got[namespace], strings.Join([]string{
				strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","),
				strings.Join(r.ResourceNames, ","),
			}, " "))
		}
	}
	const write, rbac = "get,create,patch,delete ", "rbac.authorization.k8s.io "
	want := map[string][]string{
		"research": {write + "jobset.x-k8s.io jobsets "},
		"training": {
			"get,patch  secrets ssh", write + "batch jobs ", write + "networking.k8s.io networkpolicies ",
			write + rbac + "rolebindings,roles ", "bind " + rbac + "roles keygen", "bind " + rbac + "clusterroles view",
		},
		"": {
			"get,list  nodes ", write + " persistentvolumes bert,shared", write + "kueue.x-k8s.io clusterqueues gpus",
			write + rbac + "clusterroles nodes", write + rbac + "clusterrolebindings nodes",
			"bind " + rbac + "clusterroles nodes",
		},
	}
	for _, all := range []map[string][]string{got, want} {
		for _, rules := range all {
			slices.Sort(rules)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnplaced: an object that needs a namespace and has none gives no permission across namespaces.
func TestUnplaced(t *testing.T) {
	role := Object{GroupKind: schema.GroupKind{Group: rbacv1.GroupName, Kind: roleKind}, Name: "a"}
	role.role = &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}
	all := append(of("", schema.GroupKind{Kind: "Secret"}, apis.JobSetKind.GroupKind()), role)
	if got := permissions(all); len(got) > 0 {
		t.Errorf("it permits %v", got)
	}
}

// TestWaitPermissions: to wait for a StatefulSet Flux lists its pods.
func TestWaitPermissions(t *testing.T) {
	sets := []Folder{{Name: "a", Objects: append(of("ml", apis.JobSetKind.GroupKind()), of("store",
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"})...)}}
	for wait, want := range map[bool]int{false: 0, true: 1} {
		objects, _ := Kustomizations(flux(func(f *Flux) { f.ServiceAccount, f.Wait = "jobs", wait }), sets)
		got := 0
		for _, o := range objects {
			role, ok := o.(*rbacv1.Role)
			if !ok {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "pods") {
					got++
				}
			}
		}
		if got != want {
			t.Errorf("wait %t: %d rules permit it to list pods, want %d", wait, got, want)
		}
	}
}

// TestAccountTree: there is no account where none can limit a tree, and what it may do is told.
func TestAccountTree(t *testing.T) {
	aggregated := of("", schema.GroupKind{Group: rbacv1.GroupName, Kind: clusterRoleKind})
	aggregated[0].role = &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}
	for name, tc := range map[string]struct {
		objects []Object
		want    string
	}{
		"right":        {of("training", schema.GroupKind{Kind: "Service"}), ""},
		"with Flux":    {of("flux-system", schema.GroupKind{Kind: "Service"}), "a pod there can run as each account"},
		"cluster role": {aggregated, "the ClusterRole a, which has an aggregationRule"},
	} {
		err := flux(account).CheckTree([]Folder{{Objects: tc.objects}})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err := flux(nil).CheckTree([]Folder{{Objects: tc.objects}}); err != nil {
			t.Errorf("%s, without an account: %v", name, err)
		}
	}
	_, notes := Kustomizations(flux(account), granting(t))
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		"the account flux-system/jobs can apply only the kinds and namespaces of the tree: Job, JobSet.jobset",
		"in research, training, and cluster-scoped ",
		"also has the permissions of the roles that it writes: nodes, training/keygen",
		"check the resource names in the Roles: tegen has no definition of ClusterQueue.kueue.x-k8s.io",
		"create the namespaces research, training before you apply this",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in:\n%s", want, all)
		}
	}
	if err := flux(func(f *Flux) { f.ServiceAccount = "Jobs" }).Check(); err == nil ||
		!strings.Contains(err.Error(), "--service-account: must be a name") {
		t.Error(err)
	}
}

// TestProjectTree: the project of a tree in Argo CD's own namespace would limit nothing, unless that is another
// cluster's.
func TestProjectTree(t *testing.T) {
	tree := []Folder{{Objects: of("argocd", schema.GroupKind{Kind: "Service"})}}
	for _, tc := range []struct {
		edit    func(*ArgoCD)
		refused bool
	}{
		{nil, true},
		{func(a *ArgoCD) { a.Cluster = "eks" }, false},
		{func(a *ArgoCD) { a.Project = "ml" }, false},
		{func(a *ArgoCD) { a.Namespace = "argo" }, false},
	} {
		if err := argocd(tc.edit).CheckTree(tree); (err != nil) != tc.refused {
			t.Errorf("%v, want refused %t", err, tc.refused)
		}
	}
}

// TestUnreadableRole: what a role permits has to be known.
func TestUnreadableRole(t *testing.T) {
	_, err := ReadTree(fstest.MapFS{
		"a/kustomization.yaml": {},
		"a/role.yaml": {Data: []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: b}\n" +
			"rules: none\n")},
	}, "rendered/eks")
	if err == nil || !strings.Contains(err.Error(), "rendered/eks/a/role.yaml: Role b cannot be read") {
		t.Error(err)
	}
}

// TestPlural holds resource names against the definitions of other projects, and against those of Kubernetes.
func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"NetworkPolicy": "networkpolicies", "StorageClass": "storageclasses", "Endpoints": "endpoints",
		"Service": "services", "Ingress": "ingresses", "PodDisruptionBudget": "poddisruptionbudgets",
		"ResourceClaimTemplate": "resourceclaimtemplates", "Gateway": "gateways", "LimitRange": "limitranges",
	} {
		if got := apis.Plural(kind); got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
	files, absent := upstream.Files(root)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct{ Names struct{ Kind, Plural string } }
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if names := crd.Spec.Names; apis.Plural(names.Kind) != names.Plural {
			t.Errorf("%s: %s is %s, want %s", file, names.Kind, apis.Plural(names.Kind), names.Plural)
		}
	}
	if absent != nil {
		upstream.Absent(t, absent)
	}
}

// TestMade: of every kind that runs pods the project permits the pods, whose logs Argo CD would not show otherwise.
func TestMade(t *testing.T) {
	none := []string{"TrainingRuntime", "PodGroup", "Workload", "ResourceClaimTemplate", "PodMonitor"}
	for _, k := range apis.Kinds {
		if slices.Contains(made[k.Kind], podKind) == slices.Contains(none, k.Kind) {
			t.Errorf("%s: %v", k.Kind, made[k.Kind])
		}
	}
	_, got := permitted([]Folder{{Objects: of("ml", apis.TrainJobKind.GroupKind())}})
	want := []schema.GroupKind{jobKind, apis.JobSetKind.GroupKind(), podKind, apis.TrainJobKind.GroupKind()}
	if diff := cmp.Diff(sortedKinds(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := groupKinds(nil); !cmp.Equal(got, []metav1.GroupKind{}) {
		t.Errorf("a missing list would permit everything: %v", got)
	}
}
