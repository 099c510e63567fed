package command

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
)

// runbookArgs are the arguments by which a fixture's runbook is made.
func runbookArgs(file, overlay, with string) []string {
	args := []string{"runbook", file, "--with", with}
	if overlay != "base" {
		args = append(args, "--overlay", "overlays/"+overlay)
	}
	return args
}

// TestRunbookGolden: bare pods with an etcd, a Job on either overlay and with each way, a queue, a gang with a
// companion, custom resources that are suspended, scaled by a field of their own, and made anew.
func TestRunbookGolden(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "internal/command/testdata/runbook")
	for _, c := range []struct{ fixture, overlay, with string }{
		{"imagenet", "base", "kubectl"},
		{"minimal", "eks", "argocd"},
		{"minimal", "eks", "flux"},
		{"minimal", "kind", "kubectl"},
		{"suspend-pods", "base", "kubectl"},
		{"gang-kueue", "base", "flux"},
		{"gang-tegen-accelerators", "eks", "kubectl"},
		{"companion-pytorchjob", "eks", "kubectl"},
		{"torchelastic-jobset-full", "eks", "kubectl"},
		{"torchelastic-vcjob-full", "base", "kubectl"},
		{"torchelastic-pytorchjob-suspended", "kind", "argocd"},
	} {
		t.Run(strings.Join([]string{c.fixture, c.overlay, c.with}, "/"), func(t *testing.T) {
			out, msg, code := tegen("", runbookArgs("fixtures/valid/"+c.fixture+".yaml", c.overlay, c.with)...)
			if code != cli.ExitOK {
				t.Fatalf("exit %d:\n%s", code, msg)
			}
			files.Compare(t, c.fixture+"-"+c.overlay+"-"+c.with+".md", []byte(out))
		})
	}
	files.Orphans(t, ".")
}

// TestRunbookCommands: whatever a runbook says to kubectl is about objects that are rendered, or that the job expects:
// their kinds, names, labels and containers. All of it is what a shell can read.
func TestRunbookCommands(t *testing.T) {
	atRoot(t)
	var script strings.Builder
	seen := map[string]int{}
	for i, file := range fixtures(t, "valid") {
		others := []string{"base/flux", "kind/kubectl", "eks/argocd"} // one of them for each fixture
		for _, with := range []string{"base/kubectl", others[i%len(others)]} {
			overlay, with, _ := strings.Cut(with, "/")
			args := runbookArgs(file, overlay, with)
			book, msg, code := tegen("", args...)
			if code != cli.ExitOK {
				t.Fatalf("%s: exit %d:\n%s", strings.Join(args, " "), code, msg)
			}
			if overlay == "eks" {
				if again, _, _ := tegen("", args...); book != again {
					t.Errorf("%s: two runbooks differ", strings.Join(args, " "))
				}
			}
			render := renderArgs(t, file, overlay)
			if with != "kubectl" {
				place := map[string]string{"base": "rendered", "eks": "eks"}[overlay]
				render = append(render, "-o", filepath.Join(t.TempDir(), place))
			}
			w := renderedWorld(t, render)
			if with != "kubectl" {
				w.reconciled(t, with, render[len(render)-1])
			}
			for _, c := range runbookCommands(t, book, &script) {
				seen[c.words[0]+" "+c.words[1]]++
				if problem := w.check(c); problem != "" {
					t.Errorf("%s: %s: %s", strings.Join(args, " "), strings.Join(c.words, " "), problem)
				}
			}
		}
	}
	for _, command := range []string{
		"kubectl get", "kubectl logs", "kubectl patch", "kubectl delete", "kubectl create", "kubectl apply",
		"tegen render", "tegen plan", "tegen vet", "git rm", "eksctl scale", "eksctl get", "kind load",
	} {
		if seen[command] < 10 {
			t.Errorf("%d runbooks say %s: this test sees too little", seen[command], command)
		}
	}
	bash := exec.CommandContext(t.Context(), "bash", "-n")
	bash.Stdin = strings.NewReader(script.String())
	if out, err := bash.CombinedOutput(); err != nil {
		t.Errorf("bash: %v\n%s", err, out)
	}
}

// runbookCommand is one of a runbook, below a heading.
type runbookCommand struct {
	heading string
	words   []string
}

var fenced = regexp.MustCompile("(?m)^## [0-9]+[.] (.*)$|^```sh\n((?s:.*?))^```$")

