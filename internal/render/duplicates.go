package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/schema"
)

// duplicates finds objects that two bundles both hold, or the controllers of their custom resources make: applied one
// after the other, each would undo the other. A controller makes a Service for each of thousands of pods. These are
// compared as ranges of numbers, and are never listed.
func duplicates(bundles []Bundle) error {
	o := owners{
		objects:  make(map[string]*schema.Summary, 6*len(bundles)),
		numbered: map[string][]numberedOwner{}, ranges: map[string][]rangeOwner{},
	}
	for _, b := range bundles {
		for _, set := range b.made {
			o.ranges[set.base] = append(o.ranges[set.base], rangeOwner{set, b.Summary})
		}
	}
	for _, b := range bundles {
		for _, id := range b.ids {
			o.object(id, b.Summary)
		}
	}
	for _, b := range bundles {
		for _, set := range b.made {
			o.services(set, b.Summary)
		}
	}
	return o.list.Err()
}

// owners knows which bundle has an object.
type owners struct {
	objects  map[string]*schema.Summary
	numbered map[string][]numberedOwner // objects whose names end in a number, by the name without it
	ranges   map[string][]rangeOwner    // Services of controllers, by the name without numbers
	list     finding.List
}

type numberedOwner struct {
	number int
	job    *schema.Summary
}

type rangeOwner struct {
	madeServices
	job *schema.Summary
}

// object enters an object of a job.
func (o *owners) object(id string, job *schema.Summary) {
	if first, ok := o.objects[id]; ok && first != job {
		o.report(id, first, job)
	}
	o.objects[id] = job
	dash := strings.LastIndexByte(id, '-')
	if dash < 0 || o.ranges[id[:dash]] == nil {
		return
	}
	if n, err := strconv.Atoi(id[dash+1:]); err == nil && strconv.Itoa(n) == id[dash+1:] {
		o.numbered[id[:dash]] = append(o.numbered[id[:dash]], numberedOwner{n, job})
	}
}

// services compares Services that a controller makes with all objects, and with those of other controllers.
func (o *owners) services(set madeServices, job *schema.Summary) {
	for _, other := range o.numbered[set.base] {
		if other.job != job && set.HasNumber(other.number) {
			o.report(fmt.Sprintf("%s-%d", set.base, other.number), job, other.job)
		}
	}
	for _, other := range o.ranges[set.base] {
		if other.job == job { // those that follow are reported with their own job
			return
		}
		from := max(set.First, other.First)
		if set.HasNumber(int(from)) && other.HasNumber(int(from)) {
			o.report(fmt.Sprintf("%s-%d", set.base, from), other.job, job)
		}
	}
}

func (o *owners) report(id string, first, second *schema.Summary) {
	advice := "give it another name in one of them, or name it there as existing"
	if strings.HasPrefix(id, objectID("Namespace", "", "")) {
		advice = "leave createNamespace out in one of them"
	}
	o.list = append(o.list, finding.Finding{
		Rule: "render/duplicate", Level: finding.Error,
		Message: fmt.Sprintf("%s would be rendered by job %q too (%s): %s", id, first.Name, first.Position(), advice),
	}.At(second.Position()))
}
