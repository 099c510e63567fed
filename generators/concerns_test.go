package generators_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestOrder: what others refer to comes first, in the order that the product documents, and every concern is some
// job's.
func TestOrder(t *testing.T) {
	j := load(t, jobText("createNamespace: true", "rendezvous: {backend: etcd, store: etcd}",
		"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]", "gang: {scheduler: volcano}"))
	for _, some := range []*job.Job{
		j, load(t, jobText("framework: horovod")),
		load(t, jobText("images: {rendezvous: 'r:1'}")), load(t, jobText("framework: dlrover", "target: elasticjob")),
	} {
		at := -1
		for _, c := range generators.Generate(some) {
			next := slices.Index(generators.Set{}.Names(), c.Name)
			if next <= at {
				t.Errorf("%s: %s comes too late", some.Spec.Framework, c.Name)
			}
			at = next
		}
	}
	if got := generators.Generate(j, "worker", "etcd"); len(got) != 2 || got[0].Name != "etcd" {
		t.Errorf("of two generators: %v", got)
	}
	if got := generators.Generate(load(t, jobText()), "etcd", "prefetch", "namespace", "storage"); len(got) != 0 {
		t.Errorf("concerns without objects: %v", got)
	}
}

// TestVolumes holds each source against the objects that make its claim exist.
func TestVolumes(t *testing.T) {
	for _, c := range []struct {
		source string
		volume *corev1.PersistentVolumeSource // nil: no volume is rendered
		claim  string
		class  string // provisioner of the class that is rendered
	}{
		{"claim: team-data", nil, "team-data", ""},
		{"dynamic: {size: 5Gi, storageClass: fast}", nil, "resnet-data", ""},
		{"efs: {fileSystem: fs-01234567}", csi("efs.csi.aws.com", "fs-01234567", nil), "resnet-data", ""},
		{
			"efs: {fileSystem: fs-01234567, path: /sub}", csi("efs.csi.aws.com", "fs-01234567:/sub", nil),
			"resnet-data",
			"",
		},
		{
			"efs: {fileSystem: fs-01234567, accessPoint: fsap-89abcdef}",
			csi("efs.csi.aws.com", "fs-01234567::fsap-89abcdef", nil), "resnet-data", "",
		},
		{"efs: {fileSystem: fs-01234567, claim: own}", csi("efs.csi.aws.com", "fs-01234567", nil), "own", ""},
		{"efs: {fileSystem: fs-01234567, provision: {}}", nil, "resnet-data", "efs.csi.aws.com"},
		{
			"fsx: {fileSystem: fs-01234567, dnsName: fs.example.org, mountName: abc}",
			csi("fsx.csi.aws.com", "fs-01234567", map[string]string{"dnsname": "fs.example.org", "mountname": "abc"}),
			"resnet-data", "",
		},
		{
			"fsx: {provision: {subnet: subnet-01234567, securityGroups: [sg-01234567]}}", nil,
			"resnet-data", "fsx.csi.aws.com",
		},
		{
			"nfs: {server: nfs.example.org, path: /x}",
			&corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.org", Path: "/x"}},
			"resnet-data", "",
		},
		{
			"hostPath: {path: /x}",
			&corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/x",
				Type: new(corev1.HostPathDirectoryOrCreate),
			}}, "resnet-data", "",
		},
	} {
		t.Run(c.source, func(t *testing.T) {
			objs := objects(load(t, jobText("storage: [{mountPath: /data, "+c.source+"}]")))
			mounted := ""
			for _, v := range pods(objs)[0].spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					mounted = v.PersistentVolumeClaim.ClaimName
				}
			}
			if mounted != c.claim {
				t.Errorf("workers mount claim %q, want %q", mounted, c.claim)
			}
			claims, volumes, classes := all[*corev1.PersistentVolumeClaim](objs), all[*corev1.PersistentVolume](objs),
				all[*storagev1.StorageClass](objs)
			if strings.HasPrefix(c.source, "claim:") {
				if len(claims)+len(volumes)+len(classes) > 0 {
					t.Error("a claim that exists is rendered")
				}
				return
			}
			claim := claims[0]
			if len(claims) != 1 || claim.Name != c.claim ||
				!slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
				t.Errorf("claims %+v", claims)
			}
			switch {
			case c.volume != nil: // each names the other, and no provisioner comes between
				v := volumes[0]
				if diff := cmp.Diff(*c.volume, v.Spec.PersistentVolumeSource); diff != "" {
					t.Errorf("source (-want +got):\n%s", diff)
				}
				if claim.Spec.VolumeName != v.Name || v.Spec.ClaimRef.Name != claim.Name ||
					v.Spec.ClaimRef.Namespace != claim.Namespace {
					t.Errorf("claim %s wants %s, volume %s wants %+v", claim.Name, claim.Spec.VolumeName,
						v.Name, v.Spec.ClaimRef)
				}
				if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != v.Spec.StorageClassName {
					t.Errorf("classes %v and %q", claim.Spec.StorageClassName, v.Spec.StorageClassName)
				}
				if v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
					t.Error("deleting the job deletes the data")
				}
			case c.class != "":
				s := classes[0]
				if s.Provisioner != c.class || *s.ReclaimPolicy != corev1.PersistentVolumeReclaimRetain ||
					*claim.Spec.StorageClassName != s.Name {
					t.Errorf("class %+v for claim of class %q", s, *claim.Spec.StorageClassName)
				}
			}
			if (len(volumes) == 1) != (c.volume != nil) || (len(classes) == 1) != (c.class != "") {
				t.Errorf("%d volumes and %d classes", len(volumes), len(classes))
			}
		})
	}
}

