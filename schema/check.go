package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// checker walks a document along its shape and collects every mistake. Each place yields at most one message, and no
// mistake hides another.
type checker struct {
	errs Errors
	bad  map[*node]bool // values that cannot be decoded
}

func (c *checker) fail(at position, p *place, rule, format string, args ...any) {
	c.errs = append(c.errs, Error{File: at.file, Line: at.line, Col: at.col, Path: p.String(), Rule: rule, Msg: fmt.Sprintf(format, args...)})
}

// check reports what s does not allow in n. parent is where a missing field is reported.
func (c *checker) check(n *node, s *shape, p *place, parent position) {
	before := len(c.errs)
	switch {
	case n.kind == unknownKind:
		c.markInvalid(n)
		return
	case n.kind == nullKind:
		c.fail(n.at, p, "no-value", "has no value: write one")
	case s.scalar != nil:
		c.scalar(n, s.scalar, p)
	case n.kind != s.kind:
		c.fail(n.at, p, "type", "must be %s, not %s", kindWords[s.kind], kindWords[n.kind])
	case s.kind == listKind:
		for i, item := range n.items {
			c.check(item, s.elem, &place{parent: p, item: true, index: i}, item.at)
		}
	case s.open:
		c.values(n, p)
	default:
		c.mapping(n, s, p, parent)
		return // its fields speak for themselves
	}
	if len(c.errs) > before && s.kind != listKind || n.kind != s.kind && s.scalar == nil {
		c.markInvalid(n)
	}
}

func (c *checker) markInvalid(n *node) {
	if c.bad == nil {
		c.bad = map[*node]bool{}
	}
	c.bad[n] = true
}

// without drops what cannot be decoded from a tree.
func (n *node) without(bad map[*node]bool) {
	n.fields = slices.DeleteFunc(n.fields, func(e entry) bool { return bad[e.value] })
	n.items = slices.DeleteFunc(n.items, func(item *node) bool { return bad[item] })
	for _, e := range n.fields {
		e.value.without(bad)
	}
	for _, item := range n.items {
		item.without(bad)
	}
}

// values requires a value of every field of a mapping that has no schema.
func (c *checker) values(n *node, p *place) {
	if n.kind == nullKind {
		c.fail(n.at, p, "no-value", "has no value: write one")
	}
	for _, e := range n.fields {
		c.values(e.value, &place{parent: p, name: e.key})
	}
	for i, item := range n.items {
		c.values(item, &place{parent: p, item: true, index: i})
	}
}

func (c *checker) mapping(n *node, s *shape, p *place, parent position) {
	for _, e := range n.fields {
		at := &place{parent: p, name: e.key}
		if s.elem != nil {
			c.check(e.value, s.elem, at, e.at)
			continue
		}
		f := s.field(e.key)
		if f == nil {
			c.fail(e.at, at, "unknown-field", "unknown field%s", c.known(e.key, s, at))
			continue
		}
		c.check(e.value, f.shape, at, e.at)
	}
	for _, f := range s.fields {
		if f.required && n.entry(f.name) == nil {
			c.fail(parent, &place{parent: p, name: f.name}, "required", "required field is missing%s", sentence(f.doc))
		}
	}
	c.oneOf(n, s, p, parent)
}

func (c *checker) oneOf(n *node, s *shape, p *place, parent position) {
	var set []entry
	for _, e := range n.fields {
		if slices.Contains(s.oneOf, e.key) {
			set = append(set, e)
		}
	}
	switch {
	case len(set) > 1:
		c.fail(set[1].at, &place{parent: p, name: set[1].key}, "one-of", "only one of %s may be given; %s stands on line %d",
			strings.Join(s.oneOf, ", "), set[0].key, set[0].at.line)
	case len(set) == 0 && s.exact:
		c.fail(parent, p, "one-of", "one of %s is needed", strings.Join(s.oneOf, ", "))
	}
}

