package generators_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
)

// shared are the objects of a shared rendezvous, as a job's rendezvous would describe it.
func shared(t *testing.T, rendezvous string) ([]runtime.Object, *generators.SharedRendezvous) {
	t.Helper()
	r := &generators.SharedRendezvous{
		Job: load(t, strings.Replace(namedJob("tegen-rendezvous", "rendezvous: "+rendezvous,
			"images: {rendezvous: 'registry.example/rendezvous:1.0.0'}"), "namespace: ml", "namespace: infra", 1)),
		Clients: []string{"team-a", "team-b"}, PodMonitor: true,
	}
	return generators.InstallRendezvous(r), r
}

var sharedForms = map[string]string{
	"c10d":    "{backend: c10d, store: companion, companion: {name: tegen-rendezvous}}",
	"proxies": "{backend: c10d, store: companion, companion: {name: tegen-rendezvous, storage: {size: 1Gi}}}",
	"proxies of an etcd": "{backend: c10d, store: companion, companion: {name: tegen-rendezvous, " +
		"etcd: {endpoints: ['http://etcd.example:2379']}}}",
	"disk":   "{backend: etcd, store: companion, companion: {name: tegen-rendezvous}}",
	"volume": "{backend: etcd, store: companion, companion: {name: tegen-rendezvous, storage: {size: 1Gi}}}",
	"etcd": "{backend: etcd, store: companion, companion: {name: tegen-rendezvous, " +
		"etcd: {endpoints: ['http://etcd.example:2379']}}}",
}

// TestSharedProperties: what holds for jobs holds for a shared rendezvous, and it has no rights and no token.
func TestSharedProperties(t *testing.T) {
	for name, rendezvous := range sharedForms {
		t.Run(name, func(t *testing.T) {
			objs, r := shared(t, rendezvous)
			texts(t, objs) // reports what occurs twice
			for _, property := range []string{"names", "kept", "selectors", "references", "limits", "images"} {
				for _, wrong := range properties[property](r.Job, objs) {
					t.Errorf("%s: %s", property, wrong)
				}
			}
			found := pods(objs)
			if len(found) != 1 {
				t.Fatalf("%d pod templates, want one", len(found))
			}
			spec := found[0].spec
			for _, wrong := range restricted(spec) {
				t.Errorf("restricted: %s", wrong)
			}
			if token := spec.AutomountServiceAccountToken; token == nil || *token || spec.ServiceAccountName != "" {
				t.Error("the pods have a token")
			}
			if len(all[*rbacv1.ClusterRole](objs))+len(all[*rbacv1.Role](objs)) > 0 {
				t.Error("it has rights")
			}
			ns := find[*corev1.Namespace](t, objs, "infra")
			if got := ns.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
				t.Errorf("the namespace enforces %q", got)
			}
			budgets := all[*policyv1.PodDisruptionBudget](objs)
			if alone := name == "proxies"; alone != (len(budgets) == 0) {
				t.Errorf("%d budgets: only proxies can do without a single pod", len(budgets))
			}
			for _, b := range budgets {
				if b.Spec.MinAvailable == nil || b.Spec.MinAvailable.IntValue() != 1 {
					t.Errorf("the budget: %+v, want one pod at all times", b.Spec)
				}
			}
			host, port, _ := strings.Cut(r.Endpoint(), ":")
			service := find[*corev1.Service](t, objs, strings.TrimSuffix(host, ".infra.svc"))
			if got := service.Spec.Ports[0]; port != map[int32]string{2379: "2379", 29400: "29400"}[got.Port] {
				t.Errorf("the endpoint is %s, and the Service has port %d", r.Endpoint(), got.Port)
			}
		})
	}
}

