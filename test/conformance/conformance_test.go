// Package conformance checks everything that the golden files hold against two
// evaluators that share no code with tegen: the schemas of one Kubernetes release,
// through kubeconform, and the practices kube-score knows. The golden
// comparison says that output did not change; this says that it is right.
//
// Custom resources, which those two know nothing of, are held against their
// CRDs (custom_test.go).
//
// The first two compile a program each on a cold build cache, so they run only
// where TEGEN_CONFORMANCE=1 asks for them, as "make verify" does. Run them with
// -count=1: what the programs are built from is not among the inputs that go
// test remembers.
package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/test/cases"
)

const (
	root = "../.."

	// Each mod file pins its own graph; its head says why it stands apart.
	toolsMod   = root + "/tools.mod"
	scoreMod   = root + "/score.mod"
	schemasMod = "schemas.mod"

	// scoredKubernetes is the release kube-score evaluates API versions by. It
	// stays with the minor version pinned in schemas.mod.
	scoredKubernetes = "v1.36"
)

// acceptance is a critical kube-score finding that is known and stays.
type acceptance struct {
	check     string // kube-score's id of the check
	kind      string // kind of the object
	component string // its app.kubernetes.io/component label
	fixture   string // the one case whose author chose it; empty where tegen did
	reason    string // one sentence: why it is right here
}

