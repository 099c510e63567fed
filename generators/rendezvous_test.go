package generators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestRendezvousEnvironment checks the variables of each worker in all combinations that exist.
func TestRendezvousEnvironment(t *testing.T) {
	const fullName = "resnet-worker-0.resnet-worker.ml.svc.cluster.local"
	type row struct {
		rendezvous, target string
		endpoint           string
		backend            string
		conf               string
	}
	var rows []row
	for _, target := range []string{"job", "pods"} {
		first := fullName
		if target == "pods" {
			first = "resnet-worker-1"
		}
		rows = append(rows,
			row{"{}", target, first + ":29400", "c10d", "join_timeout=600,last_call_timeout=30"},
			row{"{port: 29555}", target, first + ":29555", "c10d", "join_timeout=600,last_call_timeout=30"},
			row{
				"{lastCall: 1m, joinTimeout: 2m, conf: {read_timeout: '90', is_host: 'true'}}", target,
				first + ":29400", "c10d",
				"is_host=true,join_timeout=120,last_call_timeout=60,read_timeout=90",
			},
			row{
				"{store: external, endpoint: 'store.infra.svc:29400'}", target, "store.infra.svc:29400", "c10d",
				"join_timeout=600,last_call_timeout=30",
			},
		)
		for _, backend := range []string{"etcd", "etcd-v2"} {
			conf, tls := "join_timeout=600,last_call_timeout=30", ""
			switch backend {
			case "etcd": // the legacy backend calls one of them otherwise
				conf = "last_call_timeout=30,timeout=600"
				tls = "cacert=/tegen/tls/ca.crt,cert=/tegen/tls/tls.crt,key=/tegen/tls/tls.key," +
					"last_call_timeout=30,protocol=https,timeout=600"
			case "etcd-v2":
				tls = "ca_cert=/tegen/tls/ca.crt,join_timeout=600,last_call_timeout=30,protocol=https,ssl_cert=/" +
					"tegen/tls/tls.crt,ssl_cert_key=/tegen/tls/tls.key"
			}
			rows = append(rows,
				row{"{backend: " + backend + ", store: etcd}", target, "resnet-etcd:2379", backend, conf},
				row{
					"{backend: " + backend + ", store: etcd, port: 12379, etcd: {name: meet}}", target,
					"meet:12379", backend, conf,
				},
				row{
					"{backend: " + backend + ", store: etcd, etcd: {tls: {secret: certs}}}", target, "resnet-etcd:2379",
					backend, tls,
				},
				row{
					"{backend: " + backend + ", store: external, endpoint: 'etcd.infra.svc:2379'}", target,
					"etcd.infra.svc:2379", backend, conf,
				},
			)
		}
	}
	for _, r := range rows {
		t.Run(r.target+" "+r.rendezvous, func(t *testing.T) {
			j := load(t, jobText("target: "+r.target, "rendezvous: "+r.rendezvous,
				"workers: {replicas: 2, min: 1, max: 4, processes: auto}"))
			objs := objects(j)
			got := env(t, worker(t, objs))
			want := map[string]string{
				"PET_RDZV_BACKEND": r.backend, "PET_RDZV_ENDPOINT": r.endpoint, "PET_RDZV_CONF": r.conf,
				"PET_NNODES": "1:4", "PET_NPROC_PER_NODE": "auto", "PET_MAX_RESTARTS": "3",
			}
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s is %q, want %q", name, got[name], value)
				}
			}
			if share := got["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"]; (share == "1") != (r.backend == "c10d" ||
				r.backend == "etcd-v2") {
				t.Errorf("TORCH_DISABLE_SHARE_RDZV_TCP_STORE is %q with %s", share, r.backend)
			}
			if n := len(all[*appsv1.StatefulSet](objs)); (n == 1) != strings.Contains(r.rendezvous, "store: etcd") {
				t.Errorf("%d etcds with %s", n, r.rendezvous)
			}
			for _, wrong := range references(j, objs) {
				t.Error(wrong)
			}
			// Workers hold the certificate exactly where there is one.
			tls := slices.ContainsFunc(worker(t, objs).VolumeMounts,
				func(m corev1.VolumeMount) bool { return m.MountPath == "/tegen/tls" && m.ReadOnly })
			if tls != strings.Contains(r.rendezvous, "tls") {
				t.Errorf("certificate mounted: %t", tls)
			}
		})
	}
}