// runbookCommands are the commands in the blocks of a runbook, which are added to a script.
func runbookCommands(t *testing.T, book string, script *strings.Builder) (all []runbookCommand) {
	t.Helper()
	heading := ""
	for _, m := range fenced.FindAllStringSubmatch(book, -1) {
		if m[1] != "" {
			heading = m[1]
			continue
		}
		script.WriteString(m[2])
		text, ok := shell.Scan(m[2])
		if !ok {
			t.Fatalf("no shell reads this:\n%s", m[2])
		}
		var words []string
		for _, token := range append(text.Tokens, shell.Token{Ends: true}) {
			switch {
			case !token.Ends:
				words = append(words, token.Text)
			case len(words) > 1:
				all = append(all, runbookCommand{heading, words})
				fallthrough
			default:
				words = nil
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no command in:\n%s", book)
	}
	return all
}

// rendering is what commands of a runbook may be about.
type rendering struct {
	namespaces []string
	objects    map[string]labels.Set // kind/name, as kubectl takes it
	expected   []string
	pods       []apis.PodSet
}

// renderedWorld renders, and reads what came out.
func renderedWorld(t *testing.T, args []string) *rendering {
	t.Helper()
	text, msg, code := tegen("", args...)
	if code != cli.ExitOK {
		t.Fatalf("exit %d:\n%s", code, msg)
	}
	if args[len(args)-2] == "-o" {
		text, _, code = tegen("", "check", args[len(args)-1])
		if code != cli.ExitOK {
			t.Fatalf("check: exit %d", code)
		}
		files, err := filesBelow([]string{args[len(args)-1]})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text += "---\n" + content(t, name)
		}
	}
	objects, err := manifest.Read("rendered", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := &rendering{objects: map[string]labels.Set{}}
	for _, obj := range objects {
		gvk, err := manifest.GVK(obj)
		if err != nil {
			t.Fatal(err)
		}
		m := obj.(metav1.Object)
		kind := strings.ToLower(gvk.Kind)
		if strings.Contains(gvk.Group, ".") {
			kind += "." + gvk.Group
		}
		w.objects[kind+"/"+m.GetName()] = m.GetLabels()
		w.namespaces = append(w.namespaces, m.GetNamespace())
		w.expected = append(w.expected, strings.Split(strings.ToLower(m.GetAnnotations()[names.Expects]), ",")...)
		if workload := apis.WorkloadOf(obj); workload != nil {
			w.pods = append(w.pods, workload.PodSets()...)
		}
	}
	return w
}

// reconciled adds the objects by which a reconciler has the jobs of a tree. That of Argo CD has a template's name.
func (w *rendering) reconciled(t *testing.T, with, tree string) {
	t.Helper()
	out, msg, code := tegen("", "gitops", with, tree, "--repo", "https://git.example/team/jobs", "--path", "rendered")
	if code != cli.ExitOK {
		t.Fatalf("exit %d:\n%s", code, msg)
	}
	folders, err := filepath.Glob(tree + "/*/kustomization.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders of jobs in %s: %v", tree, err)
	}
	for _, folder := range folders {
		job := filepath.Base(filepath.Dir(folder))
		name := filepath.Base(tree) + "-" + job
		if with == "flux" &&
			strings.Contains(out, "kind: Kustomization\nmetadata:\n  name: "+name+"\n  namespace: flux-system\n") {
			w.objects["kustomization.kustomize.toolkit.fluxcd.io/"+name] = nil
		}
		if with == "argocd" && strings.Contains(out, "      name: "+filepath.Base(tree)+"-{{.path.basename}}\n") &&
			strings.Contains(out, "\n  namespace: argocd\n") {
			w.objects["application.argoproj.io/"+name] = nil
			w.objects["applicationset.argoproj.io/"+filepath.Base(tree)] = nil
		}
	}
}

// isReconcilers says whether a command is about an object of a reconciler, in its own namespace.
func isReconcilers(namespace string, args []string) bool {
	kinds := map[string]string{"argocd": "application", "flux-system": "kustomization.kustomize."}
	return len(args) > 0 && kinds[namespace] != "" && strings.HasPrefix(args[0], kinds[namespace])
}

// valued are flags of kubectl that a value follows.
var valued = []string{
	"-n", "-l", "-o", "-c", "-f", "-p", "--type", "--tail", "--max-log-requests", "--field-selector",
}

// check says what is wrong with a command, "" where nothing is. What installs and looks for companions is in the tables
// of internal/plan.
func (w *rendering) check(c runbookCommand) string {
	if c.words[0] != "kubectl" || c.heading == "Companions" {
		return ""
	}
	flags, args := map[string]string{}, []string{}
	for i := 2; i < len(c.words); i++ {
		word := c.words[i]
		switch {
		case slices.Contains(valued, word) && i+1 < len(c.words):
			flags[word] = c.words[i+1]
			i++
		case strings.HasPrefix(word, "-") && word != "-":
			flags[word] = "true"
		default:
			args = append(args, word)
		}
	}
	if n, ok := flags["-n"]; ok && !slices.Contains(w.namespaces, n) && !isReconcilers(n, args) {
		return "nothing is in that namespace"
	}
	if patch, ok := flags["-p"]; ok && !json.Valid([]byte(patch)) {
		return "the patch is no JSON"
	}
	switch c.words[1] {
	case "get", "delete", "patch", "wait":
		return w.checkObjects(args, flags)
	case "annotate":
		return w.checkObjects(args[:1], flags)
	case "logs":
		return w.checkPods(flags["-l"], flags["-c"])
	case "apply", "create", "config":
		return ""
	}
	return "no such verb is known"
}

// checkObjects looks for what is named or selected.
func (w *rendering) checkObjects(args []string, flags map[string]string) string {
	selector := flags["-l"]
	switch {
	case len(args) == 0:
		return "nothing is named"
	case slices.Contains([]string{"nodes", "nodes,pods", "events", "workload.kueue.x-k8s.io"}, args[0]):
		return ""
	case args[0] == "pods" || args[0] == "pod" && len(args) == 1:
		return w.checkPods(selector, "")
	case args[0] == "pod":
		for _, set := range w.pods {
			for i := range set.Numbers() {
				if set.Random == 0 && fmt.Sprintf("%s-%d", set.Name, set.First+i) == args[1] {
					return ""
				}
			}
			if set.Numbers() == 0 && set.Random == 0 && set.Name == args[1] {
				return ""
			}
		}
		return "there will be no pod " + args[1]
	}
	for _, arg := range args {
		_, isObject := w.objects[arg]
		if strings.Contains(arg, "/") && !isObject && !slices.Contains(w.expected, arg) {
			return "nothing renders or expects " + arg
		}
		if strings.Contains(arg, "/") {
			continue
		}
		for kind := range strings.SplitSeq(arg, ",") {
			if selector == "" || !w.selects(kind+"/", selector) {
				return "selects no " + kind
			}
		}
	}
	return ""
}

// selects says whether some object of a kind has the labels.
func (w *rendering) selects(kind, selector string) bool {
	s, err := labels.Parse(selector)
	for name, set := range w.objects {
		if err == nil && strings.HasPrefix(name, kind) && s.Matches(set) {
			return true
		}
	}
	return false
}

// checkPods looks for pods with the labels, those of their controller included, and a container.
func (w *rendering) checkPods(selector, container string) string {
	parsed, err := labels.Parse(selector)
	if err != nil || selector == "" {
		return "selects pods by no labels"
	}
	for _, set := range w.pods {
		all := labels.Set{}
		for k, v := range set.Template.Labels {
			all[k] = v
		}
		for _, l := range set.Labels {
			switch all[l.Key] = l.Value; {
			case l.Numbered: // some pod has the number, if it is one of theirs
				wanted, _ := parsed.RequiresExactMatch(l.Key)
				n, err := strconv.Atoi(strings.TrimPrefix(wanted, l.Value))
				if err == nil && set.HasNumber(n) {
					all[l.Key] = wanted
				}
			case l.Key == "batch.kubernetes.io/job-name" && l.Value == "":
				if wanted, _ := parsed.RequiresExactMatch(l.Key); slices.Contains(set.Jobs, wanted) || set.JobEach &&
					strings.HasPrefix(wanted, set.Name+"-") {
					all[l.Key] = wanted
				}
			}
		}
		if !parsed.Matches(all) {
			continue
		}
		if container == "" {
			return ""
		}
		for _, c := range set.Template.Spec.Containers {
			if c.Name == container {
				return ""
			}
		}
	}
	return "there are no such pods"
}

// TestRunbookNames: whatever files are called, a shell takes their names for names.
func TestRunbookNames(t *testing.T) {
	atRoot(t)
	job := content(t, "fixtures/valid/minimal.yaml")
	eks, err := filepath.Abs("overlays/eks")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"a b", "it's", "$(touch ran)", "`touch ran`", "a;touch ran", "--all", "~", "é", "*"} {
		file, place := name+"/job.yaml", name+"/place"
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(place, os.DirFS(eks)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
			t.Fatal(err)
		}
		book, msg, code := tegen("", "runbook", "--overlay", place, "--with", "flux", "--tree", name+"/tree",
			"--", file)
		if code != cli.ExitOK {
			t.Fatalf("%s: exit %d: %s", name, code, msg)
		}
		var script strings.Builder
		runbookCommands(t, book, &script)
		bash := exec.CommandContext(t.Context(), "bash", "-eu")
		bash.Env = []string{"PATH="}
		said := "REPO=here\nsaid() { for word in \"$@\"; do printf '%s\\n' \"$word\"; done; }\n"
		for _, program := range []string{"tegen", "kubectl", "eksctl", "git", "flux"} {
			said += program + "() { said \"$@\"; }\n"
		}
		bash.Stdin = strings.NewReader(said + script.String())
		bash.Path, _ = exec.LookPath("bash")
		out, err := bash.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		prefix := ""
		if strings.HasPrefix(name, "-") {
			prefix = "./"
		}
		for _, want := range []string{file, place, name + "/tree", name + "/tree/resnet", place + "/cluster.yaml"} {
			if !strings.Contains(string(out), "\n"+prefix+want+"\n") {
				t.Errorf("%s: no program is told %s:\n%s", name, prefix+want, out)
			}
		}
		if _, err := os.Stat("ran"); err == nil {
			t.Fatalf("%s: a shell ran it", name)
		}
	}
}
