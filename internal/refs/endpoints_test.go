package refs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
)

func TestEndpoints(t *testing.T) {
	const etcd, absent = "Service training/etcd", "Service training/absent"
	for _, tc := range []struct {
		name, value string
		want        string // To, "" when it resolves or is nothing of ours
		reason      string
	}{
		{"PET_RDZV_ENDPOINT", "etcd:2379", "", "a Service of the namespace"},
		{"PET_RDZV_ENDPOINT", "absent:2379", absent, "no such Service"},
		{"PET_RDZV_ENDPOINT", "etcd:4000", etcd, "the Service has other ports"},
		{"PET_RDZV_ENDPOINT", "etcd:$(PORT)", "", "the port is unknown"},
		{"PET_RDZV_ENDPOINT", "absent:$(PORT)", absent, "the host is known all the same"},
		{"ENDPOINTS", "http://etcd:2379, http://absent:2379", absent, "each of a list counts"},
		{"PEERS_URL", "etcd-0=http://etcd-0.etcd:2380,etcd-1=http://etcd-1.etcd:2380", "", "etcd's own notation"},
		{"PEERS_URL", "etcd-3=http://etcd-3.etcd:2380", "Pod training/etcd-3", "three replicas end at 2"},
		{
			"PEERS_URL", "etcd-0=http://etcd-0.imagenet:29400", "Pod training/etcd-0",
			"the pod is behind the other Service",
		},
		{"MASTER_ADDR", "imagenet-0.imagenet", "", "first pod of the Indexed Job"},
		{"MASTER_ADDR", "imagenet-4.imagenet", "Pod training/imagenet-4", "completions end at 3"},
		{"MASTER_ADDR", "imagenet-00.imagenet", "Pod training/imagenet-00", "no controller writes 00"},
		{"MASTER_ADDR", "imagenet-0.absent", absent, "the host is a pod of the set, so this is no outside name"},
		{
			"MASTER_ADDR", "imagenet-0", "Service training/imagenet-0",
			"without its subdomain the name resolves in that pod alone",
		},
		{"MASTER_ADDR", "absent", absent, "a bare host is an address here"},
		{"MASTER_ADDR", "localhost", "", "the pod itself"},
		{"MASTER_HOST", "true", "", "a switch, no host"},
		{"BIND_ADDR", "0.0.0.0", "", "an IP"},
		{"BIND_ADDR", "[::]:2379", "", "an IP"},
		{"BIND_ADDR", "::1", "", "an IP"},
		{"BIND_ADDR", ":8080", "", "every interface"},
		{"X_URL", "https://example.com:8443/a", "", "outside"},
		{"X_URL", "https://wandb.ai", "", "outside"},
		{"X_URL", "s3://absent/path", "", "a bucket, not a host"},
		{"X_URI", "postgres://u:p@absent:5432/db", absent, "user and path are no part of the host"},
		{"X_URL", "http://absent", absent, "http is spoken with hosts"},
		{"X_URL", "absent", "", "a bare word need not be a host"},
		{"X_URL", "file:///absent", "", "no host"},
		{"X_ENDPOINT", "etcd.training:2379", "", "service.namespace"},
		{"X_ENDPOINT", "absent.training:2379", absent, "a namespace of the set"},
		{"X_ENDPOINT", "absent.other:2379", "", "someone else's namespace"},
		{"X_ENDPOINT", "$(POD_NAME).etcd:2379", "", "the Service is there, the pod is unknown"},
		{"X_ENDPOINT", "${POD_NAME}.absent:2379", absent, "whatever the pod, the Service is not there"},
		{"X_ENDPOINT", "$(HOST):2379", "", "unknown"},
		{"X_ENDPOINT", "etcd.$(NS):2379", "", "unknown namespace"},
		{"LOG_LEVEL", "absent:2379", "", "the variable holds no address"},
		{"ANY", "see http://etcd.training.svc:2379/health", "", "qualified names are found in any text"},
		{"ANY", "x=absent.training.svc.cluster.local;", absent, "with the domain"},
		{"ANY", "etcd.training.svc.cluster.local.:4000", etcd, "a trailing dot and a wrong port"},
		{"ANY", "etcd-1.etcd.training.svc:2380", "", "a pod behind it"},
		{"ANY", "etcd-7.etcd.training.svc:2380", "Pod training/etcd-7", "no such pod"},
		{"ANY", "$POD-0.absent.training.svc", absent, "the Service part is literal"},
		{"ANY", "_http._tcp.etcd.training.svc", "", "an SRV record"},
		{"ANY", "absent.other.svc", "", "someone else's namespace"},
		{"ANY", "kubernetes.default.svc", "", "in every cluster"},
		{"ANY", "absent.$(NS).svc", "", "unknown namespace"},
		{"NO_PROXY", "localhost,.svc,.cluster.local,*.training.svc", "", "patterns, no hosts"},
		{"ANY", "/opt/sklearn.svc.py", "", "a file"},
	} {
		b := newBundle()
		b.env(tc.name, tc.value)
		got := ""
		for _, broken := range refs.Check(b.objects()) {
			got += broken.To
			if want := "spec.template.spec.containers[worker].env[" + tc.name + "]"; broken.Field != want {
				t.Errorf("%s=%s: field %s, want %s", tc.name, tc.value, broken.Field, want)
			}
		}
		if got != tc.want {
			t.Errorf("%s=%s (%s): broken %q, want %q", tc.name, tc.value, tc.reason, got, tc.want)
		}
	}
}