// TestEntrypointEnvironment: images of the tutorial read the same facts under their own names.
func TestEntrypointEnvironment(t *testing.T) {
	const tutorial = "image: torchelastic/examples:0.1.0rc1"
	get := func(spec ...string) map[string]string {
		t.Helper()
		j := load(t, jobText(append(spec, tutorial, "launcher: entrypoint", "command: []", "args: [a]",
			"workers: {replicas: 2, min: 1, max: 3}")...))
		return env(t, worker(t, objects(j)))
	}
	for what, c := range map[string]struct {
		spec []string
		want map[string]string
	}{
		"pods": {[]string{"target: pods", "rendezvous: {backend: etcd, store: etcd, id: imagenet}"}, map[string]string{
			"RDZV_ENDPOINT": "resnet-etcd:2379", "JOB_ID": "imagenet", "MIN_SIZE": "1", "MAX_SIZE": "3", "SIZE": "3",
		}},
		"job": {[]string{"rendezvous: {backend: etcd, store: etcd}"}, map[string]string{
			"RDZV_ENDPOINT": "resnet-etcd:2379", "JOB_ID": "$(PET_RDZV_ID)", "MIN_SIZE": "1", "MAX_SIZE": "3",
			"SIZE": "3",
		}},
		"own SIZE": {
			[]string{"rendezvous: {backend: etcd, store: etcd}", "env: [{name: SIZE, value: '2'}]"},
			map[string]string{"SIZE": "2"},
		},
		"TLS": {[]string{"rendezvous: {backend: etcd, store: etcd, etcd: {tls: {secret: s}}}"}, map[string]string{
			"ETCD_PROTOCOL": "https", "ETCD_CACERT": "/tegen/tls/ca.crt", "ETCD_CERT": "/tegen/tls/tls.crt",
			"ETCD_KEY": "/tegen/tls/tls.key",
		}},
	} {
		got := get(c.spec...)
		for name, value := range c.want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", what, name, got[name], value)
			}
		}
	}
	for name := range get("rendezvous: {backend: etcd, store: etcd}") {
		if strings.HasPrefix(name, "ETCD_") {
			t.Errorf("without TLS %s is set", name)
		}
	}
	torchrun := env(t, worker(t, objects(load(t, jobText()))))
	for _, name := range []string{"RDZV_ENDPOINT", "JOB_ID", "MIN_SIZE", "MAX_SIZE", "SIZE"} {
		if v, ok := torchrun[name]; ok {
			t.Errorf("torchrun reads PET_ variables, yet %s is %q", name, v)
		}
	}
}

// TestRunID: two runs never meet where the target can tell them apart.
func TestRunID(t *testing.T) {
	const uid = "metadata.labels['batch.kubernetes.io/controller-uid']"
	for _, c := range []struct {
		what string
		spec []string
		id   string
	}{
		{"job", nil, "resnet-$(TEGEN_RUN_UID)"},
		{"job with an id", []string{"rendezvous: {id: run-7}"}, "run-7-$(TEGEN_RUN_UID)"},
		{"pods", []string{"target: pods"}, "resnet"},
		{"pods with an id", []string{"target: pods", "rendezvous: {id: run-7}"}, "run-7"},
	} {
		got := env(t, worker(t, objects(load(t, jobText(c.spec...)))))
		if got["PET_RDZV_ID"] != c.id {
			t.Errorf("%s: id %q, want %q", c.what, got["PET_RDZV_ID"], c.id)
		}
		if strings.Contains(c.id, "TEGEN_RUN_UID") != (got["TEGEN_RUN_UID"] == uid) {
			t.Errorf("%s: TEGEN_RUN_UID is %q", c.what, got["TEGEN_RUN_UID"])
		}
	}
	// Bare pods share an external store with the whole cluster, and one that is rendered with the runs before:
	// namespace, name and content are in the id.
	for _, store := range []string{"store: external, endpoint: 'etcd.infra.svc:2379'", "store: etcd"} {
		named := func(more ...string) string {
			return env(t, worker(t,
				objects(load(t,
					jobText(append(more, "target: pods",
						"rendezvous: {backend: etcd-v2, "+store+"}")...)))))["PET_RDZV_ID"]
		}
		id := named()
		if !strings.HasPrefix(id, "ml-resnet-") || len(id) != len("ml-resnet-")+8 {
			t.Errorf("%s: id %q, want ml-resnet- and a hash", store, id)
		}
		if other := named("image: example.org/train:1.1"); other == id {
			t.Errorf("%s: a job with another image would meet the state of its predecessor: %q", store, other)
		}
		for _, same := range []string{"suspend: true", "failure: {deadline: 1h}"} {
			if got := named(same); got != id {
				t.Errorf("%s: with %s it is another run: %q and %q", store, same, id, got)
			}
		}
	}
}