// accepted lists every critical finding that is not mended. A row that no
// golden triggers any more fails the test, so that no reason outlives its cause.
var accepted = []acceptance{
	{"container-image-pull-policy", "Job", "worker", "", pinned},
	{"container-image-pull-policy", "Job", "scheduler", "", pinned},
	{"container-image-pull-policy", "Job", "server", "", pinned},
	{"container-image-pull-policy", "Pod", "worker", "", pinned},
	{"container-image-pull-policy", "Job", "prefetch", "", pinned},
	{"container-image-pull-policy", "Job", "keygen", "", pinned},
	{"container-image-pull-policy", "StatefulSet", "etcd", "", pinned},
	{"container-image-pull-policy", "Deployment", "scheduler", "", pinned},
	{"container-image-pull-policy", "StatefulSet", "rendezvous", "", pinned},
	{"container-image-pull-policy", "Deployment", "rendezvous", "", pinned},
	{"container-security-context-readonlyrootfilesystem", "Job", "worker", "", writes},
	{"container-security-context-readonlyrootfilesystem", "Job", "scheduler", "", writes},
	{"container-security-context-readonlyrootfilesystem", "Job", "server", "", writes},
	{"container-security-context-readonlyrootfilesystem", "Pod", "worker", "", writes},
	{"container-ephemeral-storage-request-and-limit", "Job", "worker", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Job", "scheduler", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Job", "server", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Pod", "worker", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Job", "prefetch", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Job", "keygen", "", noDisk},
	{"container-ephemeral-storage-request-and-limit", "Job", "eval", "", noDisk}, // an author's own group
	{"pod-probes", "Pod", "worker", "", "Training serves nothing that could be probed, " +
		"and its Service publishes pods that are not ready, since they find each other while they start."},
	{"container-image-pull-policy", "Job", "eval", "", pinned},                       // an author's own group
	{"container-security-context-readonlyrootfilesystem", "Job", "eval", "", writes}, // likewise
	{"pod-networkpolicy", "Job", "worker", "network", "This author switched the policies off."},
	{"pod-networkpolicy", "Job", "worker", "gang-topology", "This author switched the policies off."},
	{"pod-networkpolicy", "Job", "worker", "gang-topology-kueue", "This author switched the policies off."},
	{"pod-networkpolicy", "Pod", "worker", "gang-topology-kueue", "This author switched the policies off."},
	{
		"container-security-context-user-group-id", "Job", "worker", "fabric",
		"IPC_LOCK, by which memory is registered with the adapters, is only root's.",
	},
	{
		"container-security-context-user-group-id", "Job", "worker", "real-megatron-gb200",
		"IPC_LOCK, by which memory is registered with the cards, is only root's, who is this image's user.",
	},
	{
		"container-security-context-user-group-id", "Job", "worker", "mpi-job-intel",
		"This author's image runs as root.",
	},
	{
		"container-security-context-user-group-id", "Job", "worker", "security",
		"This author's volumes belong to user 1000.",
	},
	{"pod-networkpolicy", "Job", "worker", "resources-none", "This author switched the policies off."},
	{
		"container-security-context-user-group-id", "Job", "worker", "resources-none",
		"This author wants the image's own user.",
	},
	{"container-resources", "Job", "worker", "resources-none", "This author asks for no CPU and no memory, " +
		"or for no limit."},
	{"container-resources", "Job", "worker", "resources-requests", "This author says one side of each amount, " +
		"and wants no other."},
	{
		"container-resources", "StatefulSet", "rendezvous", "roles-companion",
		"This author wants no limit for the companion.",
	},
	{"container-resources", "Job", "server", "roles-mxnet", "The sidecar is this author's own, and asks for nothing."},
}

const (
	noDisk = "A request keeps pods out of queues without quota for local disk, and a limit evicts a pod for the " +
		"models in its cache; spec.resources.ephemeralStorage is there for nodes whose disk is scarce."
	pinned = "Every image has a tag that stays what it is, or a digest: pulling again brings nothing but a " +
		"dependence on the registry at each restart."
	writes = "Training images write beside their code; spec.security.readOnlyRootFilesystem is there for those that " +
		"do not."
)

// finding is one complaint about one object.
type finding struct {
	file      string
	check     string
	kind      string
	name      string
	component string
	message   string
}

func (f finding) String() string {
	object := f.kind + "/" + f.name
	if f.component != "" {
		object += " (component " + f.component + ")"
	}
	return fmt.Sprintf("%s: %s: %s: %s", f.file, object, f.check, f.message)
}

func TestGolden(t *testing.T) {
	requireConformance(t)
	files, err := cases.Write(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	evaluators := newEvaluators(t)

	findings, checked, err := evaluators.conform(files)
	if err != nil {
		t.Fatal(err)
	}
	if checked == 0 {
		t.Errorf("kubeconform looked at no object in %d files", len(files))
	}
	for _, f := range findings {
		t.Error(f)
	}

	var critical []finding
	unscored := false
	for _, file := range files {
		found, err := evaluators.score(file)
		if err != nil {
			t.Error(err)
			unscored = true
		}
		critical = append(critical, found...)
	}
	open, stale := reconcile(critical, accepted)
	for _, f := range open {
		t.Errorf("critical: %v", f)
	}
	if unscored {
		return // a file that was not scored may be the one that needs a row
	}
	for _, a := range stale {
		t.Errorf("accepted row {%s %s %q} is stale: no case triggers it; remove it", a.check, a.kind, a.component)
	}
}

// TestEvaluatorsCatch shows that each evaluator still rejects what it is here to
// reject; a green TestGolden is worth nothing without it.
func TestEvaluatorsCatch(t *testing.T) {
	requireConformance(t)
	evaluators := newEvaluators(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}

	t.Run("the sample passes", func(t *testing.T) {
		file := write("sample", sample)
		findings, checked, err := evaluators.conform([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Count(sample, "\nkind: "); checked != want {
			t.Errorf("kubeconform looked at %d objects, want %d", checked, want)
		}
		for _, f := range findings {
			t.Error(f)
		}
		critical, err := evaluators.score(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range critical {
			t.Error(f)
		}
	})

	for _, tc := range []struct {
		name, old, new string
		kind, want     string // the kind found at fault, and a part of what is said
	}{
		{
			"unknown field", "  serviceName: demo\n", "  serviceName: demo\n  replicaz: 2\n",
			"StatefulSet", "'replicaz' not allowed",
		},
		{
			"unknown nested field", "runAsNonRoot: true\n", "runAsNonRoot: true\n          runAsNobody: true\n",
			"StatefulSet", "'runAsNobody' not allowed",
		},
		{
			"field of another kind", "  completionMode: Indexed\n", "  completionMode: Indexed\n  serviceName: demo\n",
			"Job", "'serviceName' not allowed",
		},
		{"wrong type", "  replicas: 2\n", "  replicas: \"2\"\n", "StatefulSet", "got string, want integer"},
		{"null", "  backoffLimit: 0\n", "  backoffLimit: null\n", "Job", "got null, want integer"},
		{"number over 32 bits", "  backoffLimit: 0\n", "  backoffLimit: 4294967296\n", "Job", "maximum"},
		{"number as a string value", "  RANKS: \"4\"\n", "  RANKS: 4\n", "ConfigMap", "got number, want string"},
		{
			"malformed quantity", "storage: 10Gi\n", "storage: 10 GB\n", "PersistentVolumeClaim",
			"does not match pattern",
		},
		{
			"missing required field", "  selector:\n    matchLabels: {app: demo}\n  template:\n", "  template:\n",
			"StatefulSet", "missing property 'selector'",
		},
		{"duplicate key", "  replicas: 2\n", "  replicas: 2\n  replicas: 2\n", "StatefulSet", "already set"},
		{
			"group without schemas", "apiVersion: storage.k8s.io/v1\n", "apiVersion: example.com/v1\n", "StorageClass",
			"could not find schema",
		},
		// kubeconform looks schemas up by the first label of the group alone.
		{
			"group with the first label of another", "apiVersion: storage.k8s.io/v1\n",
			"apiVersion: storage.example.com/v1\n", "StorageClass", "must be 'storage.k8s.io/v1'",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := write("mutated", mutate(t, tc.old, tc.new))
			findings, _, err := evaluators.conform([]string{file})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(findings, func(f finding) bool {
				return f.kind == tc.kind && strings.Contains(f.message, tc.want)
			}) {
				t.Errorf("kubeconform does not report %q of %s; it says %v", tc.want, tc.kind, findings)
			}
		})
	}

	for _, tc := range []struct {
		name, old, new string
		kind, want     string // the kind found at fault, and the check
	}{
		{
			"image without a tag", "image: example.com/demo:1.2.3\n        name: shard\n",
			"image: example.com/demo\n        name: shard\n", "StatefulSet", "container-image-tag",
		},
		// The Job carries an annotation that would excuse it.
		{
			"image tagged latest", "image: example.com/demo:1.2.3\n        name: worker\n",
			"image: example.com/demo:latest\n        name: worker\n", "Job", "container-image-tag",
		},
		{
			"headless Service missing", "  serviceName: demo\n", "  serviceName: other\n",
			"StatefulSet", "statefulset-has-servicename",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			critical, err := evaluators.score(write("mutated", mutate(t, tc.old, tc.new)))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(critical, func(f finding) bool {
				return f.kind == tc.kind && f.check == tc.want
			}) {
				t.Errorf("kube-score does not report %s of %s; it says %v", tc.want, tc.kind, critical)
			}
		})
	}
}

// TestAccepted keeps the table usable: a row without a reason, or a second row
// for the same thing, hides what is accepted instead of explaining it.
func TestAccepted(t *testing.T) {
	seen := map[[4]string]bool{}
	for _, a := range accepted {
		key := [4]string{a.check, a.kind, a.component, a.fixture}
		if a.check == "" || a.kind == "" {
			t.Errorf("row %q names no check or no kind", key)
		}
		if !strings.HasSuffix(a.reason, ".") || strings.Count(a.reason, " ") < 4 {
			t.Errorf("row %q needs a sentence for a reason, has %q", key, a.reason)
		}
		if seen[key] {
			t.Errorf("row %q is there twice", key)
		}
		seen[key] = true
	}
}

func TestReconcile(t *testing.T) {
	missing := finding{check: "pod-probes", kind: "Job", name: "a", component: "ranks"}
	other := finding{check: "pod-probes", kind: "Job", name: "b", component: "shards"}
	rows := []acceptance{
		{check: "pod-probes", kind: "Job", component: "ranks"},
		{check: "pod-probes", kind: "Job", component: "loader"},
	}
	open, stale := reconcile([]finding{missing, other}, rows)
	if !slices.Equal(open, []finding{other}) {
		t.Errorf("open = %v, want only %v", open, other)
	}
	if !slices.Equal(stale, rows[1:]) {
		t.Errorf("stale = %v, want only %v", stale, rows[1])
	}
}

func requireConformance(t *testing.T) {
	t.Helper()
	if os.Getenv("TEGEN_CONFORMANCE") != "1" {
		t.Skip("conformance compiles kubeconform and kube-score: set TEGEN_CONFORMANCE=1 or run make verify")
	}
}

// reconcile sets the critical findings against the accepted ones and returns the
// findings that remain and the rows that nothing triggered.
func reconcile(critical []finding, rows []acceptance) (open []finding, stale []acceptance) {
	used := make([]bool, len(rows))
	for _, f := range critical {
		i := slices.IndexFunc(rows, func(a acceptance) bool {
			return a.check == f.check && a.kind == f.kind && a.component == f.component &&
				(a.fixture == "" || a.fixture == filepath.Base(filepath.Dir(f.file)))
		})
		if i < 0 {
			open = append(open, f)
			continue
		}
		used[i] = true
	}
	for i, a := range rows {
		if !used[i] {
			stale = append(stale, a)
		}
	}
	return open, stale
}
