package generators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

const certificates = "resnet-rendezvous-tls"

// mounted are the keys of the Secret with certificates that pods of a component mount, as path=key.
func mounted(t *testing.T, objs []runtime.Object, component string) (files []string) {
	t.Helper()
	for _, p := range pods(objs) {
		if p.labels["app.kubernetes.io/component"] != component {
			continue
		}
		files = nil // pods of a component are the same
		for _, v := range p.spec.Volumes {
			if v.Secret == nil || v.Secret.SecretName != certificates {
				continue
			}
			at := ""
			for _, c := range p.containers() {
				for _, m := range c.VolumeMounts {
					if m.Name == v.Name && !m.ReadOnly {
						t.Errorf("%s may write to its certificates", c.Name)
					} else if m.Name == v.Name {
						at += m.MountPath
					}
				}
			}
			if v.Secret.Optional != nil && *v.Secret.Optional {
				files = append(files, at+" if there")
				continue
			}
			for _, item := range v.Secret.Items {
				files = append(files, at+"/"+item.Path+"="+item.Key)
			}
			if len(v.Secret.Items) == 0 {
				files = append(files, at+" all")
			}
		}
	}
	return files
}

// TestCompanionTLS: a companion and its proxies verify each other, by certificates that a Job makes in the cluster, and
// each pod has its own and no other one.
func TestCompanionTLS(t *testing.T) {
	for _, companion := range []string{
		"storage: {size: 1Gi}",
		"etcd: {endpoints: ['https://a.x:2379', 'https://b.x:2379'], tls: {secret: theirs}}",
	} {
		for _, target := range []string{"job", "pods", "jobset", "pytorchjob", "vcjob"} {
			t.Run(target+" "+companion, func(t *testing.T) {
				objs := objects(load(t, jobText(rendezvousImage, "target: "+target,
					"rendezvous: {companion: {name: meet, "+companion+"}}")))
				var serves corev1.Container
				for _, p := range pods(objs) {
					if p.labels["app.kubernetes.io/component"] == "rendezvous" {
						serves = p.spec.Containers[0]
					}
				}
				for _, flag := range []string{
					"--listen-client=", "--listen-c10d=", "--listen-proxies=:29400",
					"--tls-cert=/tegen/proxies/server.crt", "--tls-key=/tegen/proxies/server.key",
					"--tls-client-ca=/tegen/proxies/ca.crt",
				} {
					if !slices.Contains(serves.Args, flag) {
						t.Errorf("the companion lacks %s: %q", flag, serves.Args)
					}
				}
				if theirs := slices.Contains(serves.Args, "--cacert=/tegen/tls/ca.crt"); theirs !=
					strings.Contains(companion, "theirs") {
					t.Errorf("the etcd's own certificates: %q", serves.Args)
				}
				start := strings.Join(worker(t, objs).Command[:6], " ")
				if want := "/tegen/bin/tegen-rendezvous proxy --cacert=/tegen/tls/ca.crt --cert=/tegen/tls/tls.crt " +
					"--key=/tegen/tls/tls.key --"; start != want {
					t.Errorf("workers start %s, want %s", start, want)
				}
				got := map[string][]string{}
				for _, component := range []string{"rendezvous", "worker", "keygen"} {
					got[component] = mounted(t, objs, component)
				}
				if diff := cmp.Diff(map[string][]string{
					"rendezvous": {
						"/tegen/proxies/ca.crt=ca.crt", "/tegen/proxies/server.crt=server.crt",
						"/tegen/proxies/server.key=server.key",
					},
					"worker": {
						"/tegen/tls/ca.crt=ca.crt", "/tegen/tls/tls.crt=client.crt", "/tegen/tls/tls.key=client.key",
					},
					"keygen": {"/tegen/keys if there"},
				}, got); diff != "" {
					t.Errorf("certificates (-want +got):\n%s", diff)
				}
				checkKeygen(t, objs)
			})
		}
	}
}

