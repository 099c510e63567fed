package gangcache

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const byDefault = 10 * time.Minute

func TestFromAnnotations(t *testing.T) {
	own := Key{Namespace: "team", Name: "g"}
	for _, c := range []struct {
		reason      string
		annotations map[string]string // without their prefix
		want        Spec
	}{
		{
			"what Koordinator does where nothing is said",
			map[string]string{Name: "g", MinMembers: "4"},
			Spec{Min: 4, Total: 4, Mode: Strict, Policy: OnceSatisfied, Waiting: byDefault},
		},
		{
			"every annotation is read",
			map[string]string{
				Name: "g", MinMembers: "2", TotalNumber: "5", ModeKey: "NonStrict", MatchPolicy: "waiting-and-running",
				WaitingTime: "90s",
				GroupsKey:   `["team/g","other/h"]`,
			},
			Spec{
				Min: 2, Total: 5, Mode: NonStrict, Policy: WaitingAndRunning, Waiting: 90 * time.Second,
				Groups: []Key{{Namespace: "other", Name: "h"}, own},
			},
		},
		{
			"the third policy",
			map[string]string{Name: "g", MinMembers: "1", MatchPolicy: "only-waiting"},
			Spec{Min: 1, Total: 1, Mode: Strict, Policy: OnlyWaiting, Waiting: byDefault},
		},
		{
			"the largest gang",
			map[string]string{Name: "g", MinMembers: "100000"},
			Spec{Min: 100000, Total: 100000, Mode: Strict, Policy: OnceSatisfied, Waiting: byDefault},
		},
		{
			"a group of the gang alone is none",
			map[string]string{Name: "g", MinMembers: "1", GroupsKey: `["team/g"]`},
			Spec{Min: 1, Total: 1, Mode: Strict, Policy: OnceSatisfied, Waiting: byDefault},
		},
		{
			"an empty group is none",
			map[string]string{Name: "g", MinMembers: "1", GroupsKey: `[]`},
			Spec{Min: 1, Total: 1, Mode: Strict, Policy: OnceSatisfied, Waiting: byDefault},
		},
		{
			"a gang belongs to its group whether named or not, and a name given twice is one gang",
			map[string]string{Name: "g", MinMembers: "1", GroupsKey: `["other/h","other/h"]`},
			Spec{
				Min: 1, Total: 1, Mode: Strict, Policy: OnceSatisfied, Waiting: byDefault,
				Groups: []Key{{Namespace: "other", Name: "h"}, own},
			},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			key, got, err := FromAnnotations("team", prefixed(c.annotations), byDefault)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if key != own {
				t.Errorf("key %v, want %v", key, own)
			}
		})
	}
}

func TestFromAnnotationsMalformed(t *testing.T) {
	const number = "it must be a number from 1 to 100000"
	const groups = `it must be a JSON list of namespace/name such as ["team/gang-a","team/gang-b"]`
	for _, c := range []struct{ reason, key, value, want string }{
		{"a word", MinMembers, "four", number},
		{"a float, as templates make of a number", MinMembers, "4.0", number},
		{"none at all", MinMembers, "0", number},
		{"less than none", MinMembers, "-1", number},
		{"a template that had nothing to fill in", MinMembers, "", number},
		{"more than any cluster, and the sums of it overflow", MinMembers, "1000000000", number},
		{"more than an int", MinMembers, "99999999999999999999", number},
		{"one above the limit", MinMembers, "100001", number},
		{"spaces", MinMembers, " 4", number},
		{"below the minimum, which is 4", TotalNumber, "3", "it must not be below min-available, 4"},
		{"a word", TotalNumber, "all", number},
		{"nothing", TotalNumber, "", number},
		{"an empty name is none that pods could share", Name, "", "a gang needs a name that its pods share"},
		{"another spelling", ModeKey, "strict", "it must be one of Strict, NonStrict"},
		{"nothing", ModeKey, "", "it must be one of Strict, NonStrict"},
		{"no such policy", MatchPolicy, "never", "it must be one of once-satisfied, waiting-and-running, only-waiting"},
		{"seconds without a unit", WaitingTime, "10", `it must be a positive duration such as "10m" or "90s"`},
		{"less than no time", WaitingTime, "-5s", `it must be a positive duration such as "10m" or "90s"`},
		{"no time", WaitingTime, "0s", `it must be a positive duration such as "10m" or "90s"`},
		{
			"longer than a duration can be", WaitingTime, "9999999999h",
			`it must be a positive duration such as "10m" or "90s"`,
		},
		{"YAML", GroupsKey, "- team/g", groups},
		{"nothing", GroupsKey, "", groups},
		{"numbers", GroupsKey, "[1]", groups},
		{"an object", GroupsKey, `{"team":"g"}`, groups},
		{"no namespace", GroupsKey, `["g"]`, groups},
		{"an empty namespace", GroupsKey, `["/g"]`, groups},
		{"an empty name", GroupsKey, `["team/"]`, groups},
		{"three parts", GroupsKey, `["team/g/0"]`, groups},
		{"more than may start together", GroupsKey, names(65), "at most 64 gangs may start together"},
		{
			"as many as may start together, and the gang itself", GroupsKey, names(64),
			"at most 64 gangs may start together",
		},
		{"longer than any name", Name, strings.Repeat("g", 254), "it must not be longer than 253 characters"},
		{
			"a group of a gang that cannot be", GroupsKey,
			`["` + strings.Repeat("g", 300) + "/" + strings.Repeat("g", 300) + `"]`, groups,
		},
	} {
		t.Run(fmt.Sprintf("%s %.20q: %s", c.key, c.value, c.reason), func(t *testing.T) {
			annotations := map[string]string{Name: "g", MinMembers: "4", c.key: c.value}
			_, _, err := FromAnnotations("team", prefixed(annotations), byDefault)
			value := fmt.Sprintf("%q", c.value)
			if len(c.value) > 80 { // a message is for people
				value = fmt.Sprintf("%q and so on", c.value[:80])
			}
			want := fmt.Sprintf("annotation gang.scheduling.koordinator.sh/%s is %s: %s", c.key, value, c.want)
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if !Declared(prefixed(annotations)) {
				t.Error("the pod would be placed as if it had no gang")
			}
		})
	}
}