// TestSharedClients: pods that tegen rendered reach it from the named namespaces, nobody else does.
func TestSharedClients(t *testing.T) {
	for name, rendezvous := range sharedForms {
		t.Run(name, func(t *testing.T) {
			objs, _ := shared(t, rendezvous)
			rules := all[*networkingv1.NetworkPolicy](objs)[0].Spec.Ingress
			if len(rules) != 1 || len(rules[0].From) != 1 {
				t.Fatalf("ingress: %+v", rules)
			}
			from := rules[0].From[0]
			if got := from.NamespaceSelector.MatchExpressions[0]; got.Key != "kubernetes.io/metadata.name" ||
				got.Operator != "In" || !slices.Equal(got.Values, []string{"team-a", "team-b"}) {
				t.Errorf("namespaces: %+v", got)
			}
			for key, value := range from.PodSelector.MatchLabels {
				for _, p := range pods(objects(load(t, jobText()))) {
					if p.labels[key] != value {
						t.Errorf("a job's pods lack %s=%s: %v", key, value, p.labels)
					}
				}
			}
		})
	}
}

// TestSharedForms: what loses runs with its pod is not replaced by itself; what does not is.
func TestSharedForms(t *testing.T) {
	got := map[string]string{}
	for name, rendezvous := range sharedForms {
		objs, _ := shared(t, rendezvous)
		for _, s := range all[*appsv1.StatefulSet](objs) {
			got[name] = "StatefulSet " + string(s.Spec.UpdateStrategy.Type)
			monitors(t, all[*apis.Custom[apis.PodMonitorSpec]](objs)[0].Spec, s.Spec.Template)
		}
		for _, d := range all[*appsv1.Deployment](objs) {
			got[name] = "Deployment " + string(d.Spec.Strategy.Type)
			if *d.Spec.Replicas != 2 {
				t.Errorf("%d replicas, want 2", *d.Spec.Replicas)
			}
			monitors(t, all[*apis.Custom[apis.PodMonitorSpec]](objs)[0].Spec, d.Spec.Template)
		}
	}
	if diff := cmp.Diff(map[string]string{
		"c10d": "StatefulSet OnDelete", "disk": "StatefulSet OnDelete", "volume": "StatefulSet ",
		"etcd": "Deployment RollingUpdate", "proxies": "StatefulSet ",
		"proxies of an etcd": "Deployment RollingUpdate",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSharedData: the volume with the state of all runs is nobody's to delete by the way, that of one run goes with it.
func TestSharedData(t *testing.T) {
	objs, _ := shared(t, sharedForms["volume"])
	own := objects(load(t, jobText("images: {rendezvous: 'registry.example/rendezvous:1.0.0'}",
		"rendezvous: "+sharedForms["volume"])))
	for want, set := range map[string]*appsv1.StatefulSet{
		"Retain Retain tegen.dev/data": find[*appsv1.StatefulSet](t, objs, "tegen-rendezvous"),
		"Delete Delete tegen.dev/job":  find[*appsv1.StatefulSet](t, own, "tegen-rendezvous"),
	} {
		policy, claim := set.Spec.PersistentVolumeClaimRetentionPolicy, set.Spec.VolumeClaimTemplates[0]
		got := string(policy.WhenDeleted) + " " + string(policy.WhenScaled)
		for key := range claim.Labels {
			if strings.HasPrefix(key, "tegen.dev/") {
				got += " " + key
			}
		}
		if got != want {
			t.Errorf("the claim: %s, want %s", got, want)
		}
	}
}

// TestSharedAddress: what clients are told to dial again resolves in every namespace; a job's own companion tells the
// short name.
func TestSharedAddress(t *testing.T) {
	const want = "--advertise-client-urls=http://tegen-rendezvous.infra.svc:2379"
	for _, name := range []string{"disk", "volume", "etcd"} {
		objs, _ := shared(t, sharedForms[name])
		if args := pods(objs)[0].spec.Containers[0].Args; !slices.Contains(args, want) {
			t.Errorf("%s: arguments %q, want %s", name, args, want)
		}
	}
}