// checkKeygen holds that certificates are made once, in the cluster, by a pod that may do nothing else.
func checkKeygen(t *testing.T, objs []runtime.Object) {
	t.Helper()
	if s := find[*corev1.Secret](t, objs, certificates); len(s.Data)+len(s.StringData) > 0 || s.Type != "" {
		t.Errorf("the Secret has %d keys and type %q", len(s.Data)+len(s.StringData), s.Type)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{certificates},
		Verbs: []string{"get", "patch"},
	}}, find[*rbacv1.Role](t, objs, "resnet-keygen").Rules); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	spec := find[*batchv1.Job](t, objs, "resnet-keygen").Spec.Template.Spec
	makes, stores := spec.InitContainers[0], spec.Containers[0]
	if diff := cmp.Diff([]string{"certificates", "/tegen/home", "--existing=/tegen/keys", "--host=meet"},
		makes.Args); diff != "" || makes.Image != "example.org/tegen-rendezvous:1.0.0" {
		t.Errorf("%s (-want +got):\n%s", makes.Image, diff)
	}
	if got := strings.Join(stores.Command, " "); got != "kubectl patch secret "+certificates+" --namespace=ml "+
		"--type=json --patch-file=/tegen/home/patch.json" {
		t.Errorf("it runs %s", got)
	}
	for _, v := range spec.Volumes {
		if v.Name == "home" && v.EmptyDir.Medium != corev1.StorageMediumMemory {
			t.Error("private keys are written to a disk")
		}
	}
	if p := find[*networkingv1.NetworkPolicy](t, objs, "resnet-keygen"); len(p.Spec.Ingress) > 0 {
		t.Errorf("it can be reached: %+v", p.Spec.Ingress)
	}
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			if token := p.spec.AutomountServiceAccountToken; *token != (p.labels["app.kubernetes.io/component"] ==
				"keygen") {
				t.Errorf("%s has a token: %t", c.Name, *token)
			}
		}
	}
}

// TestCompanionTLSReadable: the image's own user can read the key, also where no group of the pod's makes it so.
func TestCompanionTLSReadable(t *testing.T) {
	for security, want := range map[string]int32{"{}": 0o440, "{runAsUser: image}": 0o444} {
		objs := objects(load(t, jobText(rendezvousImage, "security: "+security,
			"rendezvous: {companion: {storage: {size: 1Gi}}}")))
		for _, p := range pods(objs) {
			for _, v := range p.spec.Volumes {
				if v.Secret == nil || v.Secret.Optional != nil {
					continue
				}
				mode := want
				if p.labels["app.kubernetes.io/component"] != "worker" {
					mode = 0o440
				}
				if got := *v.Secret.DefaultMode; got != mode {
					t.Errorf("security %s: %s of %s has mode %o, want %o", security, v.Name,
						p.labels["app.kubernetes.io/component"], got, mode)
				}
			}
		}
	}
}

// TestWithoutCompanionTLS: no certificates are made where no proxy of the job's own dials a companion of its own.
func TestWithoutCompanionTLS(t *testing.T) {
	for _, rendezvous := range []string{
		"{}", "{backend: etcd}", "{backend: etcd-v2, companion: {storage: {size: 1Gi}}}",
		"{proxy: true, store: etcd, etcd: {tls: {secret: members}}}",
		"{proxy: true, store: external, endpoint: 'etcd.infra:2379'}",
	} {
		objs := objects(load(t, jobText(rendezvousImage, "rendezvous: "+rendezvous)))
		for _, o := range objs {
			if text := text(t, o); strings.Contains(text, "keygen") || strings.Contains(text, "-tls\n") ||
				strings.Contains(text, "--tls-") {
				t.Errorf("%s: %s has certificates:\n%s", rendezvous, id(t, o), text)
			}
		}
	}
	for name, rendezvous := range sharedForms { // whose clients are in other namespaces
		objs, _ := shared(t, rendezvous)
		for _, o := range objs {
			if strings.Contains(text(t, o), "--tls-") {
				t.Errorf("%s: %s asks for certificates", name, id(t, o))
			}
		}
	}
}

