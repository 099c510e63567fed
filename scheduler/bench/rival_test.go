package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestContenderFlag(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program, config := write("scheduler", "", 0o700), write("config.yaml", stockConfig, 0o600)
	tiers := write("volcano.conf", "actions: allocate\n", 0o600)
	got, err := parseFlags([]string{
		"--contender", "Koordinator 1.8=" + program + "," + config + ",koordinator",
		"--contender", "volcano=" + program + "," + tiers + ",volcano",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []rival{
		{name: "Koordinator 1.8", program: program, config: config, dialect: "koordinator"},
		{name: "volcano", program: program, config: tiers, dialect: "volcano"},
	}
	if diff := cmp.Diff(want, got.rivals, cmp.AllowUnexported(rival{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	files := program + "," + config
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"a"}, "is not NAME=PROGRAM,CONFIG,DIALECT"},
		{[]string{files + ",kube"}, "is not NAME="}, // no name
		{[]string{"a=" + files}, "is not NAME="},
		{[]string{"a=" + files + ",kube,kube"}, "is not NAME="},
		{[]string{"=" + files + ",kube"}, "is no name"},
		{[]string{"a/b=" + files + ",kube"}, "is no name"},
		{[]string{"a|b=" + files + ",kube"}, "is no name"},
		{[]string{"a=" + files + ",kube", "a=" + files + ",kube"}, `two of the name "a"`},
		{[]string{"kube-scheduler=" + files + ",kube"}, `two of the name "kube-scheduler"`},
		{[]string{"a=" + files + ",yunikorn"}, "known are coscheduling, koordinator, kube, volcano"},
		{[]string{"a=" + files + ","}, `dialect "" is unknown`},
		{[]string{"a=" + dir + "/none," + config + ",kube"}, "a: looking for its program: stat " + dir + "/none"},
		{[]string{"a=," + config + ",kube"}, "a: looking for its program"},
		{[]string{"a=" + dir + "," + config + ",kube"}, dir + " is not a program"},
		{[]string{"a=" + config + "," + config + ",kube"}, config + " is not a program"},
		{[]string{"a=" + program + "," + dir + "/none,kube"}, "a: reading its configuration"},
		{[]string{"a=" + program + "," + dir + ",kube"}, "a: reading its configuration"},
		{[]string{"a=" + program + "," + tiers + ",kube"}, tiers + ": kind is <nil>"},
		{[]string{"a=" + program + "," + write("broken.yaml", "a: [", 0o600) + ",kube"}, "broken.yaml: "},
	} {
		var args []string
		for _, a := range tt.args {
			args = append(args, "--contender", a)
		}
		if _, err := parseFlags(args); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: got %v, want %q", tt.args, err, tt.says)
		}
	}
	_, err = parseFlags([]string{"--contender", "a=" + files + ",kube", "--only", "plain"})
	if err == nil || !strings.Contains(err.Error(), "a places gangs, which -only leaves out") {
		t.Errorf("a contender that would do nothing: got %v", err)
	}
}

// TestConfigured: of a configuration the election and the client are replaced, and all else stays.
func TestConfigured(t *testing.T) {
	text, profile, err := configured(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
leaderElection: {leaderElect: false, resourceName: theirs}
profiles:
- schedulerName: theirs
  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}]
- schedulerName: second
`, "/k")
	if err != nil {
		t.Fatal(err)
	}
	if profile != "theirs" {
		t.Errorf("its pods ask for %q", profile)
	}
	var got any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4.0,
		"leaderElection": map[string]any{
			"leaderElect": true, "leaseDuration": "1h", "renewDeadline": "30m", "retryPeriod": "500ms",
			"resourceLock": "leases", "resourceName": "bench", "resourceNamespace": "default",
		},
		"clientConnection": map[string]any{"kubeconfig": "/k", "qps": 5000.0, "burst": 10000.0},
		"profiles": []any{
			map[string]any{"schedulerName": "theirs", "pluginConfig": []any{
				map[string]any{"name": "Coscheduling", "args": map[string]any{"permitWaitingTimeSeconds": 10.0}},
			}},
			map[string]any{"schedulerName": "second"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, profile, err := configured(stockConfig, "/k"); err != nil || profile != "default-scheduler" {
		t.Errorf("without profiles: %q, %v", profile, err)
	}
	for _, text := range []string{"", "[]", "kind: Policy", "kind: KubeSchedulerConfiguration\nprofiles: [a]"} {
		if _, _, err := configured(text, "/k"); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestDialects: in every dialect a pod says its gang once, and the group, where there is one, is of a kind that is
// defined.
func TestDialects(t *testing.T) {
	for name, want := range map[string]struct {
		member string // of labels, annotations and schedulingGroup
		group  string
	}{
		koordinatorDialect: {member: `{"gang.scheduling.koordinator.sh/min-available":"100",` +
			`"gang.scheduling.koordinator.sh/name":"g"}`},
		coschedulingDialect: {
			`{"scheduling.x-k8s.io/pod-group":"g"}`, `{"minMember":100,"scheduleTimeoutSeconds":600}`,
		},
		volcanoDialect: {`{"scheduling.k8s.io/group-name":"g"}`, `{"minMember":100,"queue":"default"}`},
		kubeDialect:    {`{"podGroupName":"g"}`, `{"schedulingPolicy":{"gang":{"minCount":100}}}`},
	} {
		d, ok := dialects[name]
		if !ok {
			t.Fatalf("no dialect %s", name)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		d.member(pod, "g", 100)
		var said []any
		if len(pod.Labels) > 0 {
			said = append(said, pod.Labels)
		}
		if len(pod.Annotations) > 0 {
			said = append(said, pod.Annotations)
		}
		if pod.Spec.SchedulingGroup != nil {
			said = append(said, pod.Spec.SchedulingGroup)
		}
		if len(said) != 1 || asJSON(t, said[0]) != want.member {
			t.Errorf("%s: a member says %s, want %s", name, asJSON(t, said), want.member)
		}
		if (d.group == nil) != (want.group == "") {
			t.Fatalf("%s: want the group %q", name, want.group)
		}
		if d.group == nil {
			continue
		}
		if got := asJSON(t, d.group(100)); got != want.group {
			t.Errorf("%s: the group is %s, want %s", name, got, want.group)
		}
		of := "PodGroup " + d.of.Resource + "." + d.of.Group + "/" + d.of.Version
		if name != kubeDialect && !slices.Contains(d.definitions, of) {
			t.Errorf("%s: %s is not among its definitions %q", name, of, d.definitions)
		}
	}
	if len(dialects) != 4 {
		t.Errorf("there are %d dialects", len(dialects))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestDefinition(t *testing.T) {
	for _, tt := range []struct{ words, name, group, plural, version, scope string }{
		{
			"Queue queues.scheduling.volcano.sh/v1beta1", "queues.scheduling.volcano.sh", "scheduling.volcano.sh",
			"queues", "v1beta1", "Cluster",
		},
		{
			"PodGroup podgroups.scheduling.x-k8s.io/v1alpha1", "podgroups.scheduling.x-k8s.io", "scheduling.x-k8s.io",
			"podgroups", "v1alpha1", "Namespaced",
		},
	} {
		crd := definition(tt.words)
		at := func(path ...string) string {
			s, _, err := unstructured.NestedString(crd.Object, path...)
			if err != nil {
				t.Error(err)
			}
			return s
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if len(versions) != 1 {
			t.Fatalf("%s: versions are %v", tt.words, versions)
		}
		version, _ := versions[0].(map[string]any)
		got := []any{
			crd.GetName(), at("spec", "group"), at("spec", "names", "plural"), version["name"], at("spec", "scope"),
		}
		want := []any{tt.name, tt.group, tt.plural, tt.version, tt.scope}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.words, diff)
		}
	}
}