func TestFromAnnotationsMissing(t *testing.T) {
	for _, c := range []struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		{
			"a name alone",
			map[string]string{Name: "g"},
			`annotation gang.scheduling.koordinator.sh/min-available is "": ` +
				`a gang needs a number of pods from 1 to 100000`,
		},
		{
			"a total is no minimum",
			map[string]string{Name: "g", TotalNumber: "4"},
			`annotation gang.scheduling.koordinator.sh/min-available is "": ` +
				`a gang needs a number of pods from 1 to 100000`,
		},
		{
			"no name",
			map[string]string{MinMembers: "4"},
			`annotation gang.scheduling.koordinator.sh/name is "": a gang needs a name that its pods share`,
		},
		{
			"of two errors the first is reported",
			map[string]string{ModeKey: "?", WaitingTime: "?"},
			`annotation gang.scheduling.koordinator.sh/name is "": a gang needs a name that its pods share`,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			_, _, err := FromAnnotations("team", prefixed(c.annotations), byDefault)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDeclared(t *testing.T) {
	for _, c := range []struct {
		reason      string
		annotations map[string]string
		want        bool
	}{
		{"most pods have none", nil, false},
		{
			"other annotations, Koordinator's among them, declare no gang",
			map[string]string{"gang.scheduling.koordinator.sh/timeout": "x", Name: "g"},
			false,
		},
		{
			"a pod with a part of a declaration must not be placed as if it had none",
			prefixed(map[string]string{GroupsKey: ""}), true,
		},
	} {
		if got := Declared(c.annotations); got != c.want {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}

func FuzzFromAnnotations(f *testing.F) {
	f.Add("team", "g", "2", "5", "NonStrict", "only-waiting", "90s", `["team/g","other/h"]`,
		`{"gatherStrategy":[{"layer":"rack","strategy":"MustGather"},{"layer":"zone","strategy":"PreferGather"}]}`)
	f.Add("team", "g", "1", "", "", "", "", "", "")
	f.Add("a", "", "1000000000", "-1", "strict", "?", "1e9h", `["a/b","a/b","a-b/c",""]`, `{"gatherStrategy":null}`)
	f.Add("", "x/y", "+1", "01", "Strict", "once-satisfied", "1ns", `null`, `{}{}`)
	f.Fuzz(func(t *testing.T, namespace, name, minimum, total, mode, policy, waiting, groups, topology string) {
		annotations := map[string]string{}
		for key, value := range map[string]string{
			Name: name, MinMembers: minimum, TotalNumber: total, ModeKey: mode, MatchPolicy: policy,
			WaitingTime: waiting, GroupsKey: groups, TopologyKey: topology,
		} {
			if value != "" {
				annotations[key] = value
			}
		}
		key, s, err := FromAnnotations(namespace, prefixed(annotations), byDefault)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "annotation "+Prefix) {
				t.Errorf("the error does not say which annotation: %v", err)
			}
			return
		}
		if s.Min < 1 || s.Min > s.Total || s.Total > MaxMembers || s.Waiting <= 0 || key.Name == "" || key.Native {
			t.Errorf("%v: %+v", key, s)
		}
		if s.Mode != Strict && s.Mode != NonStrict || !slices.Contains(
			[]Policy{OnceSatisfied, WaitingAndRunning, OnlyWaiting}, s.Policy,
		) {
			t.Errorf("%v: %+v", key, s)
		}
		if len(s.Layers) > MaxLayers || topology != "" && len(s.Layers) == 0 ||
			slices.ContainsFunc(s.Layers, func(l Layer) bool { return l.Label == "" || len(l.Label) > maxLabel }) {
			t.Errorf("layers of %v: %v", key, s.Layers)
		}
		if len(s.Groups) == 0 {
			return
		}
		inOrder := func(a, b Key) int { return strings.Compare(a.String(), b.String()) }
		if len(s.Groups) == 1 || len(s.Groups) > MaxGroups || !slices.IsSortedFunc(s.Groups, inOrder) ||
			!slices.Contains(s.Groups, key) ||
			len(slices.Compact(slices.Clone(s.Groups))) != len(s.Groups) {
			t.Errorf("groups of %v: %v", key, s.Groups)
		}
	})
}

func prefixed(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		out[Prefix+k] = v
	}
	return out
}

// names is the annotation of a group of n gangs.
func names(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("other/g%d", i))
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(text)
}