// TestStatusPolicy: the status of a companion is for whom the job names for metrics, and for nobody where it names
// nobody. The kubelet's probes come from the pod's own node, which no policy keeps out.
func TestStatusPolicy(t *testing.T) {
	const prometheus = "{namespace: monitoring, pods: {app: prometheus}, ports: [PORT]}"
	for _, c := range []struct{ spec, want string }{
		{"metrics: {port: 9400}", ""},
		{"network: {allowFrom: [{namespace: other, ports: [6006]}]}", ""},
		{"network: {allowFrom: [" + strings.Replace(prometheus, "PORT", "2381", 1) + "]}", "monitoring"},
		{
			"metrics: {port: 9400}; network: {allowFrom: [" + strings.Replace(prometheus, "PORT", "9400", 1) +
				", {namespace: other, ports: [6006]}]}", "monitoring",
		},
		{
			"metrics: {port: 9400}; network: {allowFrom: [" + strings.Replace(prometheus, "PORT", "6006, 9400", 1) +
				", {namespace: other, ports: [2381]}]}", "monitoring other",
		},
	} {
		objs := objects(load(t, jobText(append(strings.Split(c.spec, "; "), rendezvousImage)...)))
		in := find[*networkingv1.NetworkPolicy](t, objs, "resnet-rendezvous").Spec.Ingress
		var got []string
		for i, rule := range in {
			if i == 0 {
				if rule.Ports[0].Port.IntVal != 29400 || rule.From == nil {
					t.Errorf("%s: workers come in by %+v", c.spec, rule)
				}
				continue
			}
			if len(rule.From) != 1 || len(rule.Ports) != 1 || rule.Ports[0].Port.IntVal != 2381 {
				t.Errorf("%s: open to %+v", c.spec, rule)
				continue
			}
			got = append(got, rule.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: open to %q, want %q", c.spec, got, c.want)
		}
	}
}

// TestSharedStatusPolicy: the status of a shared rendezvous is for the namespaces that read its metrics.
func TestSharedStatusPolicy(t *testing.T) {
	_, r := shared(t, sharedForms["disk"])
	for _, from := range [][]string{nil, {"monitoring"}, {"monitoring", "ops"}} {
		r.MetricsFrom = from
		in := all[*networkingv1.NetworkPolicy](generators.InstallRendezvous(r))[0].Spec.Ingress
		got := "nobody"
		if len(in) == 2 && len(in[1].From) == 1 && in[1].Ports[0].Port.IntVal == 2381 {
			got = fmt.Sprint(in[1].From[0].NamespaceSelector.MatchExpressions[0].Values)
		}
		if want := map[int]string{0: "nobody", 1: "[monitoring]", 2: "[monitoring ops]"}[len(from)]; got != want {
			t.Errorf("open to %s, want %s: %+v", got, want, in)
		}
	}
}

// TestKeygenQueue: the Job without whose Secret no admitted worker starts does not wait for the quota that they have.
func TestKeygenQueue(t *testing.T) {
	const kueue = "gang: {scheduler: kueue, queue: q}"
	for name, c := range map[string]struct {
		job  *job.Job
		want string
	}{
		"certificates": {
			load(t, jobText(rendezvousImage, "rendezvous: {companion: {storage: {size: 1Gi}}}", kueue)), "",
		},
		"ssh": {load(t, jobText("framework: horovod", kueue)), "q"},
	} {
		objs := objects(c.job)
		if got := find[*batchv1.Job](t, objs, "resnet-keygen").Labels["kueue.x-k8s.io/queue-name"]; got != c.want {
			t.Errorf("%s: the Job waits in queue %q, want %q", name, got, c.want)
		}
		if got := find[*batchv1.Job](t, objs, "resnet-worker").Labels["kueue.x-k8s.io/queue-name"]; got != "q" {
			t.Errorf("%s: the workers wait in queue %q", name, got)
		}
	}
}
