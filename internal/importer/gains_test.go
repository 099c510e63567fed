package importer_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/importer"
)

// TestGains: the search finds what was put in, and not what a line tells of.
func TestGains(t *testing.T) {
	t.Parallel()
	const bare = "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: " +
		"pytorch, command: [python, t.py]}]}}}}}\n"
	const more = "kind: PyTorchJob\nspec: {runPolicy: {backoffLimit: 6}, pytorchReplicaSpecs: {Worker: {template: " +
		"{spec: {containers: [{name: pytorch, args: [t.py, --fast], command: [python]}]}}}}}\n"
	found := gains(t, bare, more, nil)
	want := []string{
		"spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].args[1]: --fast",
		"spec.runPolicy.backoffLimit: 6",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fromController := []importer.Note{{Verdict: importer.Added, Why: "runPolicy.backoffLimit 6"}}
	if found = gains(t, bare, more, fromController); len(found) != 1 {
		t.Errorf("a line tells of the limit: %v", found)
	}
}

// TestLostWords: a line about a program hides none of its words.
func TestLostWords(t *testing.T) {
	t.Parallel()
	translated := []importer.Note{{
		Field: "spec.command", Verdict: importer.Translated,
		Why: "of torchrun's options, --nnodes became a field",
	}}
	got := lostWords("spec.command[2]", "torchrun --nnodes=2 --fast t.py", "args: [t.py], torchrun", translated)
	if diff := cmp.Diff([]string{"--fast"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got = lostWords("spec.command[2]", "--fast", "", []importer.Note{{
		Field:   "spec.command",
		Verdict: importer.Changed,
	}}); got != nil {
		t.Errorf("what was changed is reported: %v", got)
	}
}

// gains are the values that jobs render in pods and policies, that their source has not under the same key, and of
// which no note tells. Like losses it compares no objects: the two look at the same from both sides.
func gains(t *testing.T, source, rendered string, notes []importer.Note) (out []string) {
	t.Helper()
	had := map[string]bool{}
	for _, object := range documents(t, source) {
		walk(object, "", "", func(_, key, value string) { had[wordKey(key)+"="+amount(value)] = true })
	}
	for _, object := range documents(t, rendered) {
		if reportsObject(notes, object) {
			continue
		}
		walk(object, "", "", func(path, key, value string) {
			same := had[wordKey(key)+"="+amount(value)] || wordKey(key) == "word" && strings.Contains(source, value)
			if within := inPod.FindString(path); within != "" && !same && !changesNothing(path, value) &&
				!reportsGain(notes, path, value) {
				out = append(out, path+": "+value)
			}
		})
	}
	return out
}

// reportsObject says whether a line tells of a whole object that is rendered beyond the source.
func reportsObject(notes []importer.Note, object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	name := fmt.Sprintf("%v %v", object["kind"], metadata["name"])
	return slices.ContainsFunc(notes, func(n importer.Note) bool {
		return n.Field == "" && (n.Verdict == importer.Added && slices.Contains(strings.Split(n.Why, ", "), name) ||
			n.Verdict == importer.Translated && strings.HasPrefix(n.Why, fmt.Sprintf("a %v takes its "+
				"place", object["kind"])))
	})
}

// wordKey takes a program's words together: between command and args they may move.
func wordKey(key string) string {
	if key == "command" || key == "args" {
		return "word"
	}
	return key
}

// inPod is where a value changes what runs, how often, and what is left of it.
var inPod = regexp.MustCompile(`(^|\.)(template\.spec\.(containers|initContainers|volumes|[a-zA-Z]+)|runPolicy|` +
	`policies|podFailurePolicy|successPolicy|backoffLimit|backoffLimitPerIndex|cleanPodPolicy|` +
	`maxRetry|ttlSecondsAfterFinished|activeDeadlineSeconds)([.\[]|$)`)

// idleGains are rendered values, by path and value, that change nothing where the source does not say them.
var idleGains = []struct{ path, value, why string }{
	{
		`\.name$`, `^(node|worker|scheduler|server|launcher|main|pytorch|mxnet|(own-)?dshm|tmp|data-?[0-9]*)$`,
		"a name that only the pod knows",
	},
	{`\.serviceAccountName$`, `^default$`, "Kubernetes' own"},
	{`\.(automountServiceAccountToken|enableServiceLinks)$`, `^true$`, "Kubernetes' own"},
	{`\.restartPolicy$`, `^OnFailure$`, "the operators' own for PyTorchJobs"},
	{`\.terminationGracePeriodSeconds$`, `^30$`, "Kubernetes' own"},
	{`\.readOnlyRootFilesystem$`, `^false$`, "Kubernetes' own"},
	{`\.cleanPodPolicy$`, `^None$`, "the operators' own"},
	{`\.protocol$`, `^TCP$`, "Kubernetes' own"},
	{`\.dnsPolicy$`, `^ClusterFirst$`, "Kubernetes' own"},
	{`^spec\.backoffLimit$`, `^6$`, "Kubernetes' own"},
	{`\.replicas$`, `^1$`, "the operators' own"},
	{`\.maxRetry$`, `^3$`, "what Volcano's webhook puts there"},
	{`\.suspend$`, `^false$`, "the operators' own"},
	{`\.requests\.`, ``, "Kubernetes copies limits"},
	{`\.imagePullPolicy$`, `^IfNotPresent$`, "Kubernetes' own for an image with a tag"},
	{`\.onPodConditions\[0\]\.status$`, `^True$`, "Kubernetes' own"},
	{`\.fieldRef\.apiVersion$`, `^v1$`, "Kubernetes' own"},
	{`\.securityContext$`, `^\{\}$`, "it says nothing"},
}

func changesNothing(path, value string) bool {
	return slices.ContainsFunc(idleGains, func(g struct{ path, value, why string }) bool {
		return regexp.MustCompile(g.path).MatchString(path) && regexp.MustCompile(g.value).MatchString(value)
	})
}

// reportsGain says whether a line of what is added names a step of a path below the pod's, or a line tells of the value
// at that very place.
func reportsGain(notes []importer.Note, path, value string) bool {
	variable := regexp.MustCompile(`\.env\[[0-9]+\]\.name$`).MatchString(path)
	steps := regexp.MustCompile(`[A-Za-z]+`).FindAllString(path, -1)
	for _, n := range notes {
		if n.Verdict != importer.Added {
			last, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[") // a word of what a program changed
			if n.Field != "" && strings.HasSuffix(n.Field, "."+last) {
				return true
			}
			if last == "image" && strings.Contains(n.Why, value) ||
				last == "backoffLimit" && strings.Contains(n.Why, last) {
				return true
			}
			continue
		}
		if variable {
			if strings.Contains(n.Why, value) {
				return true
			}
			continue
		}
		if strings.Contains(path, "metadata.labels[") && strings.Contains(n.Why, "labels and annotations of tegen") {
			return true
		}
		if strings.Contains(path, "olume") && strings.Contains(n.Why, "/tegen/ssh") {
			return true // mounts are told of by their paths
		}
		for _, step := range steps {
			if !everywhere[step] && regexp.MustCompile(`\b`+step+`\b`).MatchString(n.Why) {
				return true
			}
		}
	}
	return false
}

// everywhere are steps that lead to all of a pod.
var everywhere = map[string]bool{
	"spec": true, "template": true, "containers": true, "metadata": true, "name": true,
	"value": true, "Worker": true, "Master": true, "tasks": true, "replicatedJobs": true,
}
