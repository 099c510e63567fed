package runbook

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCluster(t *testing.T) {
	eks := func(groups string) string {
		return "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: lab, region: eu-west-1}\n" +
			groups
	}
	for _, c := range []struct{ name, text, want string }{
		{"kind", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nname: lab\n", "kind lab []"},
		{"kind without a name", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n", "kind kind []"},
		{"another program's", "kind: Cluster\napiVersion: cluster.x-k8s.io/v1beta1\n", "  []"},
		{"empty", "", "  []"},
		{
			"sizes", eks("managedNodeGroups: [{name: a, minSize: 1, desiredCapacity: 2, maxSize: 3}]"),
			"eksctl lab [a 1<=2<=3]",
		},
		{"no sizes", eks("managedNodeGroups: [{name: a}]"), "eksctl lab [a 2<=2<=2]"},
		{"the least alone", eks("nodeGroups: [{name: a, minSize: 3}]"), "eksctl lab [a 3<=3<=3]"},
		{
			"none now", eks("nodeGroups: [{name: a, minSize: 0, desiredCapacity: 0, maxSize: 3}]"),
			"eksctl lab [a 0<=0<=3]",
		},
		{
			"older taints", eks("nodeGroups: [{name: a, taints: {gpu: 'true:NoSchedule'}}]"),
			"eksctl lab [a 2<=2<=2 gpu=true:NoSchedule]",
		},
		{
			"taints", eks("nodeGroups: [{name: a, taints: [{key: gpu, value: \"true\", effect: NoSchedule}]}]"),
			"eksctl lab [a 2<=2<=2 gpu=true:NoSchedule]",
		},
		{"no YAML", "a: [", "reading cluster.yaml: "},
		{"sizes out of order", eks("nodeGroups: [{name: a, minSize: 3, desiredCapacity: 2}]"), "must be in this order"},
		{"a group's name", eks("nodeGroups: [{name: '$(id)'}]"), "the name of a node group must be letters"},
		{"no group's name", eks("nodeGroups: [{}]"), `not ""`},
		{"a kind's name", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nname: a b\n", `not "a b"`},
		{"a name like an option", strings.Replace(eks(""), "lab", "--force", 1), `not "--force"`},
		{"a region", strings.Replace(eks(""), "eu-west-1", "'a;b'", 1), "metadata.region must be letters"},
		{"a list", eks("managedNodeGroups: {a: b}"), "reading cluster.yaml: "},
	} {
		cluster, err := ReadCluster("cluster.yaml", []byte(c.text))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var groups []string
			for _, g := range cluster.groups {
				text := fmt.Sprintf("%s %d<=%d<=%d", g.Name, g.Least, g.Now, g.limit)
				for i := range g.node.Spec.Taints {
					text += " " + g.node.Spec.Taints[i].ToString()
				}
				groups = append(groups, text)
			}
			got = fmt.Sprintf("%s %s %v", cluster.Tool, cluster.Name, groups)
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestQuote: a shell gives back every word as it was.
func TestQuote(t *testing.T) {
	for _, word := range []string{
		"", "a", "a b", "it's", "'", `"`, `\`, "$HOME", "$(id)", "`id`", "a=b", "=a", "~", "~root", "{a,b}", "*", "?",
		"a;b", "a|b", "a&b", "#a", "!!", "é", "[a]", "-n", "a\tb", "<a>", "(a)",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' x "+quote(word)).Output()
		if err != nil || string(out) != "x|"+word+"|" {
			t.Errorf("%q is quoted as %s, and read as %q: %v", word, quote(word), out, err)
		}
	}
	for _, word := range []string{"deploy/a.yaml", "a=b,c=d", "--nodes", "1.2.3", "registry.example/a:1@sha256:0"} {
		if got := quote(word); got != word {
			t.Errorf("%s needs no quotes: %s", word, got)
		}
	}
	if got := file("-a"); got != "./-a" {
		t.Errorf("a file's name that looks like an option: %s", got)
	}
}

// TestWrap: lines are no wider than a document's, and code is not broken.
func TestWrap(t *testing.T) {
	text := strings.Repeat("word ", 22) + "`a b c d` end"
	want := strings.TrimSpace(strings.Repeat("word ", 22)) + "\n`a b c d` end"
	if diff := cmp.Diff(want, wrap(text)); diff != "" {
		t.Error(diff)
	}
	for _, c := range [][2]string{{"a", "`a`"}, {"a`b", "`` a`b ``"}} {
		if got := code(c[0]); got != c[1] {
			t.Errorf("code of %q is %q, want %q", c[0], got, c[1])
		}
	}
}