func TestEndpointFlags(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		want   []string
		reason string
	}{
		{[]string{"--rdzv-endpoint=etcd:2379"}, nil, "resolves"},
		{[]string{"--rdzv_endpoint=absent:2379"}, []string{"args[0]"}, "assigned"},
		{[]string{"--rdzv-endpoint", "absent:2379", "train.py"}, []string{"args[1]"}, "following"},
		{[]string{"--master_addr", "absent"}, []string{"args[1]"}, "a bare host after a flag that ends in addr"},
		{
			[]string{"--initial-cluster=etcd-0=http://etcd-0.etcd:2380,etcd-9=http://etcd-9.etcd:2380"},
			[]string{"args[0]"},
			"etcd's own notation",
		},
		{[]string{"--initial-cluster-token=absent", "--hostfile", "/etc/hosts"}, nil, "words, not addresses"},
		{[]string{"--listen-client-urls=http://0.0.0.0:2379"}, nil, "an IP"},
		{[]string{"--image=absent:2379", "absent:2379"}, nil, "the flag holds no address"},
		{[]string{"--server", "--other", "absent:2379"}, nil, "the flag has no value"},
	} {
		b := newBundle()
		b.worker.Args = tc.args
		var got []string
		for _, broken := range refs.Check(b.objects()) {
			got = append(got, broken.Field[len("spec.template.spec.containers[worker]."):])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (%s) (-want +got):\n%s", tc.args, tc.reason, diff)
		}
	}
}

func TestPodHostname(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: named("ps"), Spec: corev1.PodSpec{
		Hostname: "ps", Subdomain: "etcd",
		Containers: []corev1.Container{{Name: "ps", Env: []corev1.EnvVar{
			{Name: "MASTER_ADDR", Value: "ps"}, {Name: "PS_ADDR", Value: "ps.etcd"},
		}}},
	}}
	pod.Labels = map[string]string{"app": "etcd"}
	b := newBundle()
	b.add(pod)
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("a pod is known to itself by its hostname, to others behind its Service: %v", got)
	}
	pod.Spec.Hostname = ""
	got := refs.Check(b.objects())
	if len(got) != 1 || got[0].Why != "the pod gets a name in DNS only with spec.hostname set "+
		"and spec.subdomain etcd; set both" {
		t.Errorf("DNS has no name for a pod without spec.hostname: %v", got)
	}
}

// TestNamespaces looks a host up where it says it is.
func TestNamespaces(t *testing.T) {
	b := newBundle()
	b.env("MLFLOW", "http://mlflow.tools.svc:5000")
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("the set has nothing in tools, so it is someone else's: %v", got)
	}
	other := configMap("x")
	other.Namespace = "tools"
	b.add(other)
	if got := pairs(t, refs.Check(b.objects())); len(got) != 1 || got[0] != worker+"env[MLFLOW]: Service tools/mlflow" {
		t.Errorf("tools is in the set and has no such Service: %v", got)
	}
}

// TestMovedService: the address of a Service that tegen rendered names the namespace that it was rendered for. Another
// object of that name may well be somewhere else.
func TestMovedService(t *testing.T) {
	b := newBundle()
	b.env("X_ENDPOINT", "etcd-0.etcd.before.svc.cluster.local:2379")
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("an etcd of someone else's namespace is none of the set's: %v", got)
	}
	for _, obj := range b.objects() {
		if s, ok := obj.(*corev1.Service); ok && s.Name == "etcd" {
			s.Labels = map[string]string{names.LabelManagedBy: names.ManagedBy}
		}
	}
	want := []string{worker + "env[X_ENDPOINT]: Service before/etcd"}
	if diff := cmp.Diff(want, pairs(t, refs.Check(b.objects()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
