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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

const rendezvousImage = "images: {rendezvous: 'example.org/tegen-rendezvous:1.0.0'}"

// TestDefaultStore: the companion is the store wherever its image is named and its protocols are spoken.
func TestDefaultStore(t *testing.T) {
	for _, c := range []struct {
		spec []string
		want string
	}{
		{nil, job.StoreWorker},
		{[]string{rendezvousImage}, job.StoreCompanion},
		{[]string{rendezvousImage, "rendezvous: {store: worker}"}, job.StoreWorker},
		{[]string{rendezvousImage, "rendezvous: {backend: etcd}"}, job.StoreCompanion},
		{[]string{rendezvousImage, "rendezvous: {proxy: true, store: etcd}"}, job.StoreEtcd},
		// Whose controller has a rendezvous of its own.
		{[]string{rendezvousImage, "target: trainjob"}, job.StoreWorker},
		{[]string{rendezvousImage, "framework: horovod"}, job.StoreWorker},
	} {
		j := load(t, jobText(c.spec...))
		if got := j.Spec.Rendezvous.Store; got != c.want {
			t.Errorf("%q: store %s, want %s", c.spec, got, c.want)
		}
		if rendered := len(all[*appsv1.StatefulSet](objects(j))) == 1; rendered != (c.want == job.StoreCompanion ||
			c.want == job.StoreEtcd) {
			t.Errorf("%q: a store is rendered: %t", c.spec, rendered)
		}
	}
}

// TestCompanion holds the flags of each form against the Services, volumes and policy around them.
func TestCompanion(t *testing.T) {
	for _, c := range []struct {
		rendezvous string
		flags      []string
		port       int32
		grace      int64
	}{
		{"{}\nroles: {companion: {resources: {memory: 1Gi}}}", []string{
			"--listen-client=", "--listen-c10d=:29400", "--listen-status=:2381", "--drain-timeout=180s",
			"--max-bytes=268435456",
		}, 29400, 210},
		{"{backend: etcd, port: 12379, companion: {name: meet, storage: {size: 2Gi}}}", []string{
			"--store=embedded", "--data-dir=/var/lib/tegen-rendezvous/data", "--listen-client=:12379",
			"--advertise-client-urls=http://meet:12379", "--listen-c10d=", "--listen-status=:2381",
			"--max-bytes=134217728", "--max-answer-bytes=67108864",
		}, 12379, 30},
		{"{backend: etcd-v2, companion: {etcd: {endpoints: ['https://a.x:2379', 'https://b.x:2379'], " +
			"tls: {secret: s}, user: u, password: {name: p, key: k}}}}", []string{
			"--store=etcd", "--endpoints=https://a.x:2379,https://b.x:2379", "--listen-client=:2379",
			"--advertise-client-urls=http://resnet-rendezvous:2379", "--listen-c10d=", "--listen-status=:2381",
			"--max-bytes=134217728", "--max-answer-bytes=67108864",
			"--cacert=/tegen/tls/ca.crt", "--cert=/tegen/tls/tls.crt", "--key=/tegen/tls/tls.key", "--user=u",
		}, 2379, 30},
	} {
		t.Run(c.rendezvous, func(t *testing.T) {
			j := load(t, jobText(rendezvousImage, "rendezvous: "+c.rendezvous, "gracePeriod: 3m"))
			objs := objects(j)
			name := "resnet-rendezvous"
			if strings.Contains(c.rendezvous, "meet") {
				name = "meet"
			}
			template := served(t, objs, name, strings.Contains(c.rendezvous, "endpoints"))
			container := template.Spec.Containers[0]
			if diff := cmp.Diff(append([]string{"serve"}, c.flags...), container.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if grace := *template.Spec.TerminationGracePeriodSeconds; grace != c.grace {
				t.Errorf("it has %d s to end, want %d, and its workers have 180", grace, c.grace)
			}
			if volume := strings.Contains(strings.Join(c.flags, " "),
				"--data-dir"); volume != (len(container.VolumeMounts) == 1 &&
				container.VolumeMounts[0].Name == "data") {
				t.Errorf("mounts %+v", container.VolumeMounts)
			}
			if template.Spec.ServiceAccountName != "" || *template.Spec.AutomountServiceAccountToken {
				t.Error("it has an account that it does not need")
			}
			service := find[*corev1.Service](t, objs, name)
			if p := service.Spec.Ports; len(p) != 1 || p[0].Port != c.port ||
				service.Spec.ClusterIP == corev1.ClusterIPNone {
				t.Errorf("Service %+v, want port %d behind an address", service.Spec, c.port)
			}
			in := find[*networkingv1.NetworkPolicy](t, objs, "resnet-rendezvous").Spec.Ingress
			if len(in) != 1 || len(in[0].From) != 1 || in[0].Ports[0].Port.IntVal != c.port {
				t.Errorf("policy lets in %+v", in)
			}
			find[*policyv1.PodDisruptionBudget](t, objs, name)
			host := slices.ContainsFunc(strings.Split(env(t, worker(t, objs))["PET_RDZV_CONF"], ","),
				func(p string) bool { return p == "is_host=0" })
			if host != (c.port == 29400) {
				t.Errorf("is_host=0 is set: %t", host)
			}
		})
	}
}

// served is the template of the companion: a Deployment of two where an etcd keeps the data, one pod of a StatefulSet
// elsewhere, which nothing but a volume allows to be replaced.
func served(t *testing.T, objs []runtime.Object, name string, external bool) corev1.PodTemplateSpec {
	t.Helper()
	if external {
		d := find[*appsv1.Deployment](t, objs, name)
		if *d.Spec.Replicas != 2 || d.Annotations["tegen.dev/expects"] != "Secret/p,Secret/s" {
			t.Errorf("%d replicas, expects %q", *d.Spec.Replicas, d.Annotations["tegen.dev/expects"])
		}
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Value != "" && e.Name != "GOMEMLIMIT" {
				t.Errorf("%s has a value, which is a password", e.Name)
			}
		}
		return d.Spec.Template
	}
	set := find[*appsv1.StatefulSet](t, objs, name)
	kept := len(set.Spec.VolumeClaimTemplates) == 1
	if *set.Spec.Replicas != 1 || kept == (set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType) {
		t.Errorf("%d replicas, replaced %q with its data kept: %t", *set.Spec.Replicas, set.Spec.UpdateStrategy.Type,
			kept)
	}
	return set.Spec.Template
}