// TestEtcd holds the flags of every size of etcd against the Services and volumes beside it.
func TestEtcd(t *testing.T) {
	for _, members := range []int{1, 3, 5} {
		for _, tls := range []bool{false, true} {
			for _, port := range []int{0, 12379} {
				for _, backend := range []string{"etcd", "etcd-v2", "c10d"} { // the last one through proxies
					t.Run(fmt.Sprintf("%s/%d/tls=%t/port=%d", backend, members, tls, port), func(t *testing.T) {
						etcd(t, backend, members, tls, port)
					})
				}
			}
		}
	}
}

func etcd(t *testing.T, backend string, members int, tls bool, port int) {
	proxied := backend == job.BackendC10d
	spec := fmt.Sprintf("rendezvous: {backend: %s, store: etcd, proxy: %t", backend, proxied)
	client := 2379
	if port != 0 {
		spec += fmt.Sprintf(", port: %d", port)
		client = port
	}
	spec += fmt.Sprintf(", etcd: {replicas: %d, quota: 1Gi, compaction: 30m", members)
	scheme, secret := "http", ""
	if members > 1 {
		spec += ", storage: {size: 10Gi, storageClass: gp3}"
	}
	if tls {
		spec += ", tls: {secret: server, clientSecret: client}"
		scheme, secret = "https", "server"
	} else if proxied { // for which certificates are made
		scheme, secret = "https", "resnet-rendezvous-tls"
	}
	objs := objects(load(t, jobText(spec+"}}", rendezvousImage)))
	set := find[*appsv1.StatefulSet](t, objs, "resnet-etcd")
	service := find[*corev1.Service](t, objs, "resnet-etcd")
	peers := find[*corev1.Service](t, objs, "resnet-etcd-peer")
	c := set.Spec.Template.Spec.Containers[0]

	flags := map[string]string{}
	if c.Command[0] != "etcd" {
		t.Errorf("command %q", c.Command)
	}
	for _, f := range slices.Concat(c.Command[1:], c.Args) {
		name, value, ok := strings.Cut(f, "=")
		if _, twice := flags[name]; twice || !ok {
			t.Errorf("flag %q twice, or without a value", f)
		}
		flags[name] = value
	}
	var cluster []string
	for i := range members {
		cluster = append(cluster, fmt.Sprintf("resnet-etcd-%d=%s://resnet-etcd-%d.%s:2380", i, scheme, i, peers.Name))
	}
	want := map[string]string{
		"--name":                        "$(POD_NAME)",
		"--data-dir":                    "/var/lib/etcd/data",
		"--listen-client-urls":          fmt.Sprintf("%s://0.0.0.0:%d", scheme, client),
		"--advertise-client-urls":       fmt.Sprintf("%s://%s:%d", scheme, service.Name, client), // never 0.0.0.0
		"--listen-peer-urls":            scheme + "://0.0.0.0:2380",
		"--initial-advertise-peer-urls": scheme + "://$(POD_NAME)." + set.Spec.ServiceName + ":2380",
		"--initial-cluster":             strings.Join(cluster, ","),
		"--initial-cluster-state":       "new",
		"--initial-cluster-token":       "ml-resnet-etcd",
		"--listen-metrics-urls":         "http://0.0.0.0:2381",
		"--quota-backend-bytes":         "1073741824",
		"--auto-compaction-mode":        "periodic",
		"--auto-compaction-retention":   "1800s",
	}
	if !proxied {
		want["--enable-v2"] = "true"
	}
	if proxied && !tls {
		want["--peer-cert-allowed-cn"] = "server"
	}
	if scheme == "https" {
		for _, side := range []string{"", "peer-"} {
			want["--"+side+"cert-file"] = "/tegen/tls/tls.crt"
			want["--"+side+"key-file"] = "/tegen/tls/tls.key"
			want["--"+side+"trusted-ca-file"] = "/tegen/tls/ca.crt"
			want["--"+side+"client-cert-auth"] = "true"
		}
	}
	if diff := cmp.Diff(want, flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}

	// The v2 API ended with 3.5; the image is never newer where the backend needs it.
	if old := strings.Contains(c.Image, ":v3.5."); old == proxied {
		t.Errorf("backend %s with image %s", backend, c.Image)
	}
	if *set.Spec.Replicas != int32(members) || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("%d members, %s", *set.Spec.Replicas, set.Spec.PodManagementPolicy)
	}
	if peers.Spec.ClusterIP != corev1.ClusterIPNone || !peers.Spec.PublishNotReadyAddresses ||
		set.Spec.ServiceName != peers.Name {
		t.Errorf("members find each other by %q: %+v", set.Spec.ServiceName, peers.Spec)
	}
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != int32(client) ||
		service.Spec.Ports[0].TargetPort.String() != "client" {
		t.Errorf("ports of the Service: %+v", service.Spec.Ports)
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"client": int32(client), "peer": 2380, "metrics": 2381}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for name, probe := range map[string]*corev1.Probe{
		"startup": c.StartupProbe, "readiness": c.ReadinessProbe,
		"liveness": c.LivenessProbe,
	} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.String() != "metrics" ||
			probe.HTTPGet.Scheme == corev1.URISchemeHTTPS {
			t.Errorf("%s probe %+v: want HTTP on the metrics port, which asks for no certificate", name, probe)
		}
	}
	if claims := len(set.Spec.VolumeClaimTemplates); (claims == 1) != (members > 1) {
		t.Errorf("%d volume claims", claims)
	}
	mounted := ""
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			mounted = v.Secret.SecretName
			if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o007 != 0 {
				t.Errorf("the key is readable by others: %v", v.Secret.DefaultMode)
			}
		}
	}
	if mounted != secret {
		t.Errorf("members hold Secret %q, want %q", mounted, secret)
	}
	if got := set.Annotations["tegen.dev/expects"]; tls && got != "Secret/server" || !tls && got != "" {
		t.Errorf("expects %q", got)
	}
	if b := find[*policyv1.PodDisruptionBudget](t, objs, "resnet-etcd"); b.Spec.MinAvailable.IntValue() != members/2+1 {
		t.Errorf("budget %s of %d members, want the quorum", b.Spec.MinAvailable, members)
	}
	policy := find[*networkingv1.NetworkPolicy](t, objs, "resnet-etcd").Spec
	var in, out []int
	for _, rule := range policy.Ingress {
		in = append(in, portNumbers(rule.Ports)...)
	}
	for _, rule := range policy.Egress {
		out = append(out, portNumbers(rule.Ports)...)
	}
	if diff := cmp.Diff([]int{client, 2380}, in); diff != "" {
		t.Errorf("the policy lets in (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{client, 2380, 53, 53}, out); diff != "" { // of members, then DNS
		t.Errorf("the policy lets out (-want +got):\n%s", diff)
	}
}

