package generators_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestLongestNames renders what the schema allows at most, in every form that derives names.
func TestLongestNames(t *testing.T) {
	name := "j" + strings.Repeat("o", 38) + "b" // 40 characters
	volume := "v" + strings.Repeat("o", 10) + "l"
	dataset := "dataset: {url: 'https://example.org/a.zip'}"
	tag := strings.Repeat("1.", 63) + "1-" // a label value has room for half of it
	cases := map[string][]string{
		"indexed job":  {"workers: {replicas: 4096}"},
		"hashed names": {"workers: {replicas: 4096}", "hashedNames: true"},
		"bare pods":    {"workers: {replicas: 4096}", "target: pods"},
		"gang":         {"workers: {replicas: 4096}", "gang: {scheduler: koordinator}", "suspend: true"},
		"etcd": {
			rendezvousImage, "rendezvous: {proxy: true, store: etcd, etcd: {replicas: 5, storage: {size: 4Gi}}}",
		},
		"named etcd": {"rendezvous: {backend: etcd, store: etcd, etcd: {name: " + "e" + strings.Repeat("t", 46) +
			", replicas: 5, storage: {size: 4Gi}}}"},
		"companion":       {rendezvousImage},
		"named companion": {rendezvousImage, "rendezvous: {companion: {name: " + "m" + strings.Repeat("e", 46) + "}}"},
		"gateways": {rendezvousImage, "rendezvous: {backend: etcd, companion: {etcd: {endpoints: " +
			"['http://etcd:2379']}}}"},
		"dataset":        {"storage: [{name: " + volume + ", mountPath: /data, " + dataset + "}]"},
		"hashed dataset": {"hashedNames: true", "storage: [{name: " + volume + ", mountPath: /data, " + dataset + "}]"},
		"dataset on EFS": {"storage: [{name: " + volume + ", mountPath: /data, efs: {fileSystem: fs-01234567}, " +
			dataset + "}]"},
		"provisioned EFS": {"storage: [{name: " + volume + ", mountPath: /data, efs: {fileSystem: fs-01234567, " +
			"provision: {}}}]"},
		"long tag":          {"image: example.org/train:" + tag, "images: {fetch: 'example.org/fetch:" + tag + "'}"},
		"created namespace": {"createNamespace: true"},
		"jobset":            {"workers: {replicas: 4096}", "target: jobset"},
		"trainjob":          {"workers: {replicas: 4096}", "target: trainjob"},
		"vcjob":             {"workers: {replicas: 4096}", "target: vcjob"},
		"hashed vcjob":      {"workers: {replicas: 4096}", "target: vcjob", "hashedNames: true"},
		"servers": {
			"framework: mxnet", "workers: {replicas: 4096}", "servers: {replicas: 1024}",
			"hashedNames: true",
		},
		"MXJob": {
			"framework: mxnet", "target: mxjob", "workers: {replicas: 4096}",
			"servers: {replicas: 1024}",
		},
		"MxJob": {
			"framework: mxnet", "target: mxjob-mlkube", "workers: {replicas: 4096}",
			"servers: {replicas: 1024}",
		},
	}
	for what, spec := range cases {
		t.Run(what, func(t *testing.T) {
			text := strings.Replace(namedJob(name, spec...), "namespace: ml", "namespace: n"+strings.Repeat("s", 62), 1)
			j := load(t, text)
			objs := objects(j)
			for _, property := range []string{"names", "namespaces"} {
				for _, wrong := range properties[property](j, objs) {
					t.Error(wrong)
				}
			}
			if what != "bare pods" { // 4,096 Services and pods take the quadratic check too long
				for _, wrong := range append(selectors(j, objs), references(j, objs)...) {
					t.Error(wrong)
				}
			}
		})
	}
}

