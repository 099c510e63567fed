package importer

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

var numbered = lazy.Regexp(`^(.+)-([0-9]+)$`)

// readPods reads bare pods whose names differ only by their number, as in the torchelastic tutorial.
func readPods(s *stream, first *object) (*draft, error) {
	m := numbered().FindStringSubmatch(first.name)
	if first.view().at("metadata", "ownerReferences").isSet() || isEtcd(first.view()) {
		return nil, errNotTraining
	}
	if m == nil {
		if newProgram(trainingContainer(first.view().at("spec"))).launcher != "" {
			return nil, errors.New("only pods whose names end in their number are read: end the name in -0, or make " +
				"it a Job, which replaces a pod that its node has lost")
		}
		return nil, errNotTraining
	}
	var pods []*object
	for _, o := range s.objects {
		if n := numbered().FindStringSubmatch(o.name); o.is("", "Pod") && n != nil && n[1] == m[1] &&
			sameNamespace(o.namespace, first.namespace) {
			pods = append(pods, o)
		}
	}
	slices.SortStableFunc(pods, func(a, b *object) int { return cmp.Compare(podNumber(a), podNumber(b)) })
	d := newDraft(s, pods[0], job.FrameworkTorchelastic, job.TargetPods, strings.TrimSuffix(m[1], "-worker"))
	for _, o := range pods[1:] {
		d.addWorkload(o)
		o.translated = pods[0].translated // what is taken from one is taken from all
	}
	at := pods[0].view()
	d.set("spec.workers.replicas", int64(len(pods)), at)
	d.set("spec.workers.firstIndex", podNumber(pods[0]), at.at("metadata", "name"))
	for _, gate := range at.at("spec", "schedulingGates").items() {
		if gate.at("name").text() == "tegen.dev/suspended" {
			d.set("spec.suspend", true, gate)
		}
	}
	d.seconds("spec.failure.deadline", at.at("spec", "activeDeadlineSeconds"))
	c := d.worker(at)
	d.torch(at.at("spec"), c, nil)
	d.switchOffExtras()
	return d, nil
}

func podNumber(o *object) int64 {
	n, err := strconv.ParseInt(numbered().FindStringSubmatch(o.name)[2], 10, 64)
	if err != nil { // digits too many for a number are no number of a pod
		return 0
	}
	return n
}
