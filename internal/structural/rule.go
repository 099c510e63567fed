package structural

import (
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// kinds are those of YAML values that a definition allows.
type kinds []yamldoc.Kind

func (ks kinds) has(k yamldoc.Kind) bool { return slices.Contains(ks, k) }

// rule is an expression of CUE about one value: all that is said holds. TestRules holds it against CUE itself.
type rule struct {
	Any     []*rule  `json:"any,omitempty"`
	All     []*rule  `json:"all,omitempty"`
	Not     *rule    `json:"not,omitempty"`
	Kinds   kinds    `json:"kinds,omitempty"`
	Is      *value   `json:"is,omitempty"`
	Match   string   `json:"match,omitempty"`   // a string in which this is found
	Without string   `json:"without,omitempty"` // a string in which this is not
	Least   *float64 `json:"least,omitempty"`
	Above   *float64 `json:"above,omitempty"`
	Most    *float64 `json:"most,omitempty"`
	Refusal *message `json:"refusal,omitempty"` // what is said where this part alone does not hold
}

// value is a scalar of a document.
type value struct {
	Kind yamldoc.Kind `json:"kind"`
	Text string       `json:"text"`
}

// number is the value of a number; one that Go cannot hold is read as a string.
func (v value) number() (float64, bool) {
	switch v.Kind {
	case yamldoc.Int:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return float64(n), err == nil
	case yamldoc.Float:
		n, err := strconv.ParseFloat(v.Text, 64)
		return n, err == nil
	}
	return 0, false
}

// accepts says whether the rule holds for a value.
func (r *rule) accepts(v value) bool {
	number, isNumber := v.number()
	if (v.Kind == yamldoc.Int || v.Kind == yamldoc.Float) && !isNumber {
		v.Kind = yamldoc.String
	}
	accepts := func(part *rule) bool { return part.accepts(v) }
	switch isText := v.Kind == yamldoc.String; {
	case r.Kinds != nil && !r.Kinds.has(v.Kind),
		r.Is != nil && *r.Is != v,
		r.Not != nil && r.Not.accepts(v),
		r.Any != nil && !slices.ContainsFunc(r.Any, accepts),
		slices.ContainsFunc(r.All, func(part *rule) bool { return !part.accepts(v) }),
		r.Match != "" && (!isText || !pattern(r.Match).MatchString(v.Text)),
		r.Without != "" && (!isText || pattern(r.Without).MatchString(v.Text)),
		(r.Least != nil || r.Above != nil || r.Most != nil) && !isNumber,
		r.Least != nil && number < *r.Least,
		r.Above != nil && number <= *r.Above,
		r.Most != nil && number > *r.Most:
		return false
	}
	return true
}

// refusal is the message of the only part of a conjunction that does not hold for a value; nil where a part without a
// message does not hold either.
func (r *rule) refusal(v value) *message {
	if r.Refusal != nil {
		text := v.Text
		if r.Without != "" {
			text = pattern(r.Without).FindString(text)
		}
		m := r.Refusal.about(text)
		return &m
	}
	var first *message
	for _, part := range r.All {
		if part.accepts(v) {
			continue
		}
		m := part.refusal(v)
		if m == nil {
			return nil
		}
		if first == nil {
			first = m
		}
	}
	return first
}

var patterns sync.Map // the text of a regular expression to it

func pattern(text string) *regexp.Regexp {
	if known, ok := patterns.Load(text); ok {
		return known.(*regexp.Regexp)
	}
	compiled := regexp.MustCompile(text) // CUE has compiled it before
	patterns.Store(text, compiled)
	return compiled
}
