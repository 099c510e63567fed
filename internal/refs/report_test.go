package refs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/refs"
)

// TestRename shows what a namePrefix on Services alone breaks, word for word.
func TestRename(t *testing.T) {
	b := newBundle()
	b.env("PET_RDZV_ENDPOINT", "etcd:2379")
	b.worker.Args = []string{"--peers=etcd-0.etcd.training.svc:2379"}
	b.service.Name = "eks-" + b.service.Name
	b.etcdService.Name = "eks-" + b.etcdService.Name
	const renamed = "did a prefix or patch rename it? nearest: Service training/eks-"
	want := []string{
		"Job training/imagenet: spec.template.spec.containers[worker].args[0]: Service training/etcd: no object of " +
			"that name is in the set; " + renamed + "etcd",
		"Job training/imagenet: spec.template.spec.containers[worker].env[PET_RDZV_ENDPOINT]: Service training/etcd: " +
			"no object of that name is in the set; " + renamed + "etcd",
		"Job training/imagenet: spec.template.spec.subdomain: Service training/imagenet: no object of that name is " +
			"in the set; without it hostname.subdomain does not resolve; " + renamed + "imagenet",
		"StatefulSet training/etcd: spec.serviceName: Service training/etcd: no object of that name is in the set; " +
			"without it the pods have no names in DNS; " + renamed + "etcd",
	}
	var got []string
	for _, broken := range refs.Check(b.objects()) {
		got = append(got, broken.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	for _, tc := range []struct{ missing, there, want, reason string }{
		{"conf", "eks-conf", "eks-conf", "a prefix"},
		{"conf", "conf-7h2k9", "conf-7h2k9", "a hash"},
		{"eks-conf", "conf", "conf", "a prefix that only the reference got"},
		{"config", "confgi", "confgi", "a slip"},
		{"conf", "reconf", "reconf", "a slip of two letters"},
		{"conf", "other", "", "not near"},
		{"a", "b", "", "short names are all near each other"},
	} {
		b := newBundle()
		b.add(configMap(tc.there))
		b.envFrom("X", configMapKey(tc.missing, "k"))
		got := refs.Check(b.objects())
		if len(got) != 1 {
			t.Fatalf("%s: %v", tc.missing, got)
		}
		_, near, _ := strings.Cut(got[0].Why, "nearest: ConfigMap training/")
		if near != tc.want {
			t.Errorf("%s among %s (%s): %q, want %q", tc.missing, tc.there, tc.reason, got[0].Why, tc.want)
		}
	}
}

func TestExpects(t *testing.T) {
	b := newBundle()
	b.envFrom("HF_TOKEN", secretKey("hf", "token"))
	b.env("MLFLOW_URI", "http://mlflow:5000")
	b.env("PEER_ADDR", "mlflow-0.mlflow")
	b.job.Spec.Template.Spec.ServiceAccountName = "trainer"
	b.volume("data", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
		ClaimName: "data",
	}})
	if got := refs.Check(b.objects()); len(got) != 4 {
		t.Errorf("four objects are absent (nothing shows that mlflow-0.mlflow is one): %v", got)
	}
	b.expect("Secret/hf, PersistentVolumeClaim/data")
	b.job.Spec.Template.Annotations = map[string]string{"tegen.dev/expects": "Service/mlflow,ServiceAccount/trainer"}
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("workload and template together expect them: %v", got)
	}
	// What one workload expects is no excuse for another.
	b.etcd.Spec.Template.Spec.ServiceAccountName = "trainer"
	if got := refs.Check(b.objects()); len(got) != 1 || got[0].From != "StatefulSet training/etcd" {
		t.Errorf("only the Job expects the account: %v", got)
	}
}

func TestExpectsOfSelectors(t *testing.T) {
	b := newBundle()
	s := headless("mlflow", map[string]string{"app": "mlflow"})
	b.add(s)
	if got := refs.Check(b.objects()); len(got) != 1 {
		t.Errorf("nothing is selected: %v", got)
	}
	s.Annotations = map[string]string{"tegen.dev/expects": "Deployment/mlflow"}
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("an expected Deployment may have any labels: %v", got)
	}
}

func TestMalformedExpects(t *testing.T) {
	for _, tc := range []struct {
		list string
		want []string
	}{
		{"", nil},
		{" Secret/a ,Service/b", nil},
		{"Secret/a,", []string{`""`}},
		{"hf-token", []string{`"hf-token"`}},
		{"secret/a", []string{`"secret/a"`}},
		{"Secret/", []string{`"Secret/"`}},
		{"Secret/a/b,Secret/c d", []string{`"Secret/a/b"`, `"Secret/c d"`}},
	} {
		b := newBundle()
		b.expect(tc.list)
		var got []string
		for _, broken := range refs.Check(b.objects()) {
			got = append(got, broken.To)
			if broken.Field != "metadata.annotations[tegen.dev/expects]" {
				t.Errorf("field %s", broken.Field)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.list, diff)
		}
	}
}