func csi(driver, handle string, attributes map[string]string) *corev1.PersistentVolumeSource {
	return &corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: driver, VolumeHandle: handle,
		VolumeAttributes: attributes,
	}}
}

// TestClassParameters: a class tells its driver everything, in strings.
func TestClassParameters(t *testing.T) {
	get := func(source string) map[string]string {
		return all[*storagev1.StorageClass](objects(load(t,
			jobText("storage: [{mountPath: /data, "+source+"}]"))))[0].Parameters
	}
	want := map[string]string{
		"provisioningMode": "efs-ap", "fileSystemId": "fs-01234567", "directoryPerms": "755",
		"basePath": "/base", "gidRangeStart": "1000", "gidRangeEnd": "2000",
	}
	if diff := cmp.Diff(want, get("efs: {fileSystem: fs-01234567, provision: {directoryPerms: '755', "+
		"basePath: /base, gidRangeStart: 1000, gidRangeEnd: 2000}}")); diff != "" {
		t.Errorf("EFS (-want +got):\n%s", diff)
	}
	want = map[string]string{
		"subnetId": "subnet-01234567", "securityGroupIds": "sg-01234567,sg-89abcdef",
		"deploymentType": "SCRATCH_2",
	}
	if diff := cmp.Diff(want, get("fsx: {provision: {subnet: subnet-01234567, securityGroups: [sg-01234567, "+
		"sg-89abcdef]}}")); diff != "" {
		t.Errorf("FSx (-want +got):\n%s", diff)
	}
}

