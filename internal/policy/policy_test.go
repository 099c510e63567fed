package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/golden"
)

// schemaAmount is a quantity in a type of its own, as package schema has.
type schemaAmount struct{ resource.Quantity }

// jobType stands for the type of a TrainingJob.
type jobType struct {
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace,omitempty"`
		Labels    map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Image   string   `json:"image"`
		Command []string `json:"command,omitempty"`
		Workers struct {
			Replicas int  `json:"replicas"`
			Min      *int `json:"min,omitempty"`
		} `json:"workers"`
		Suspend  bool            `json:"suspend,omitempty"`
		After    metav1.Duration `json:"after,omitempty"`
		Memory   schemaAmount    `json:"memory,omitempty"`
		Template json.RawMessage `json:"podTemplate,omitempty"`
		Patch    map[string]any  `json:"patch,omitempty"`
	} `json:"spec"`
}

var types = Types{
	Job: reflect.TypeFor[jobType](), Pod: reflect.TypeFor[corev1.PodTemplateSpec](),
	Object: func(kind string) []reflect.Type {
		if kind == "Service" {
			return []reflect.Type{reflect.TypeFor[corev1.Service]()}
		}
		return nil
	},
	Kinds: []string{"Service"},
}

func load(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Load([]Source{{Name: "p.cue", Text: []byte(text)}}, types)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func found(t *testing.T, violations []Violation, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, v := range violations {
		lines = append(lines, v.Path.String()+": "+v.String())
	}
	return strings.Join(lines, "\n")
}

const acme = `package policy
import ("list", "strings")
job: {
	metadata: namespace!: "team-a" | "team-b" @message("jobs run in team-a or team-b")
	spec: image!: =~"^registry\\.acme\\.com/"  @message("images come from registry.acme.com")
}
pod: {
	metadata: labels: team!: =~"^[a-z]+$"
	spec: {
		hostNetwork?: false @message("no host network")
		nodeName?:    _|_   @message("the scheduler chooses nodes")
		securityContext: runAsNonRoot!: true
		containers: [..._container] & list.MaxItems(2)
		volumes?: [...{hostPath?: _|_}]
		schedulerName?: strings.HasPrefix("tegen-")
	}
}
_container: resources: limits: {cpu!: <=32, memory!: <=64Gi}
object: Service: spec: type?: !="LoadBalancer"
`

// TestPod: every violation of a template is reported, each with its path and the position of the rule.
func TestPod(t *testing.T) {
	p := load(t, acme)
	violations, err := p.Pod(value(t, `{"spec": {
		"hostNetwork": true, "nodeName": "n1", "schedulerName": "default",
		"containers": [
			{"name": "a", "resources": {"limits": {"cpu": "96", "memory": "65536Mi"}}},
			{"name": "b", "resources": {"limits": {"cpu": 32, "memory": "64.5Gi"}}},
			{"name": "c"}],
		"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/"}}]}}`))
	const want = `metadata.labels.team: is required (p.cue:8:20)
spec.hostNetwork: no host network (p.cue:10:17)
spec.nodeName: the scheduler chooses nodes (p.cue:11:3)
spec.securityContext.runAsNonRoot: is required (p.cue:12:20)
spec.containers: must have at most 2 items, not a list of 3 (p.cue:13:33)
spec.containers[0].resources.limits.cpu: must be at most 32, not "96" (p.cue:18:39)
spec.containers[1].resources.limits.memory: must be at most 64Gi, not "64.5Gi" (p.cue:18:54)
spec.containers[2].resources.limits.cpu: is required (p.cue:18:33)
spec.containers[2].resources.limits.memory: is required (p.cue:18:45)
spec.volumes[1].hostPath: is not allowed (p.cue:14:18)
spec.schedulerName: must start with "tegen-", not "default" (p.cue:15:19)`
	if got := found(t, violations, err); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestJob(t *testing.T) {
	violations, err := load(t, acme).Job(value(t, `{"metadata": {"name": "a", "namespace": "team-c"},
		"spec": {"image": "docker.io/x:1", "workers": {"replicas": 1}}}`))
	const want = `metadata.namespace: jobs run in team-a or team-b (p.cue:4:24)
spec.image: images come from registry.acme.com (p.cue:5:16)`
	if got := found(t, violations, err); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestSpellings: quantities are compared as numbers, also in a type that embeds them, and a pointer to the zero value
// is set.
func TestSpellings(t *testing.T) {
	p := load(t, "job: spec: memory?: <=12Gi\n"+
		"pod: spec: containers: [...{securityContext: allowPrivilegeEscalation!: false}]\n")
	for memory, want := range map[string]bool{`"12288Mi"`: true, `"12Gi"`: true, `"12289Mi"`: false, `"none"`: false} {
		violations, err := p.Job(value(t, `{"spec": {"memory": `+memory+`}}`))
		if err != nil || (len(violations) == 0) != want {
			t.Errorf("%s: %v %v", memory, violations, err)
		}
	}
	no := false
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
	}}}}
	if violations, err := p.Pod(pod); err != nil || len(violations) > 0 {
		t.Errorf("%v %v", violations, err)
	}
	pod.Spec.Containers[0].SecurityContext = nil
	if violations, err := p.Pod(pod); err != nil || len(violations) != 1 {
		t.Errorf("%v %v", violations, err)
	}
}