// known ends the message about an unknown field with what could have been meant.
func (c *checker) known(name string, s *shape, p *place) string {
	at, here := inJob(p.String())
	if path := standsAt[at]; path != "" {
		return "; it stands at " + here.Replace(path)
	}
	names := s.names()
	if hint := suggest(name, names); hint != "" {
		return hint
	}
	if path := elsewhere(name); path != "" {
		return "; it stands at " + here.Replace(path)
	}
	if len(names) <= 12 {
		return "; known here: " + strings.Join(names, ", ")
	}
	return "; 'tegen explain spec' lists the fields"
}

// inJob is where a job has what an environment says to all jobs, and the words for that as the environment has it.
func inJob(path string) (string, *strings.Replacer) {
	for _, part := range []string{"spec.defaults", "spec.overrides"} {
		if field, ok := strings.CutPrefix(path, part+"."); ok {
			return "spec." + field, strings.NewReplacer("spec.", part+".", "spec itself", part+" itself")
		}
	}
	return path, strings.NewReplacer()
}

// standsAt is where a job says what somebody may look for at another place. The first field of that name would mislead.
var standsAt = map[string]string{
	"spec.roles.worker":     "spec itself: image, workingDir, resources, placement, podTemplate",
	"spec.servers.cpu":      "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.memory":   "spec.roles.server.resources, and the scheduler's at spec.roles.scheduler.resources",
	"spec.servers.image":    "spec.roles.server, and the scheduler's at spec.roles.scheduler",
	"spec.roles.etcd.image": "spec.images.etcd, or spec.images.etcdV2 for backends etcd and etcd-v2",

	"spec.rendezvous.etcd.cpu":         "spec.roles.etcd.resources",
	"spec.rendezvous.etcd.memory":      "spec.roles.etcd.resources",
	"spec.rendezvous.companion.cpu":    "spec.roles.companion.resources",
	"spec.rendezvous.companion.memory": "spec.roles.companion.resources",
	"spec.roles.companion.image":       "spec.images.rendezvous",
	"spec.roles.helper.image":          "spec.images",
}

// elsewhere returns the path of a job's field that has a name, the one nearest to the top and first in job.cue; "" where
// there is none.
func elsewhere(name string) string {
	type level struct {
		s    *shape
		path string
	}
	for queue := []level{{jobShape().field("spec").shape, "spec"}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.s.kind == listKind {
			at.s = at.s.elem
		}
		for _, f := range at.s.fields {
			path := at.path + "." + f.name
			if strings.EqualFold(f.name, name) {
				return path
			}
			queue = append(queue, level{f.shape, path})
		}
	}
	return ""
}

func (c *checker) scalar(n *node, s *scalar, p *place) {
	if s.kindFits(n.kind) && s.allows(n) {
		return
	}
	enum := s.enum()
	switch {
	case (n.kind == listKind || n.kind == mapKind) && s.kinds == cue.StringKind && enum == nil:
		c.fail(n.at, p, "type", "must be a string, not %s", kindWords[n.kind])
	case n.kind == listKind || n.kind == mapKind:
		c.fail(n.at, p, "type", "must be %s, not %s", s.words(), kindWords[n.kind])
	case !s.kindFits(n.kind) && enum == nil && s.kindFits(stringKind) && s.allows(&node{kind: stringKind, text: n.text}):
		c.fail(n.at, p, "type", "must be a string, not %s: write %q with quotes", kindWords[n.kind], n.text)
	default:
		rule, hint := "format", ""
		if enum != nil {
			rule = "enum"
			if n.kind == stringKind {
				hint = suggest(n.text, enum)
			}
		} else if s.format != "" {
			rule = s.format
		} else if n.kind == intKind {
			rule = "range"
		}
		c.fail(n.at, p, rule, "must be %s, not %s%s", s.words(), n.show(), hint)
	}
}

// credentials are what a URL may carry before its host.
var credentials = regexp.MustCompile(`://[^/@]*@`)

// show prints a scalar for a message, cut where it is long, and without credentials: messages end in logs.
func (n *node) show() string {
	text := credentials.ReplaceAllString(n.text, "://***@")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "..."
	}
	if n.kind == stringKind {
		return fmt.Sprintf("%q", text)
	}
	return text
}

func sentence(doc string) string {
	if doc == "" {
		return ""
	}
	first, _, _ := strings.Cut(doc, ". ")
	return ": " + strings.TrimSuffix(first, ".")
}