// TestDatasetGate: workers wait for exactly what the fetching Job will write, on the same volume, which they only read.
func TestDatasetGate(t *testing.T) {
	for _, target := range []string{"job", "pods"} {
		objs := objects(load(t, jobText("target: "+target, "storage: [{mountPath: /data, subPath: sub, claim: c, "+
			"dataset: {url: 'http://x.org/a.zip'}}]")))
		f := find[*batchv1.Job](t, objs, "resnet-prefetch-data")
		if f.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || f.Spec.ActiveDeadlineSeconds == nil ||
			*f.Spec.ActiveDeadlineSeconds != 7200 {
			t.Errorf("fetching: %s, %v s", f.Spec.Template.Spec.RestartPolicy, f.Spec.ActiveDeadlineSeconds)
		}
		fetch := f.Spec.Template.Spec.Containers[0]
		for _, p := range pods(objs) {
			if p.labels["app.kubernetes.io/component"] != "worker" {
				continue
			}
			wait := p.spec.InitContainers[0]
			if got, want := wait.Command[len(wait.Command)-1], env(t, fetch)["DATASET_MARKER"]; got != want {
				t.Errorf("%s waits for %s, and %s will be there", p.from, got, want)
			}
			i := slices.IndexFunc(wait.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data" })
			if m := wait.VolumeMounts[i]; !m.ReadOnly || m.MountPath != "/data" || m.SubPath != "sub" {
				t.Errorf("%s waits at %+v", p.from, m)
			}
			if m := fetch.VolumeMounts[0]; m.ReadOnly || m.MountPath != "/data" || m.SubPath != "sub" {
				t.Errorf("fetched into %+v", m)
			}
		}
	}
}

// TestProgram: an author's words arrive byte for byte, behind what the launcher and the script put before them.
func TestProgram(t *testing.T) {
	words := `args: [--epochs, "10", "--lr=0.1", "-x", "a b", "$HOME", "--", "", "ünï"]`
	args := []string{"--epochs", "10", "--lr=0.1", "-x", "a b", "$HOME", "--", "", "ünï"}
	for _, c := range []struct {
		what    string
		spec    []string
		command []string
		args    []string
	}{
		{
			"command",
			[]string{"command: [python, train.py]", words},
			[]string{"torchrun", "--no_python", "python", "train.py"},
			args,
		},
		{
			"own torchrun",
			[]string{"command: [/opt/bin/torchrun, train.py]", words},
			[]string{"/opt/bin/torchrun", "train.py"},
			args,
		},
		{
			"own module",
			[]string{"command: [python, -m, torch.distributed.run, train.py]"},
			[]string{"python", "-m", "torch.distributed.run", "train.py"},
			nil,
		},
		{
			"script of the image",
			[]string{"command: []", "script: {image: /opt/train.py}", words},
			[]string{"torchrun"},
			append([]string{"/opt/train.py"}, args...),
		},
		{
			"script of a ConfigMap",
			[]string{"command: []", "script: {configMap: {name: s, key: run.py}}"},
			[]string{"torchrun"},
			[]string{"/tegen/script/run.py"},
		},
		{
			"script of S3",
			[]string{"command: []", "identity: {nodeRole: {}}", "script: {s3: 's3://bucket/a/train.py'}"},
			[]string{"torchrun"},
			[]string{"/tegen/script/train.py"},
		},
		{
			"script of S3, by the entrypoint",
			[]string{
				"command: []", "launcher: entrypoint", "identity: {nodeRole: {}}",
				"script: {s3: 's3://bucket/a/train.py', fetch: entrypoint}", words,
			},
			nil, append([]string{"s3://bucket/a/train.py"}, args...),
		},
		{"entrypoint", []string{"command: []", "launcher: entrypoint", words}, nil, args},
	} {
		w := worker(t, objects(load(t, jobText(c.spec...))))
		if diff := cmp.Diff(c.command, w.Command, emptyIsNil); diff != "" {
			t.Errorf("%s: command (-want +got):\n%s", c.what, diff)
		}
		if diff := cmp.Diff(c.args, w.Args, emptyIsNil); diff != "" {
			t.Errorf("%s: args (-want +got):\n%s", c.what, diff)
		}
	}
}

var emptyIsNil = cmp.Transformer("words", func(s []string) string { return strings.Join(s, "\x00") })

func TestGang(t *testing.T) {
	for _, target := range []string{"job", "pods"} {
		objs := objects(load(t, jobText("target: "+target, "workers: {replicas: 4, min: 2, max: 6}",
			"gang: {scheduler: koordinator, waitTimeout: 90s}")))
		want := map[string]string{
			"name": "resnet", "min-available": "2", "mode": "Strict", "waiting-time": "90s",
			"match-policy": "waiting-and-running",
		}
		for _, obj := range objs {
			var annotations map[string]string
			var spec corev1.PodSpec
			switch o := obj.(type) {
			case *corev1.Pod:
				annotations, spec = o.Annotations, o.Spec
			case *batchv1.Job:
				annotations, spec = o.Spec.Template.Annotations, o.Spec.Template.Spec
			default:
				continue
			}
			got := map[string]string{}
			for k, v := range annotations {
				if key, ok := strings.CutPrefix(k, "gang.scheduling.koordinator.sh/"); ok {
					got[key] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || spec.SchedulerName != "koord-scheduler" {
				t.Errorf("%s: %s, scheduler %q (-want +got):\n%s", target, id(t, obj), spec.SchedulerName, diff)
			}
		}
	}
	if got := objects(load(t, jobText("gang: {scheduler: koordinator}", "placement: {scheduler: mine}"))); pods(
		got)[0].spec.SchedulerName != "mine" {
		t.Errorf("the author's scheduler is overruled by %q", pods(got)[0].spec.SchedulerName)
	}
	for _, spec := range [][]string{nil, {"gang: {scheduler: none}"}} {
		objs := objects(load(t, jobText(spec...)))
		if s := text(t, objs[len(objs)-1]); strings.Contains(s, "koord") {
			t.Errorf("%v: %s", spec, s)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		spec     string
		account  string
		rendered bool
		role     string
	}{
		{"", "resnet", true, ""},
		{"identity: {nodeRole: {}}", "resnet", true, ""},
		{
			"identity: {irsa: {role: 'arn:aws:iam::123456789012:role/r'}}", "resnet", true,
			"arn:aws:iam::123456789012:role/r",
		},
		{
			"identity: {irsa: {role: 'arn:aws:iam::123456789012:role/r', serviceAccount: a}}", "a", true,
			"arn:aws:iam::123456789012:role/r",
		},
		{"identity: {podIdentity: {serviceAccount: a}}", "a", true, ""},
		{"identity: {serviceAccount: a}", "a", false, ""},
	} {
		var spec []string
		if c.spec != "" {
			spec = append(spec, c.spec)
		}
		objs := objects(load(t, jobText(spec...)))
		if got := pods(objs)[0].spec; got.ServiceAccountName != c.account || got.AutomountServiceAccountToken == nil ||
			*got.AutomountServiceAccountToken {
			t.Errorf("%s: account %q, token %v", c.spec, got.ServiceAccountName, got.AutomountServiceAccountToken)
		}
		accounts := all[*corev1.ServiceAccount](objs)
		if (len(accounts) == 1) != c.rendered {
			t.Errorf("%s: %d accounts rendered", c.spec, len(accounts))
		}
		if c.rendered && (accounts[0].Name != c.account ||
			accounts[0].Annotations["eks.amazonaws.com/role-arn"] != c.role) {
			t.Errorf("%s: %s with role %q", c.spec, accounts[0].Name,
				accounts[0].Annotations["eks.amazonaws.com/role-arn"])
		}
	}
}

// TestSecretsAreReferences: a value of a Secret is nowhere; its name is where a person reads what must be there first.
func TestSecretsAreReferences(t *testing.T) {
	objs := objects(load(t, jobText("imagePullSecrets: [registry]",
		"env: [{name: TOKEN, secret: {name: hub, key: token}}, {name: MAYBE, secret: {name: other, key: k, "+
			"optional: true}}, {name: SETTING, configMap: {name: settings, key: k}}]")))
	j := find[*batchv1.Job](t, objs, "resnet-worker")
	if got, want := j.Annotations["tegen.dev/expects"], "ConfigMap/settings,Secret/hub,Secret/registry"; got != want {
		t.Errorf("expects %q, want %q: what is optional need not be there", got, want)
	}
	for _, e := range worker(t, objs).Env {
		if (e.Name == "TOKEN" || e.Name == "MAYBE") && (e.Value != "" || e.ValueFrom == nil ||
			e.ValueFrom.SecretKeyRef == nil) {
			t.Errorf("%s is %+v", e.Name, e)
		}
		if e.Name == "MAYBE" && (e.ValueFrom.SecretKeyRef.Optional == nil || !*e.ValueFrom.SecretKeyRef.Optional) {
			t.Error("MAYBE is not optional")
		}
	}
}

// TestGitOps: a reconciler would run again what deletes itself.
func TestGitOps(t *testing.T) {
	const dataset = "storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]"
	ttl := func(spec ...string) (out []*int32) {
		for _, j := range all[*batchv1.Job](objects(load(t, jobText(append(spec, dataset)...)))) {
			out = append(out, j.Spec.TTLSecondsAfterFinished)
		}
		return out
	}
	if diff := cmp.Diff([]*int32{nil, nil}, ttl("gitops: true")); diff != "" {
		t.Errorf("with gitops (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*int32{new(int32(3600)), new(int32(3600))}, ttl("ttlAfterFinished: 1h")); diff != "" {
		t.Errorf("without (-want +got):\n%s", diff)
	}
}

// TestAccountOfPods: what Flux applies in one go holds no bare pod whose ServiceAccount comes with it, unless the
// account carries rights. No token is mounted either way.
func TestAccountOfPods(t *testing.T) {
	for _, c := range []struct{ spec, account, rendered string }{
		{"target: pods, gitops: true", "default", ""},
		{"target: pods, gitops: true, identity: {nodeRole: {}}", "default", ""},
		{"target: pods, gitops: true, identity: {serviceAccount: mine}", "mine", ""},
		{"target: pods, gitops: true, identity: {podIdentity: {serviceAccount: own}}", "own", "own"},
		{"target: pods", "resnet", "resnet"},
		{"target: job, gitops: true", "resnet", "resnet"},
	} {
		objs := objects(load(t, jobText(strings.Split(c.spec, ", ")...)))
		rendered := ""
		for _, account := range all[*corev1.ServiceAccount](objs) {
			rendered += account.Name
		}
		if rendered != c.rendered {
			t.Errorf("%s: account %q is rendered, want %q", c.spec, rendered, c.rendered)
		}
		var pods []corev1.PodSpec
		for _, pod := range all[*corev1.Pod](objs) {
			pods = append(pods, pod.Spec)
			if expects := pod.Annotations[names.Expects]; strings.Contains(expects, "ServiceAccount/default") {
				t.Errorf("%s: %s expects what every namespace has: %s", c.spec, pod.Name, expects)
			}
		}
		for _, j := range all[*batchv1.Job](objs) {
			pods = append(pods, j.Spec.Template.Spec)
		}
		for _, pod := range pods {
			if pod.ServiceAccountName != c.account || *pod.AutomountServiceAccountToken {
				t.Errorf("%s: account %q with a token: %t, want %q without", c.spec, pod.ServiceAccountName,
					*pod.AutomountServiceAccountToken, c.account)
			}
		}
		if len(pods) == 0 {
			t.Errorf("%s: no pods", c.spec)
		}
	}
}

func TestDisruption(t *testing.T) {
	objs := objects(load(t, jobText("workers: {replicas: 4, min: 3, max: 5}")))
	if b := find[*policyv1.PodDisruptionBudget](t, objs, "resnet-worker"); b.Spec.MinAvailable.IntValue() != 3 {
		t.Errorf("the budget keeps %s, want the minimum", b.Spec.MinAvailable)
	}
	if n := len(all[*policyv1.PodDisruptionBudget](objects(load(t, jobText("disruption: {budget: false}",
		"rendezvous: {backend: etcd, store: etcd}"))))); n != 0 {
		t.Errorf("%d budgets where the job wants none", n)
	}
	for spec, want := range map[string]string{
		"disruption: {safeToEvict: false}": "false",
		"disruption: {safeToEvict: true}":  "",
	} {
		j := find[*batchv1.Job](t, objects(load(t, jobText(spec))), "resnet-worker")
		if got := j.Spec.Template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"]; got != want {
			t.Errorf("%s: annotation %q", spec, got)
		}
	}
}

// TestHostnames: each worker has a name in DNS that is its own, before it is ready.
func TestHostnames(t *testing.T) {
	objs := objects(load(t, jobText()))
	j, s := find[*batchv1.Job](t, objs, "resnet-worker"), find[*corev1.Service](t, objs, "resnet-worker")
	if *j.Spec.CompletionMode != batchv1.IndexedCompletion || j.Spec.Template.Spec.Subdomain != s.Name {
		t.Errorf("%s pods below %q, Service %q", *j.Spec.CompletionMode, j.Spec.Template.Spec.Subdomain, s.Name)
	}
	headless(t, s)

	objs = objects(load(t, jobText("target: pods", "workers: {replicas: 3}")))
	var names []string
	for _, p := range all[*corev1.Pod](objs) {
		names = append(names, p.Name)
		own := find[*corev1.Service](t, objs, p.Name)
		headless(t, own)
		for _, other := range all[*corev1.Pod](objs) {
			if contains(other.Labels, own.Spec.Selector) != (other == p) {
				t.Errorf("Service %s: selects Pod %s: %t", own.Name, other.Name, other != p)
			}
		}
		if p.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || p.Spec.Hostname != "" && p.Spec.Hostname != p.Name {
			t.Errorf("Pod %s: %s, hostname %q", p.Name, p.Spec.RestartPolicy, p.Spec.Hostname)
		}
	}
	if diff := cmp.Diff([]string{"resnet-worker-1", "resnet-worker-2", "resnet-worker-3"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func headless(t *testing.T, s *corev1.Service) {
	t.Helper()
	if s.Spec.ClusterIP != corev1.ClusterIPNone || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("Service %s: %+v", s.Name, s.Spec)
	}
}

// TestNamespaceObject: the level that is enforced is one that the pods meet.
func TestNamespaceObject(t *testing.T) {
	for spec, want := range map[string]string{
		"security: {runAsUser: 1000}": "restricted", "security: {runAsUser: 0}": "baseline",
		"network: {host: true}": "privileged",
	} {
		j := load(t, jobText("createNamespace: true", spec))
		objs := objects(j)
		ns := find[*corev1.Namespace](t, objs, "ml")
		if got := ns.Labels["pod-security.kubernetes.io/enforce"]; got != want {
			t.Errorf("%s: enforces %q, want %q", spec, got, want)
		}
		if restrictedEnough := !j.Spec.Network.Host &&
			len(restrictedPods(j, objs)) == 0; restrictedEnough != (want == "restricted") {
			t.Errorf("%s: pods meet the restricted standard: %t", spec, restrictedEnough)
		}
	}
	none := objects(load(t, jobText()))
	if n := len(all[*corev1.Namespace](none)); n != 0 {
		t.Errorf("%d Namespaces where the job wants none", n)
	}
}

// TestRestartUncounted: the word leaves no failure that counts, and every disruption recreates all pods.
func TestRestartUncounted(t *testing.T) {
	set := find[*apis.JobSet](t, objects(load(t, jobText("target: jobset", "failure: {restartAll: uncounted}"))),
		"resnet")
	want := &apis.JobSetFailurePolicy{RestartStrategy: "BlockingRecreate", Rules: []apis.JobSetFailureRule{{
		Name: "disrupted", Action: "RestartJobSetAndIgnoreMaxRestarts",
		OnJobFailureReasons: []string{"PodFailurePolicy"},
	}}}
	if diff := cmp.Diff(want, set.Spec.FailurePolicy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExpected: whatever a pod names and nobody renders is listed, and the reference check is content.
func TestExpected(t *testing.T) {
	objs := objects(load(t, jobText(
		"podTemplate: {spec: {serviceAccountName: robot, priorityClassName: urgent, "+
			"imagePullSecrets: [{name: pull}], volumes: ["+
			"{name: a, secret: {secretName: s1}}, {name: b, configMap: {name: c1}}, {name: c, "+
			"persistentVolumeClaim: {claimName: p1}}, "+
			"{name: d, projected: {sources: [{secret: {name: s2}}, {configMap: {name: c2}}]}}], "+
			"initContainers: [{name: i, image: 'i:1', envFrom: [{secretRef: {name: s3}}, "+
			"{configMapRef: {name: c3}}], env: [{name: X_URL, value: 'http://tracker:80'}]}], "+
			"containers: [{name: worker, env: [{name: E, valueFrom: {secretKeyRef: {name: s4, key: k}}}, {name: O, "+
			"valueFrom: {secretKeyRef: {name: never, key: k, optional: true}}}]}]}}")))
	if broken := refs.Check(objs); len(broken) > 0 {
		t.Errorf("broken: %v", broken)
	}
	var got string
	for _, obj := range objs {
		if j, ok := obj.(*batchv1.Job); ok {
			got = j.Annotations[names.Expects]
		}
	}
	want := "ConfigMap/c1,ConfigMap/c2,ConfigMap/c3,PersistentVolumeClaim/p1,PriorityClass/urgent," +
		"Secret/pull,Secret/s1,Secret/s2,Secret/s3,Secret/s4,Service/tracker,ServiceAccount/robot"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