// TestForbiddenNames: [C]: _|_ forbids the fields whose names match.
func TestForbiddenNames(t *testing.T) {
	p := load(t, `pod: metadata: labels?: [=~"^x/"]: _|_ @message("not ours")`)
	for labels, want := range map[string]string{
		`{"a": "b", "ax/": ""}`: "",
		`{"a": "b", "x/y": ""}`: `metadata.labels["x/y"]: not ours (p.cue:1:25)`,
	} {
		violations, err := p.Pod(value(t, `{"metadata": {"labels": `+labels+`}}`))
		if got := found(t, violations, err); got != want {
			t.Errorf("%s: got %q, want %q", labels, got, want)
		}
	}
}

func TestObject(t *testing.T) {
	p := load(t, acme)
	violations, err := p.Object("Service", "", value(t, `{"spec": {"type": "LoadBalancer"}}`))
	const want = `spec.type: must not be "LoadBalancer" (p.cue:19:31)`
	if got := found(t, violations, err); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	violations, err = p.Object("Job", "batch", value(t, `{"spec": {"type": "LoadBalancer"}}`))
	if got := found(t, violations, err); got != "" {
		t.Errorf("of another kind: %s", got)
	}
}

// TestGoldenRefused: what the package does not check, and what can never hold, is refused with its position. Each case
// of the file is a policy and its errors.
func TestGoldenRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	var made strings.Builder
	for one := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		policy, _, _ := strings.Cut("\n"+one, "\n> ")
		policy = strings.TrimPrefix(policy, "\n")
		_, err := Load([]Source{{Name: "p.cue", Text: []byte(policy)}}, types)
		if err == nil {
			t.Errorf("is accepted: %s", policy)
			continue
		}
		made.WriteString(policy + "\n> " + strings.ReplaceAll(err.Error(), "\n", "\n> ") + "\n\n")
	}
	golden.Open(t, "testdata").Compare(t, "refused.txt", []byte(made.String()))
}