// TestLongestGivenNames: names that an author gives are as long as Kubernetes allows, and what derives from them fits.
func TestLongestGivenNames(t *testing.T) {
	// 253
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." +
		strings.Repeat("d", 61)
	cases := map[string][]string{
		"existing claim": {"storage: [{mountPath: /data, claim: " + long + "}]"},
		"dynamic claim":  {"storage: [{mountPath: /data, dynamic: {claim: " + long + "}}]"},
		"account": {"identity: {irsa: {role: 'arn:aws:iam::123456789012:role/train', serviceAccount: " + long +
			"}}"},
		"volume": {"storage: [{mountPath: /data, nfs: {server: nfs, path: /x, claim: " + long + ", volume: " +
			long + "}}]"},
	}
	for what, spec := range cases {
		t.Run(what, func(t *testing.T) {
			j := load(t, jobText(spec...))
			for _, wrong := range append(dnsNames(j, objects(j)), references(j, objects(j))...) {
				t.Error(wrong)
			}
		})
	}
	// A volume's name is made of the namespace and the claim's where none is set.
	for what, text := range map[string]string{
		"claim of a volume": jobText("storage: [{mountPath: /data, nfs: {server: nfs, path: /x, claim: " + long +
			"}}]"),
		"claim of a class": jobText("storage: [{mountPath: /data, efs: {fileSystem: fs-01234567, claim: " + long +
			", provision: {}}}]"),
		"claim beyond Kubernetes": jobText("storage: [{mountPath: /data, claim: " + long + "e}]"),
	} {
		t.Run(what, func(t *testing.T) {
			jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
			if err != nil {
				return // refused is as good as shortened
			}
			for _, wrong := range dnsNames(jobs[0], objects(jobs[0])) {
				t.Error(wrong)
			}
		})
	}
}

// TestNoTwoNamesMeet: objects of one bundle never share kind and name.
func TestNoTwoNamesMeet(t *testing.T) {
	eachJob(t, func(t *testing.T, _ *job.Job, objs []runtime.Object) {
		seen := map[string]bool{}
		for _, obj := range objs {
			if seen[id(t, obj)] {
				t.Errorf("%s is rendered twice", id(t, obj))
			}
			seen[id(t, obj)] = true
		}
	})
	for what, spec := range map[string][]string{
		"one claim mounted twice": {"storage: [{name: a, mountPath: /a, dynamic: {claim: c}}, {name: b, " +
			"mountPath: /b, dynamic: {claim: c}}]"},
		"two datasets": {"storage: [{name: a, mountPath: /a, claim: x, dataset: {url: 'http://x.org/a.zip'}}, " +
			"{name: b, mountPath: /b, claim: x, dataset: {url: 'http://x.org/a.zip'}}]"},
		"two datasets, hashed": {"hashedNames: true", "storage: [{name: a, mountPath: /a, claim: x, " +
			"dataset: {url: 'http://x.org/a.zip'}}, " +
			"{name: b, mountPath: /b, claim: x, dataset: {url: 'http://x.org/a.zip'}}]"},
		"etcd named like the workers": {"rendezvous: {backend: etcd, store: etcd, " +
			"etcd: {name: resnet-worker}}"},
		"etcd's peers named like the workers": {"rendezvous: {backend: etcd, store: etcd, etcd: {name: resnet}}"},
		"account named like the job":          {"identity: {podIdentity: {serviceAccount: resnet}}"},
	} {
		t.Run(what, func(t *testing.T) {
			jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(jobText(spec...))}})
			if err != nil {
				return // refused
			}
			objs := objects(jobs[0])
			texts(t, objs)
			for _, wrong := range references(jobs[0], objs) {
				t.Error(wrong)
			}
		})
	}
}

// TestLongNamesDiffer: what is cut off a name still tells it from others.
func TestLongNamesDiffer(t *testing.T) {
	name := func(last string) string {
		long := strings.Repeat(strings.Repeat("a", 62)+".", 3) + strings.Repeat("a", 60) + last
		return all[*corev1.PersistentVolume](objects(load(t, jobText("storage: [{mountPath: /data, nfs: {server: nfs, "+
			"path: /x, claim: "+long+"}}]"))))[0].Name
	}
	if a, b := name("x"), name("y"); a == b {
		t.Errorf("two claims have the volume %s", a)
	}
}
