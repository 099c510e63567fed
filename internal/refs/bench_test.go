package refs_test

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/refs"
)

// fleet returns n jobs of five objects each in one namespace, all with a common
// label, which is what would make a careless selector check quadratic.
func fleet(n int, broken bool) []runtime.Object {
	var objs []runtime.Object
	for i := range n {
		name := fmt.Sprintf("job-%04d", i)
		own := map[string]string{"app.kubernetes.io/managed-by": "tegen", "job": name}
		b := newBundle()
		b.job.Name, b.service.Name = name, name
		b.job.Spec.Template.Labels = map[string]string{
			"app.kubernetes.io/managed-by": "tegen", "app.kubernetes.io/part-of": "fleet", "job": name,
			"role": "worker",
		}
		b.job.Spec.Template.Spec.Subdomain = name
		b.service.Spec.Selector = own
		if broken {
			b.service.Name = "eks-" + name
		}
		conf := configMap(name, "lr")
		b.envFrom("LR", configMapKey(name, "lr"))
		b.envFrom("JOB", field("metadata.labels['job']"))
		b.env("PET_RDZV_ENDPOINT", name+"-0."+name+":29400")
		b.env("LOG_URL", "http://"+name+".training.svc.cluster.local:29400")
		b.env("EPOCHS", "90")
		b.worker.Args = []string{"--nnodes=1:4", "--rdzv-backend=c10d", "train.py", "--data", "/data"}
		objs = append(objs, b.job, b.service, conf,
			&policyv1.PodDisruptionBudget{
				ObjectMeta: named(name),
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: matching(own)},
			},
			&networkingv1.NetworkPolicy{ObjectMeta: named(name), Spec: networkingv1.NetworkPolicySpec{
				PodSelector: *matching(own),
				Ingress: []networkingv1.NetworkPolicyIngressRule{
					{From: []networkingv1.NetworkPolicyPeer{{PodSelector: matching(own)}}},
				},
			}})
	}
	return objs
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{500, 4000} {
		for _, broken := range []bool{false, true} {
			objs := fleet(n, broken)
			if got := len(refs.Check(objs)); (got > 0) != broken {
				b.Fatalf("%d broken", got)
			}
			b.Run(fmt.Sprintf("jobs=%d/broken=%t", n, broken), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					refs.Check(objs)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(objs)), "µs/object")
			})
		}
	}
}