func portNumbers(ports []networkingv1.NetworkPolicyPort) (numbers []int) {
	for _, p := range ports {
		numbers = append(numbers, p.Port.IntValue())
	}
	return numbers
}

// TestPolicies: workers reach workers on any port, since rank 0's store takes a random one; etcd hears only its own.
func TestPolicies(t *testing.T) {
	objs := objects(load(t, jobText("rendezvous: {backend: etcd, store: etcd}", "storage: [{mountPath: /d, dataset: "+
		"{url: 'http://x.org/a.zip'}}]")))
	if n := len(all[*networkingv1.NetworkPolicy](objs)); n != 3 {
		t.Fatalf("%d policies, want 3", n)
	}
	for _, p := range all[*networkingv1.NetworkPolicy](objs) {
		if diff := cmp.Diff([]networkingv1.PolicyType{"Ingress", "Egress"}, p.Spec.PolicyTypes); diff != "" {
			t.Errorf("%s governs (-want +got):\n%s", p.Name, diff)
		}
	}
	w := find[*networkingv1.NetworkPolicy](t, objs, "resnet-worker").Spec
	if len(w.Ingress) != 1 || len(w.Ingress[0].Ports) != 0 || len(w.Ingress[0].From) != 1 ||
		w.Ingress[0].From[0].PodSelector.MatchLabels["app.kubernetes.io/component"] != "worker" {
		t.Errorf("workers hear %+v, want every port of workers", w.Ingress)
	}
	if len(w.Egress) != 1 || len(w.Egress[0].Ports)+len(w.Egress[0].To) != 0 {
		t.Errorf("workers may dial %+v, want everything", w.Egress)
	}
	if f := find[*networkingv1.NetworkPolicy](t, objs, "resnet-prefetch").Spec; len(f.Ingress) != 0 ||
		len(f.Egress) != 1 {
		t.Errorf("fetching hears %+v and dials %+v, want nobody and everything", f.Ingress, f.Egress)
	}
	if n := len(all[*networkingv1.NetworkPolicy](objects(load(t, jobText("network: {policy: false}"))))); n != 0 {
		t.Errorf("%d policies where the job wants none", n)
	}
}