// TestEmpty: a file without rules would check nothing.
func TestEmpty(t *testing.T) {
	for _, text := range []string{"", "package p", "// pod: {}"} {
		_, err := Load([]Source{{Name: "p.cue", Text: []byte(text)}}, types)
		const want = "p.cue:1:1: the file has no rules: write them below job, pod or object"
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestHostile: a few bytes do not make loading take long.
func TestHostile(t *testing.T) {
	var chain strings.Builder
	chain.WriteString("_a0: {a?: string}\n")
	for i := range 30 {
		n := string(rune('0'+i/10)) + string(rune('0'+i%10))
		last := "_a0"
		if i > 0 {
			last = "_b" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		}
		chain.WriteString("_b" + n + ": {x: " + last + ", y: " + last + "}\n")
	}
	chain.WriteString("job: spec: patch: _b29\n")
	var product []string
	for range 200 {
		product = append(product, `(=~"a"|=~"b"|=~"c")`)
	}
	for name, text := range map[string]string{
		"references": chain.String(),
		"depth":      "job: spec: patch: " + strings.Repeat("a: ", 5000) + "{}",
		"parens":     "job: spec: patch: a?: " + strings.Repeat("(", 5000) + "string" + strings.Repeat(")", 5000),
	} {
		if _, err := Load([]Source{{Name: name, Text: []byte(text)}}, types); err == nil ||
			!strings.Contains(err.Error(), "exceeds the limit") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if _, err := Load([]Source{{
		Name: "p.cue", Text: []byte("job: spec: image!: " + strings.Join(product, "&")),
	}}, types); err != nil {
		t.Error(err)
	}
	// Patterns times fields, and constants times alternatives, end too.
	var patterns, one, other strings.Builder
	for i := range 900 {
		fmt.Fprintf(&patterns, "pod: metadata: labels: {[=~\"^x%d\"]: string, l%d?: =~\"^[a-z]+$\"}\n", i, i)
		fmt.Fprintf(&one, "| \"a%d\"", i)
		fmt.Fprintf(&other, "| \"b%d\"", i)
	}
	constants := "job: spec: image!: (" + one.String()[2:] + ") & (" + other.String()[2:] + ")"
	if _, err := Load([]Source{{Name: "constants", Text: []byte(constants)}}, types); err == nil {
		t.Error("two disjunctions without a common value are accepted")
	}
	_, err := Load([]Source{{Name: "patterns", Text: []byte(patterns.String())}}, types)
	t.Logf("900 patterns and 900 fields: %v", err) // accepted or given up, as fast as the machine is
}

// BenchmarkLoad reads a policy of 60 rules.
func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString(acme)
	for _, field := range []string{"hostPID", "hostIPC", "shareProcessNamespace", "automountServiceAccountToken"} {
		text.WriteString("pod: spec: " + field + "?: false\n")
	}
	for i := range 42 {
		fmt.Fprintf(&text, "pod: metadata: labels: l%d?: =~\"^[a-z]+$\"\n", i)
	}
	for b.Loop() {
		if _, err := Load([]Source{{Name: "p.cue", Text: []byte(text.String())}}, types); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAlternativesChangeNothing: what regular fields fill in for alternatives of one rule is in no other rule's value.
func TestAlternativesChangeNothing(t *testing.T) {
	p := load(t, `job: spec: patch: {a?: {c: {d?: string}}} & ({x?: _|_} | {y!: 1})`)
	before := `{"spec":{"patch":{"a":{}}}}`
	v := value(t, before)
	var r report
	p.job.check(v, nil, &r)
	if after, err := json.Marshal(v); err != nil || string(after) != before {
		t.Errorf("checking changed the value to %s (%v)", after, err)
	}
}

// TestOldName: an object can have the account by its old name, and rules for the new one check it.
func TestOldName(t *testing.T) {
	p := load(t, `pod: spec: serviceAccountName!: "a"`)
	violations, err := p.Pod(value(t, `{"spec": {"serviceAccount": "b"}}`))
	want := `spec.serviceAccountName: must be "a", not "b" (p.cue:1:33)`
	if got := found(t, violations, err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if violations, err = p.Pod(value(t, `{"spec": {"serviceAccount": "a"}}`)); len(violations) > 0 || err != nil {
		t.Errorf("got %v, %v", violations, err)
	}
}
