package refs

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Link is one reference that resolves: in the set, to what a controller of the set makes, or to what an annotation
// (names.Expects) says that the cluster has.
type Link struct {
	From, To Object
	How      How
	Port     string // of an address, where it says one
}

// Object is one of the set, or one that a reference leads to.
type Object struct{ Kind, Namespace, Name string }

// How says what a reference is for.
type How string

// The ways.
const (
	Uses    How = "uses"     // a volume, a variable, an account, a claim: without it no pod starts
	Dials   How = "dials"    // an address in a command, an argument or a variable
	Named   How = "named by" // the Service by which its pods have names
	Selects How = "selects"  // labels of pods
	Joins   How = "joins"    // a gang
)

// Links returns the references of objs that resolve, sorted and each once. Those that do not are Check's.
func Links(objs []runtime.Object) []Link {
	c := &checker{index: newIndex(objs)}
	var all []Link
	c.follow = func(l Link) { all = append(all, l) }
	c.walk(objs)
	slices.SortFunc(all, func(a, b Link) int {
		return cmp.Or(a.From.compare(b.From), a.To.compare(b.To), cmp.Compare(a.How, b.How),
			cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(all)
}

func (i id) object() Object { return Object{i.kind, i.namespace, i.name} }

func (o Object) compare(b Object) int {
	return cmp.Or(cmp.Compare(o.Namespace, b.Namespace), cmp.Compare(o.Kind, b.Kind), cmp.Compare(o.Name, b.Name))
}

// link notes a reference for Links. An account or a Service of every cluster is of no interest.
func (c *checker) link(from *object, to id, how How, port string) {
	_, inSet := c.objects[to]
	if c.follow != nil && (inSet || c.makes(to) || from.expects(to)) {
		c.follow(Link{From: from.object(), To: to.object(), How: how, Port: port})
	}
}

// linkSelected notes the workloads whose pods a selector selects.
func (c *checker) linkSelected(from *object, sel *metav1.LabelSelector) {
	if c.follow == nil {
		return
	}
	for w := range c.selected(from.namespace, sel) {
		c.follow(Link{From: from.object(), To: w.object.object(), How: Selects})
	}
}
