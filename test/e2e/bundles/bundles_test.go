// Package bundles applies every case of the golden files to a real API server, which
// tells what comparing files and reading schemas cannot: that each object is
// accepted as it is printed, that applying a bundle again changes nothing, and
// that namespaces enforcing the restricted Pod Security Standard admit its pods.
//
// The server takes one bundle after the other, each on a cluster that holds
// nothing of another but, for some seconds, a namespace that is empty and going:
// cases share namespaces and names, so that two at a time would hide what a
// bundle fails to bring along, and collide. Objects are
// really applied, in the order of their file and one by one, as kubectl does;
// only what does not depend on an order runs in parallel. No controllers of
// workloads run: they would write into the objects between two applies.
package bundles

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/upstream"
)

const (
	root = "../../.."
	// ownCRDs are the definitions that tegen brings along.
	ownCRDs = root + "/overlays/crds"
)

// Pod Security Standards, the strictest first.
const (
	restricted = "restricted"
	baseline   = "baseline"
	privileged = "privileged"
)

// unrestricted are the cases whose pods a restricted namespace refuses, with
// the strictest standard that admits them. A row whose pods would be admitted
// by a stricter one fails.
var unrestricted = map[string]struct{ standard, reason string }{
	"bytescheduler-host-network": {privileged, "Its author asks for the node's network, " +
		"which is for the hardware that no pod network reaches."},
	"fabric":           {privileged, "Its nodes limit locked memory, which IPC_LOCK alone lifts."},
	"groups-vcjob-ssh": {baseline, "Its image's own sshd runs as root, with the keys of Volcano's plugin."},
	"mpi-job-intel":    {privileged, "Its author asks for the node's network, and for root."},
	"real-jax-multislice-tpu": {privileged, "Its author asks for the node's network, and for the TPUs' devices " +
		"without a plugin's rights."},
	"real-megatron-gb200":        {privileged, "Its nodes limit locked memory, which IPC_LOCK alone lifts."},
	"real-nccl-tests-infiniband": {privileged, "Its nodes limit locked memory, which IPC_LOCK alone lifts."},
	"real-rccl-mi300x":           {privileged, "Its nodes limit locked memory, which IPC_LOCK alone lifts."},
	"resources-none": {baseline, "Its author wants the image's own user, and no security context where " +
		"nothing restricts the namespace."},
}

// unserved are API versions that this control plane does not have.
var unserved = map[schema.GroupVersion]string{
	{Group: "scheduling.k8s.io", Version: "v1beta1"}: "Kubernetes 1.37 has it; the newest control plane that can be " +
		"built here is of 1.36.",
}

// writtenTwice are kinds of which the server of this release writes an object
// once more when it is applied for the second time, whatever it holds, and then
// no more. Nothing but the resourceVersion can be seen to differ.
var writtenTwice = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Group: "scheduling.k8s.io", Kind: "PodGroup"},
}

// options switch on what goldens use of Kubernetes' alpha features, and those
// controllers alone that make and end things beside the objects of bundles.
var options = cluster.Options{
	NoScheduler: true,
	Gates:       map[string]bool{"GenericWorkload": true, "GangScheduling": true},
	APIs:        []string{"scheduling.k8s.io/v1alpha2"},
	Args: map[string][]string{"kube-controller-manager": {"--controllers=" + strings.Join([]string{
		"serviceaccount-controller", "namespace-controller",
		"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
		"podgroup-protection-controller",
	}, ",")}},
}

func TestBundles(t *testing.T) {
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
	all, err := readBundles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, all)
	t.Run("catches", s.catches)
	standards := []string{restricted, baseline, privileged}
	slices.SortStableFunc(all, func(a, b *bundle) int {
		return slices.Index(standards, a.standard()) - slices.Index(standards, b.standard())
	})
	for len(all) > 0 {
		var b *bundle
		b, all = s.next(t, all)
		t.Run(b.name(), func(t *testing.T) { s.hold(t, b) })
	}
	s.awaitGone(t)
	if n := len(s.skipped[upstream.ErrAbsent.Error()]); n > 0 {
		t.Run("custom resources of other projects", func(t *testing.T) {
			upstream.Absent(t, fmt.Errorf("%d were not applied: %w", n, upstream.ErrAbsent))
		})
	}
	for gv, reason := range unserved {
		if s.skipped[reason] == nil {
			t.Errorf("no case is of %s any more: its row in unserved is stale", gv)
		}
	}
	if s.counts.alone == 0 {
		t.Error("no case of an overlay has bare pods: nothing shows that Flux can apply them")
	}
	closing := s.counts.String() + s.unapplied()
	if t.Failed() {
		closing = "but for the failures above: " + closing
	}
	t.Log(closing)
}

// TestRows keeps the reasons from becoming empty words, and rows from outliving their cases.
func TestRows(t *testing.T) {
	all, err := readBundles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	reasons := slices.Collect(maps.Values(unserved))
	for name, row := range unrestricted {
		reasons = append(reasons, row.reason)
		if row.standard != baseline && row.standard != privileged {
			t.Errorf("%s: %q is no standard below restricted", name, row.standard)
		}
		if !slices.ContainsFunc(all, func(b *bundle) bool { return b.testCase == name }) {
			t.Errorf("%s is no case", name)
		}
	}
	for _, reason := range reasons {
		if !strings.HasSuffix(reason, ".") || strings.Count(reason, " ") < 4 {
			t.Errorf("%q is no sentence for a reason", reason)
		}
	}
}

// hold is all that is asked of one bundle.
func (s *server) hold(t *testing.T, b *bundle) {
	ctx := t.Context()
	if err := s.prepare(ctx, b); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.remove(ctx, b); err != nil {
			t.Errorf("the cluster is not clean for the next bundle: %v", err)
		}
	}()
	s.tryAlone(t, b)
	applied := s.applyAll(t, b)
	inParallel(applied, func(a existing) {
		if err := s.applyAgain(ctx, a); err != nil {
			t.Errorf("%s: applying again: %v", a.object, err)
		}
	})
	s.admitAll(t, b)
	s.counts.cases[b.testCase] = true
	s.counts.bundles++
}

// counts are what the closing line says.
type counts struct {
	cases                    map[string]bool
	bundles, objects, custom int
	pods, unrestricted       int
	alone                    int // bare pods that were tried before their bundle
}

func (c *counts) String() string {
	return fmt.Sprintf("%d objects of %d bundles (%d cases) were accepted, %d of them custom resources, "+
		"and applied again without a change; "+
		"%d pods were admitted, %d of them not by the restricted standard",
		c.objects, c.bundles, len(c.cases), c.custom, c.pods, c.unrestricted)
}

// unapplied says what no API server has seen, and why.
func (s *server) unapplied() string {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(s.skipped)) {
		objects := s.skipped[reason]
		fmt.Fprintf(&b, "; %d were not applied (%s): %s", len(objects), strings.TrimSuffix(reason, "."),
			strings.Join(objects, ", "))
	}
	return b.String()
}
