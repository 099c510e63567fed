package operators

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/diff"
	"github.com/tegen-dev/tegen/internal/diff/cases"
)

// commits are what git says of one job, one after another: of the fields that a commit does not name the first counts.
var commits = []map[string]string{
	{}, // what runs
	{"image": "registry.example/resnet:1.1"},
	{"suspend": "true"},
	{"suspend": "true", "placement": "{tolerations: [{key: spot, operator: Exists}]}"},
	{"suspend": "true", "image": "registry.example/resnet:1.2"},
	{"suspend": "false"},
	{"command": "[python, other.py]"},
}

// asDiffSays has each commit say of a running job of a target what 'tegen diff' says of what lives: what it calls
// refused is refused, what restarts pods does, and what changes in place leaves them.
func asDiffSays(target string) func(p *place) {
	return func(p *place) {
		p.nodes(2, 8, "")
		for i, commit := range commits {
			p.commit(fmt.Sprintf("commit %d of %s, %v", i, target, commit), target, commit, i == 0)
		}
	}
}

func (p *place) commit(what, target string, fields map[string]string, first bool) {
	p.Helper()
	spec := map[string]string{"image": "registry.example/resnet:1.0", "command": "[python, train.py]"}
	for k, v := range fields {
		spec[k] = v
	}
	if target != "pytorchjob" {
		spec["hashedNames"] = "false"
	}
	text := "  target: " + target + "\n  gitops: true\n  workers: {replicas: 2}\n" +
		"  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}\n"
	for k, v := range spec {
		text += "  " + k + ": " + v + "\n"
	}
	objects := p.rendered("changing", text)
	if first {
		p.apply(objects...)
		p.running(2, p.namespace, workers)
		return
	}
	before := p.uids()
	var live, next []map[string]any
	for _, o := range objects {
		live, next = append(live, p.live(o).Object), append(next, o.Object)
	}
	report, err := diff.Compare(live, next, diff.Options{Minor: cases.Newest})
	if err != nil {
		p.Fatal(err)
	}
	refused := ""
	for _, o := range objects {
		if err := p.applyOne(o); apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			refused += err.Error() + "\n"
		} else if err != nil {
			p.Fatal(err)
		}
	}
	if (refused != "") != (report.Counts[diff.Refused] > 0) {
		p.Errorf("%s: diff says %+v, and the server %q", what, report.Jobs, refused)
	}
	p.Logf("%s: %s; the server refuses %q", what, report.Summary(), strings.TrimSpace(refused))
	if refused != "" {
		return // the rest of the commit is not for comparison: a reconciler would have stopped
	}
	switch {
	case report.Counts[diff.Restart] > 0:
		p.eventually("the pods to go: "+what, func() error { return left(before, p.uids(), 0) })
	case len(before) > 0:
		p.remains("the pods: "+what, func() error { return left(before, p.uids(), len(before)) })
	}
	if fields["suspend"] != "true" {
		p.running(2, p.namespace, workers)
	}
}

// uids are those of the workers that are not being deleted.
func (p *place) uids() map[types.UID]bool {
	p.Helper()
	pods, err := p.pods(p.namespace, workers)
	if err != nil {
		p.Fatal(err)
	}
	all := map[types.UID]bool{}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			all[pod.UID] = true
		}
	}
	return all
}

func left(before, now map[types.UID]bool, want int) error {
	n := 0
	for uid := range before {
		if now[uid] {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d of %d are left", n, len(before))
	}
	return nil
}
