package structural

import (
	"sync"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// scalar is what a definition allows for one string, number or boolean.
type scalar struct {
	// known is asked when a value first comes by: few of a schema's fields occur in a document.
	known    func() *restriction
	generate func() (map[string]any, error) // its JSON Schema; nil where there is no CUE
}

// restriction is a scalar's definition as data, so that who has it needs no CUE.
type restriction struct {
	Kinds  kinds    `json:"kinds"`
	Enum   []string `json:"enum,omitempty"` // the only values, if they are listed
	Must   string   `json:"must"`           // ends a sentence that begins with "must be"
	Format string   `json:"format,omitempty"`
	Rule   *rule    `json:"rule,omitempty"` // nil for any value of its kinds

	parses func(text string) bool // of the format
	seen   sync.Map               // value to bool: documents repeat each other's values
}

// Enum returns the only values that may stand here, nil where they are not listed.
func (s *Schema) Enum() []string {
	if s.scalar == nil {
		return nil
	}
	return s.scalar.enum()
}

// IsScalar says whether one value stands here, and not a mapping or a list.
func (s *Schema) IsScalar() bool { return s.scalar != nil }

// Allows says whether a string may stand here.
func (s *Schema) Allows(text string) bool {
	return s.scalar != nil && s.scalar.allows(&Node{Kind: yamldoc.String, Text: text})
}

// enum returns the only values allowed, if they are listed.
func (s *scalar) enum() []string { return s.known().Enum }

// words end a sentence that begins with "must be".
func (s *scalar) words() string { return s.known().Must }

// kindFits says whether a YAML value is of a kind that the definition allows at all.
func (s *scalar) kindFits(k yamldoc.Kind) bool { return s.known().Kinds.has(k) }

// Refusal is the rule, such as reserved, by which the definition refuses a string that has the right form; "" where it
// does not.
func (s *Schema) Refusal(text string) string { return s.scalar.refusedBy(text) }

// KeyRefusal is Refusal for a key of a mapping of names to values.
func (s *Schema) KeyRefusal(key string) string { return s.keys.refusedBy(key) }

func (s *scalar) refusedBy(text string) string {
	n := &Node{Kind: yamldoc.String, Text: text}
	if m, found := s.refusal(n); found && !s.allows(n) {
		return m.Rule
	}
	return ""
}

// refusal is the message of the definition about a value that it does not accept, where it has one.
func (s *scalar) refusal(n *Node) (m message, found bool) {
	r := s.known()
	if r.Rule == nil || !r.Kinds.has(n.Kind) {
		return message{}, false
	}
	if m := r.Rule.refusal(value{n.Kind, n.Text}); m != nil {
		return *m, true
	}
	return message{}, false
}

// allows says whether the definition accepts the value.
func (s *scalar) allows(n *Node) bool {
	r := s.known()
	if r.Rule == nil {
		return true
	}
	v := value{n.Kind, n.Text}
	if known, ok := r.seen.Load(v); ok {
		return known.(bool)
	}
	ok := r.Rule.accepts(v) && (r.parses == nil || r.parses(n.Text))
	r.seen.Store(v, ok)
	return ok
}
