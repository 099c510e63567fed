// Package gangcache is the state of all gangs: who belongs to which gang, who has a place, and whether a gang may
// start, must wait or must let go. It sees no cluster, no clock and no log: its caller tells it what happened and asks
// what follows, so that every rule stands in a table of its tests.
//
// A gang here is a set of pods of which at least a minimum is placed together or none is. Gangs may form a group, which
// is placed together or not at all.
package gangcache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefix of the annotations with which Koordinator declares gangs (koordinator, apis/extension/coscheduling.go).
const Prefix = "gang.scheduling.koordinator.sh/"

// The annotations, without their prefix. All values are strings.
const (
	Name        = "name"          // of the gang, unique in the namespace
	MinMembers  = "min-available" // pods that must be placed together; a number from 1
	TotalNumber = "total-number"  // pods that the gang will have; a number from the minimum, which it is by default
	ModeKey     = "mode"          // Strict or NonStrict
	GroupsKey   = "groups"        // JSON list of namespace/name: gangs that start together with this one
	WaitingTime = "waiting-time"  // Go duration that placed members wait for the others
	MatchPolicy = "match-policy"  // once-satisfied, waiting-and-running or only-waiting
)

var keys = []string{Name, MinMembers, TotalNumber, ModeKey, GroupsKey, WaitingTime, MatchPolicy, TopologyKey}

// Limits of what a pod may declare: far above any real gang, low enough that no number overflows and no list is walked
// for long.
const (
	MaxMembers = 100_000
	MaxGroups  = 64

	maxName = 253 // of an object, and so of a namespace/name that can be
)

// Mode says what becomes of a gang's placed members when one member finds no place.
type Mode string

// The modes of Koordinator.
const (
	Strict    Mode = "Strict"    // they let go at once
	NonStrict Mode = "NonStrict" // they keep their places until the waiting time is over
)

// Policy says which pods count towards the minimum.
type Policy string

// The match policies of Koordinator.
const (
	// OnceSatisfied counts placed ones; once the minimum was reached, later pods are on their own.
	OnceSatisfied     Policy = "once-satisfied"
	WaitingAndRunning Policy = "waiting-and-running" // placed and running ones, at any time
	OnlyWaiting       Policy = "only-waiting"        // placed ones that are not bound yet
)

// Key names a gang.
type Key struct {
	Namespace, Name string
	// Native gangs are PodGroups of the cluster's own API; others are declared by annotations.
	Native bool
}

// String is how users read it: namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// compare orders gangs by their names.
func compare(a, b Key) int {
	native := func(k Key) int {
		if k.Native {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), native(a)-native(b))
}

// Spec is what a gang asks for.
type Spec struct {
	Min, Total int
	Mode       Mode
	Policy     Policy
	Groups     []Key         // gangs that start together, this one among them, sorted; nil for this one alone
	Waiting    time.Duration // that placed members wait for the others
	Layers     []Layer       // in which the members gather; nil where each may be anywhere
}

// equal says whether two specs ask for the same.
func (s Spec) equal(other Spec) bool {
	return s.Min == other.Min && s.Total == other.Total && s.Mode == other.Mode && s.Policy == other.Policy &&
		s.Waiting == other.Waiting && slices.Equal(s.Groups, other.Groups) && slices.Equal(s.Layers, other.Layers)
}

// Declared says whether annotations declare a gang, well or badly: a pod with any of them is never placed as if it had
// none.
func Declared(annotations map[string]string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { _, ok := annotations[Prefix+k]; return ok })
}

// FromAnnotations reads what a pod in a namespace declares. Where the error is not nil the key is the best guess, and
// the gang must not be placed; the error says which annotation, its value and what it may be.
func FromAnnotations(namespace string, annotations map[string]string, waiting time.Duration) (Key, Spec, error) {
	r := reader{annotations: annotations}
	key := Key{Namespace: namespace, Name: annotations[Prefix+Name]}
	switch {
	case key.Name == "":
		r.fail(Name, "a gang needs a name that its pods share")
	case len(key.Name) > maxName:
		r.fail(Name, fmt.Sprintf("it must not be longer than %d characters", maxName))
	}
	s := Spec{Mode: Strict, Policy: OnceSatisfied, Waiting: waiting}
	s.Min = r.number(MinMembers, 0)
	s.Total = r.number(TotalNumber, s.Min)
	if r.err == nil && s.Total < s.Min {
		r.fail(TotalNumber, fmt.Sprintf("it must not be below %s, %d", MinMembers, s.Min))
	}
	s.Mode = Mode(r.word(ModeKey, string(s.Mode), string(Strict), string(NonStrict)))
	s.Policy = Policy(r.word(
		MatchPolicy, string(s.Policy), string(OnceSatisfied), string(WaitingAndRunning), string(OnlyWaiting),
	))
	s.Waiting = r.duration(WaitingTime, s.Waiting)
	s.Groups = r.groups(key)
	s.Layers = r.layers()
	return key, s, r.err
}

// reader reads annotations and keeps the first mistake.
type reader struct {
	annotations map[string]string
	err         error
}

func (r *reader) fail(key, why string) {
	if r.err != nil {
		return
	}
	const enough = 80 // of a value: every pod of the gang has the message in its events and its status
	value, cut := r.annotations[Prefix+key], ""
	if len(value) > enough {
		value, cut = strings.ToValidUTF8(value[:enough], ""), " and so on"
	}
	r.err = fmt.Errorf("annotation %s%s is %q%s: %s", Prefix, key, value, cut, why)
}

// number reads a count of pods; otherwise is returned where the annotation is absent, and 0 makes it required.
func (r *reader) number(key string, otherwise int) int {
	text, ok := r.annotations[Prefix+key]
	if !ok {
		if otherwise == 0 {
			r.fail(key, fmt.Sprintf("a gang needs a number of pods from 1 to %d", MaxMembers))
		}
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxMembers {
		r.fail(key, fmt.Sprintf("it must be a number from 1 to %d", MaxMembers))
		return otherwise
	}
	return n
}

func (r *reader) word(key, otherwise string, allowed ...string) string {
	text, ok := r.annotations[Prefix+key]
	switch {
	case !ok:
		return otherwise
	case !slices.Contains(allowed, text):
		r.fail(key, "it must be one of "+strings.Join(allowed, ", "))
		return otherwise
	}
	return text
}

func (r *reader) duration(key string, otherwise time.Duration) time.Duration {
	text, ok := r.annotations[Prefix+key]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.fail(key, `it must be a positive duration such as "10m" or "90s"`)
		return otherwise
	}
	return d
}

// groups reads the gangs that start together; the pod's own gang belongs to them whether named or not.
func (r *reader) groups(own Key) []Key {
	text, ok := r.annotations[Prefix+GroupsKey]
	if !ok {
		return nil
	}
	const shape = `it must be a JSON list of namespace/name such as ["team/gang-a","team/gang-b"]`
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		r.fail(GroupsKey, shape)
		return nil
	}
	if len(names) > MaxGroups {
		r.fail(GroupsKey, tooMany)
		return nil
	}
	group := []Key{own}
	for _, n := range names {
		namespace, name, ok := strings.Cut(n, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") || len(n) > 2*maxName {
			r.fail(GroupsKey, shape)
			return nil
		}
		group = append(group, Key{Namespace: namespace, Name: name})
	}
	slices.SortFunc(group, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	group = slices.Compact(group)
	switch {
	case len(group) == 1:
		return nil
	case len(group) > MaxGroups:
		r.fail(GroupsKey, tooMany)
		return nil
	}
	return group
}

var tooMany = fmt.Sprintf("at most %d gangs may start together", MaxGroups)
