// Package cases reads the table of changes that internal/diff is held to, and with it a real API server.
package cases

import (
	"fmt"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Newest is the minor version of Kubernetes of cases that name none: the one of test/cluster.
const Newest = 36

// Case is a change of one object.
type Case struct {
	Name    string            `json:"name"`
	Base    string            `json:"base"`
	First   map[string]any    `json:"first"`   // what it had at first, where it had another state before
	Before  map[string]any    `json:"before"`  // what it has besides its base
	With    []map[string]any  `json:"with"`    // objects beside it
	Bound   bool              `json:"bound"`   // the object is a claim, and has a volume
	Status  map[string]any    `json:"status"`  // what a dump says of it
	Set     map[string]any    `json:"set"`     // what the change sets, by path
	By      string            `json:"by"`      // what tries it, where no server alone can
	Delete  bool              `json:"delete"`  // the object goes
	Minor   int               `json:"minor"`   // of Kubernetes 1.x
	Class   string            `json:"class"`   // the worst
	Classes map[string]string `json:"classes"` // of paths that have another
	Pods    string            `json:"pods"`    // what becomes of its pods: kept, gone, some, or nothing is said

	base map[string]any
}

// Read reads a table.
func Read(text []byte) ([]*Case, error) {
	json, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	var table struct {
		Bases map[string]map[string]any `json:"bases"`
		Cases []*Case                   `json:"cases"`
	}
	strict, err := kjson.UnmarshalStrict(json, &table)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	for _, c := range table.Cases {
		if c.base = table.Bases[c.Base]; c.base == nil {
			return nil, fmt.Errorf("case %q: there is no base %q", c.Name, c.Base)
		}
		if c.Minor == 0 {
			c.Minor = Newest
		}
	}
	return table.Cases, nil
}

// Earlier is the object in the state that it had at first, nil where it had none but that of Old.
func (c *Case) Earlier() map[string]any {
	if c.First == nil {
		return nil
	}
	return changed(changed(c.base, c.Before), c.First)
}

// Old are the objects before the change.
func (c *Case) Old() []map[string]any {
	o := changed(c.base, c.Before)
	if c.Status != nil {
		o["status"] = c.Status
	}
	return append([]map[string]any{o}, c.With...)
}

// New are the objects after it.
func (c *Case) New() []map[string]any {
	if c.Delete {
		return c.With
	}
	return append([]map[string]any{changed(changed(c.base, c.Before), c.Set)}, c.With...)
}

// changed is a copy of an object with other values at some paths; a number is an index of a list.
func changed(object, values map[string]any) map[string]any {
	out := copied(object)
	for path, value := range values {
		steps := split(path)
		out = put(out, steps, copied(value)).(map[string]any)
	}
	return out.(map[string]any)
}

// split is a path's steps. Keys of labels and annotations are set with the mapping that they are in.
func split(path string) []string { return strings.Split(path, ".") }

func put(in any, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	if list, ok := in.([]any); ok {
		if i, err := strconv.Atoi(steps[0]); err == nil {
			for len(list) <= i {
				list = append(list, nil)
			}
			list[i] = put(list[i], steps[1:], value)
			return list
		}
	}
	m, _ := in.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	if len(steps) == 1 && value == nil {
		delete(m, steps[0])
		return m
	}
	m[steps[0]] = put(m[steps[0]], steps[1:], value)
	return m
}

func copied(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, value := range x {
			out[k] = copied(value)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, value := range x {
			out[i] = copied(value)
		}
		return out
	}
	return v
}