// TestKeepAlive: what torch does by itself is not said.
func TestKeepAlive(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                                    "join_timeout=600,last_call_timeout=30",
		"{keepAlive: 5s, keepAliveAttempts: 3}": "join_timeout=600,last_call_timeout=30",
		"{keepAlive: 1s}": "join_timeout=600,keep_alive_interval=1,keep_alive_max_attempt=3," +
			"last_call_timeout=30",
	} {
		if got := env(t, worker(t, objects(load(t, jobText("rendezvous: "+spec)))))["PET_RDZV_CONF"]; got != want {
			t.Errorf("%s: conf %q, want %q", spec, got, want)
		}
	}
}

// TestProxy: workers start torchrun behind the proxy that an init container brings, whatever the target.
func TestProxy(t *testing.T) {
	const program = "/tegen/bin/tegen-rendezvous"
	for _, c := range []struct {
		spec    []string
		command []string
		args    []string
	}{
		{
			[]string{"command: [./solve, -x]", "args: [a]"},
			[]string{program, "proxy", "--", "torchrun", "--no_python", "./solve", "-x"},
			[]string{"a"},
		},
		{
			[]string{"command: []", "script: {image: /opt/train.py}", "args: [a]"},
			[]string{program, "proxy", "--", "torchrun"},
			[]string{"/opt/train.py", "a"},
		},
	} {
		for _, target := range []string{"job", "pods"} {
			objs := objects(load(t, jobText(append(c.spec, rendezvousImage, "target: "+target,
				"rendezvous: {proxy: true, store: external, endpoint: 'etcd:2379'}")...)))
			w := worker(t, objs)
			if diff := cmp.Diff(c.command, w.Command); diff != "" {
				t.Errorf("%s: command (-want +got):\n%s", target, diff)
			}
			if diff := cmp.Diff(c.args, w.Args); diff != "" {
				t.Errorf("%s: args (-want +got):\n%s", target, diff)
			}
			for _, p := range pods(objs) {
				if p.labels["app.kubernetes.io/component"] != "worker" {
					continue
				}
				install := p.spec.InitContainers[0]
				if diff := cmp.Diff([]string{"install", program}, install.Args); diff != "" {
					t.Errorf("%s: install (-want +got):\n%s", target, diff)
				}
				if !slices.ContainsFunc(w.VolumeMounts, func(m corev1.VolumeMount) bool {
					return m.Name == "launcher" && m.ReadOnly
				}) {
					t.Errorf("%s: the program is not mounted read-only", target)
				}
			}
		}
	}
}

// TestExpendable: a companion whose loss ends a run is kept where it is. Any other keeps no node from being drained.
func TestExpendable(t *testing.T) {
	for _, c := range []struct {
		rendezvous string
		kept       bool  // autoscalers are told to leave its pods alone
		least      int32 // of its budget; 0 without one
	}{
		{"{}", true, 1}, // c10d, in memory
		{"{proxy: true, companion: {storage: {size: 2Gi}}}", false, 0},
		{"{backend: etcd, companion: {storage: {size: 2Gi}}}", true, 1}, // agents end without it
		{"{backend: etcd, companion: {etcd: {endpoints: ['http://e:2379']}}}", false, 1},
		{"{proxy: true, companion: {etcd: {endpoints: ['http://e:2379']}}}", false, 1},
		{"{proxy: true, companion: {replicas: 1, etcd: {endpoints: ['http://e:2379']}}}", false, 0},
		{"{backend: etcd, companion: {replicas: 1, etcd: {endpoints: ['http://e:2379']}}}", true, 1},
	} {
		j := load(t, jobText(rendezvousImage, "rendezvous: "+c.rendezvous, "disruption: {budget: true}"))
		var pod corev1.PodTemplateSpec
		for _, s := range all[*appsv1.StatefulSet](objects(j)) {
			pod = s.Spec.Template
		}
		for _, d := range all[*appsv1.Deployment](objects(j)) {
			pod = d.Spec.Template
		}
		least := int32(0)
		for _, b := range all[*policyv1.PodDisruptionBudget](objects(j)) {
			if strings.HasSuffix(b.Name, "rendezvous") {
				least = b.Spec.MinAvailable.IntVal
			}
		}
		if kept := len(pod.Annotations) > 0; kept != c.kept || least != c.least {
			t.Errorf("%s: kept %t with at least %d, want %t with %d", c.rendezvous, kept, least, c.kept, c.least)
		}
	}
}
