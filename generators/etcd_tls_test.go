package generators_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestProxiedEtcdTLS: an etcd that is rendered for proxies has certificates by default, made in the cluster, for the
// names by which workers and members dial it.
func TestProxiedEtcdTLS(t *testing.T) {
	objs := objects(load(t, jobText(rendezvousImage,
		"rendezvous: {proxy: true, store: etcd, etcd: {name: meet, replicas: 3, storage: {size: 8Gi}}}")))
	set := find[*appsv1.StatefulSet](t, objs, "meet")
	command := set.Spec.Template.Spec.Containers[0].Command
	for _, flag := range []string{
		"--listen-client-urls=https://0.0.0.0:2379", "--advertise-client-urls=https://meet:2379",
		"--cert-file=/tegen/tls/tls.crt", "--client-cert-auth=true", "--peer-key-file=/tegen/tls/tls.key",
		"--peer-trusted-ca-file=/tegen/tls/ca.crt", "--peer-client-cert-auth=true",
		"--peer-cert-allowed-cn=server", // or workers could write as members do
	} {
		if !slices.Contains(command, flag) {
			t.Errorf("the etcd lacks %s: %q", flag, command)
		}
	}
	start := strings.Join(worker(t, objs).Command[:6], " ")
	if !strings.HasSuffix(start, "proxy --cacert=/tegen/tls/ca.crt --cert=/tegen/tls/tls.crt "+
		"--key=/tegen/tls/tls.key --") {
		t.Errorf("workers start %s", start)
	}
	got := map[string][]string{"etcd": mounted(t, objs, "etcd"), "worker": mounted(t, objs, "worker")}
	if diff := cmp.Diff(map[string][]string{
		"etcd":   {"/tegen/tls/ca.crt=ca.crt", "/tegen/tls/tls.crt=server.crt", "/tegen/tls/tls.key=server.key"},
		"worker": {"/tegen/tls/ca.crt=ca.crt", "/tegen/tls/tls.crt=client.crt", "/tegen/tls/tls.key=client.key"},
	}, got); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	makes := find[*batchv1.Job](t, objs, "resnet-keygen").Spec.Template.Spec.InitContainers[0]
	if diff := cmp.Diff([]string{
		"certificates", "/tegen/home", "--existing=/tegen/keys",
		"--host=meet,meet-0.meet-peer,meet-1.meet-peer,meet-2.meet-peer",
	}, makes.Args); diff != "" || makes.Image != "example.org/tegen-rendezvous:1.0.0" {
		t.Errorf("%s (-want +got):\n%s", makes.Image, diff)
	}
	if s := find[*corev1.Secret](t, objs, certificates); s.Labels["app.kubernetes.io/component"] != "etcd" {
		t.Errorf("the Secret is of %s", s.Labels["app.kubernetes.io/component"])
	}
	find[*networkingv1.NetworkPolicy](t, objs, "resnet-keygen")
}
