package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// evaluators holds the built programs and the schemas.
type evaluators struct {
	kubeconform string
	kubeScore   string
	schemas     string
}

func newEvaluators(t *testing.T) evaluators {
	t.Helper()
	e := evaluators{
		kubeconform: toolPath(t, toolsMod, "kubeconform"),
		kubeScore:   toolPath(t, scoreMod, "kube-score"),
		schemas:     t.TempDir(),
	}
	if _, err := writeSchemas(e.schemas, openAPI(t), groupVersions); err != nil {
		t.Fatal(err)
	}
	return e
}

// openAPI is the document that describes all of one Kubernetes release.
func openAPI(t *testing.T) []byte {
	t.Helper()
	var module struct{ Dir string }
	if err := json.Unmarshal(goCommand(t, "mod", "download", "-json", "-modfile="+schemasMod, "k8s.io/kubernetes"),
		&module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// toolPath builds a pinned tool and returns where the build cache keeps it.
func toolPath(t *testing.T, modfile, name string) string {
	t.Helper()
	// -n prints the program instead of running it; running it through "go
	// tool" would put its exit status behind that of the go command.
	return strings.TrimSpace(string(goCommand(t, "tool", "-n", "-modfile="+modfile, name)))
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := output(exec.CommandContext(t.Context(), "go", args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// output runs a command and returns what it wrote, together with an error that
// carries its complaint where it exits with a status.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("running %s: %w: %s", cmd, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// conform runs kubeconform over all files at once and returns every object it
// does not find valid, and how many objects it saw.
func (e evaluators) conform(files []string) (findings []finding, checked int, err error) {
	skip := slices.Clone(ofOtherReleases)
	for _, file := range files {
		kinds, err := skips(file)
		if err != nil {
			return nil, 0, err
		}
		skip = append(skip, kinds...)
	}
	slices.Sort(skip)
	args := []string{
		"-strict", "-summary", "-output", "json",
		"-skip", strings.Join(slices.Compact(skip), ","),
		// Naming a location replaces the default one, which is on the network.
		"-schema-location", filepath.ToSlash(e.schemas) + "/{{ .ResourceKind }}{{ .KindSuffix }}.json",
		"-kubernetes-version", "master", // unused by that location
	}
	out, runErr := output(exec.Command(e.kubeconform, append(args, files...)...))
	var report struct {
		Resources []struct {
			Filename, Kind, Name, Status, Msg string
		}
		Summary struct{ Valid, Invalid, Errors, Skipped int }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("reading kubeconform's report: %w", err), runErr)
	}
	for _, r := range report.Resources {
		f := finding{file: r.Filename, check: "kubeconform " + r.Status, kind: r.Kind, name: r.Name, message: r.Msg}
		// validationErrors names only the outermost field; the causes are in the
		// message, behind the path of the temporary schema.
		if _, causes, ok := strings.Cut(r.Msg, "#' "); ok {
			f.message = causes
		}
		findings = append(findings, f)
	}
	s := report.Summary
	if len(findings) == 0 && (runErr != nil || s.Invalid+s.Errors > 0) {
		return nil, 0, errors.Join(fmt.Errorf("reading kubeconform's report: %+v without a single resource", s), runErr)
	}
	return findings, s.Valid + s.Invalid + s.Errors, nil
}

// ofOtherReleases are kinds of Kubernetes itself that the release in schemas.mod
// does not have: what is written for 1.37 has no schema in 1.36.
var ofOtherReleases = []string{
	"scheduling.k8s.io/v1beta1/PodGroup",
	"scheduling.k8s.io/v1beta1/Workload",
}

var head = regexp.MustCompile(`(?m)^(apiVersion|kind): (\S+)$`)

// skips are the kinds, with group and version, that a file has no schemas for:
// those of customGroups, which TestCustomResources evaluates. A group that nobody
// evaluates is not among them, so that kubeconform reports it. The text is read line
// by line, since tegen's own reader refuses what kubeconform is here to find; a
// kind that this overlooks is reported too.
func skips(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		line := map[string]string{}
		for _, m := range head.FindAllStringSubmatch(doc, -1) {
			line[m[1]] = m[2]
		}
		group, _, _ := strings.Cut(line["apiVersion"], "/")
		if slices.Contains(customGroups, group) {
			kinds = append(kinds, line["apiVersion"]+"/"+line["kind"])
		}
	}
	return kinds, nil
}

// ofUnseenPods are the checks that look for the pods of a selector. kube-score
// knows no custom resource, and so none of the pods that one becomes; that every
// selector has its pods is checked when a bundle is rendered.
var ofUnseenPods = []string{"networkpolicy-targets-pod", "service-targets-pod"}

// gradeCritical is the grade at which kube-score itself fails.
const gradeCritical = 1

// score runs kube-score over one file and returns its critical findings. Each
// file is one whole deployment: scored together, the NetworkPolicy of one case
// would cover for its absence in another.
func (e evaluators) score(file string) ([]finding, error) {
	// Without the annotations switched off a manifest could excuse itself, and
	// the table of accepted findings would not be the whole truth.
	out, runErr := output(exec.Command(e.kubeScore, "score", "--output-format", "json",
		"--kubernetes-version", scoredKubernetes, "--disable-ignore-checks-annotations", file))
	var objects []struct {
		TypeMeta struct {
			Kind string `json:"kind"`
		} `json:"type_meta"`
		ObjectMeta struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"object_meta"`
		Checks []struct {
			Check struct {
				ID string `json:"id"`
			} `json:"check"`
			Grade    int  `json:"grade"`
			Skipped  bool `json:"skipped"`
			Comments []struct {
				Path    string `json:"path"`
				Summary string `json:"summary"`
			} `json:"comments"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(out, &objects); err != nil {
		return nil, errors.Join(fmt.Errorf("reading kube-score's report on %s: %w", file, err), runErr)
	}
	custom, err := skips(file)
	if err != nil {
		return nil, err
	}
	var findings []finding
	excused := false
	for _, o := range objects {
		for _, c := range o.Checks {
			if c.Skipped || c.Grade > gradeCritical {
				continue
			}
			if len(custom) > 0 && slices.Contains(ofUnseenPods, c.Check.ID) {
				excused = true
				continue
			}
			var messages []string
			for _, comment := range c.Comments {
				messages = append(messages, strings.TrimPrefix(comment.Path+": "+comment.Summary, ": "))
			}
			findings = append(findings, finding{
				file: file, check: c.Check.ID, kind: o.TypeMeta.Kind, name: o.ObjectMeta.Name,
				component: o.ObjectMeta.Labels["app.kubernetes.io/component"],
				message:   strings.Join(messages, "; "),
			})
		}
	}
	if len(findings) == 0 && runErr != nil && !excused {
		return nil, fmt.Errorf("scoring %s: %w", file, runErr)
	}
	// kube-score walks a map of objects.
	slices.SortFunc(findings, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	return findings, nil
}
