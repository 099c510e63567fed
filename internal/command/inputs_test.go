package command

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// What becomes of a document at an entry point.
const (
	used     = "used"     // its objects, or itself, are in the output
	refused  = "refused"  // an error names its place
	harmless = "harmless" // neither: it holds nothing, or is marked as local
)

// extraJob is a job beside another. Each document of TestInputs is another form of it.
const extraJob = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: extra, namespace: ml}
spec: {image: 'example.org/extra:1', command: [python, a.py], workers: {replicas: 1}, gitops: false}
`

// inputForms are documents by what they are, with what becomes of each in a directory, in an overlay, as an item of the
// function, and as a manifest for check and diff.
var inputForms = map[string]struct{ text, dir, overlay, item, check, diff string }{
	"a job":          {extraJob, used, used, used, refused, used},
	"an Environment": {environmentForm, refused, refused, refused, refused, used},
	"a Generator":    {generatorForm, refused, refused, refused, refused, used},
	"a Generator that is local": {strings.Replace(generatorForm, "name: extra", "name: extra, annotations: "+
		"{config.kubernetes.io/local-config: 'true'}", 1), refused, harmless, used, harmless, used},
	"a foreign object": {
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: ml}\n",
		refused, used, used, harmless, used,
	},
	"a foreign TrainingJob": {
		"apiVersion: sagemaker.services.k8s.aws/v1alpha1\nkind: TrainingJob\nmetadata: {name: extra, namespace: ml}\n",
		refused, used, used, harmless, used,
	},
	"a List of a job": {
		"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(extraJob), "\n", "\n  ") + "\n",
		refused, used, refused, refused, used,
	},
	"a List of a misspelt job": {
		"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(misspelt("kind: TrainingJob",
			"kind: TrainingJobs")), "\n", "\n  ") + "\n",
		refused, refused, refused, refused, refused,
	},
	"a list":   {"[extra]\n", refused, refused, refused, refused, refused},
	"a text":   {"extra\n", refused, refused, refused, refused, refused},
	"nothing":  {"", harmless, harmless, "", harmless, harmless},
	"a marker": {"---\n", harmless, harmless, "", harmless, harmless},
	"comments": {"# extra\n", harmless, harmless, "", harmless, harmless},

	"another version":      allRefused("tegen.dev/v1alpha1", "tegen.dev/v1"),
	"a kind in plural":     allRefused("kind: TrainingJob", "kind: TrainingJobs"),
	"a kind in lower case": allRefused("kind: TrainingJob", "kind: trainingjob"),
	"an unknown kind":      allRefused("kind: TrainingJob", "kind: Policy"),
	"a kind without value": allRefused("kind: TrainingJob", "kind:"),
	"a misspelt Environment": allRefused("kind: TrainingJob",
		"kind: Environmnt"),
	"a misspelt group":    allRefused("tegen.dev/v1alpha1", "tegen.dv/v1alpha1"),
	"a group in capitals": allRefused("tegen.dev/v1alpha1", "Tegen.dev/v1alpha1"),
	"no group":            allRefused("tegen.dev/v1alpha1", "v1alpha1"),
	"a misspelt group and kind": allRefused("tegen.dev/v1alpha1\nkind: TrainingJob", "tegen.io/v1\n"+
		"kind: TraningJob"),
	"a misspelt apiVersion":         allRefused("apiVersion:", "apiVersoin:"),
	"an apiVersion in lower case":   allRefused("apiVersion:", "apiversion:"),
	"a kind in a capitalised field": allRefused("kind:", "Kind:"),
	"no apiVersion":                 allRefused("apiVersion: tegen.dev/v1alpha1\n", ""),
	"no kind":                       allRefused("kind: TrainingJob\n", ""),
	"misspelt metadata":             allRefused("metadata:", "metdata:"),
	"a misspelt field":              allRefused("workers:", "wrokers:"),
}

const (
	environmentForm = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: extra}\nspec: {}\n"
	generatorForm   = "apiVersion: tegen.dev/v1alpha1\nkind: Generator\nmetadata: {name: extra}\n"
)

func misspelt(right, wrong string) string { return strings.Replace(extraJob, right, wrong, 1) }

// allRefused is a form of the job that is no job: of check and diff, a job that is not as it should be is still one.
func allRefused(right, wrong string) struct{ text, dir, overlay, item, check, diff string } {
	text, diff := misspelt(right, wrong), refused
	if slices.Contains([]string{"tegen.dev/v1alpha1", "workers:"}, right) && wrong != "tegen.dv/v1alpha1" &&
		wrong != "Tegen.dev/v1alpha1" && wrong != "v1alpha1" {
		diff = used
	}
	return struct{ text, dir, overlay, item, check, diff string }{text, refused, refused, refused, refused, diff}
}

// inputFiles are a directory of jobs and an overlay, whose job extra is of some form.
func inputFiles(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"jobs/kustomization.yaml": "resources: [train.yaml, extra.yaml]\n",
		"jobs/train.yaml":         strings.ReplaceAll(extraJob, "extra", "train"),
		"jobs/extra.yaml":         text,
		"place/kustomization.yaml": "resources: [../jobs, environment.yaml]\ntransformers: [tegen.yaml]\n" +
			"patches:\n- path: patch.yaml\n",
		"place/patch.yaml": "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n" +
			"metadata: {name: train, namespace: ml}\nspec: {gitops: true}\n",
		"place/environment.yaml": strings.Replace(environmentForm, "extra", "place", 1),
		"place/tegen.yaml":       strings.Replace(generatorForm, "extra", "tegen", 1) + "spec: {environment: place}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// resourceList is a list of a job and of a document.
func resourceList(text string) string {
	item := func(text string) string {
		return "- " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	}
	return "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n" +
		item(strings.ReplaceAll(extraJob, "extra", "train")) + item(text)
}

// TestInputs: every document that reaches tegen, at whichever entry, is in the output, in an error that names its
// place, or passes through; none is lost. Where one is refused nothing is written, and --prune removes nothing.
func TestInputs(t *testing.T) {
	const place = `extra\.yaml(:[0-9]+)?`
	for what, form := range inputForms {
		t.Run(what, func(t *testing.T) {
			inputFiles(t, extraJob)
			for _, args := range [][]string{{"jobs", "-o", "plain"}, {"--overlay", "place", "-o", "overlaid"}} {
				if _, msg, code := tegen("", append([]string{"render"}, args...)...); code != cli.ExitOK {
					t.Fatal(msg)
				}
			}
			if err := os.WriteFile("jobs/extra.yaml", []byte(form.text), 0o600); err != nil {
				t.Fatal(err)
			}
			outcome := func(want, place, stdin string, args ...string) {
				t.Helper()
				if want == "" {
					return
				}
				out, msg, code := tegen(stdin, args...)
				got := harmless
				switch {
				case code != cli.ExitOK && regexp.MustCompile(place).MatchString(msg):
					got = refused
				case code == cli.ExitOK && (strings.Contains(out, "extra") || args[0] == "vet" && want == used):
					got = used
				case code != cli.ExitOK:
					got = "an error without a place"
				}
				if got != want {
					t.Errorf("tegen %s: %s, want %s; exit %d\n%s", strings.Join(args, " "), got, want, code, msg)
				}
				if code != cli.ExitOK && args[0] != "fn" && out != "" {
					t.Errorf("tegen %s failed and printed:\n%s", strings.Join(args, " "), out)
				}
			}
			for _, command := range []string{"vet", "render", "plan", "graph"} {
				if form.overlay == used && form.dir == refused && command != "render" { // others show jobs alone
					outcome(form.dir, place, "", command, "jobs")
					continue
				}
				outcome(form.dir, place, "", command, "jobs")
				outcome(form.overlay, place+"|extra", "", command, "--overlay", "place")
				outcome(form.overlay, place+"|extra", "", command, "jobs", "--overlay", "place")
			}
			outcome(form.item, `[A-Za-z]+/extra: |items\[1\]: `, resourceList(form.text), "fn")
			outcome(form.check, place+"|(TrainingJob|Environment|Generator) .*: it is an input", "", "check",
				"jobs/extra.yaml", "plain/train")
			outcome(form.diff, place+"|one has no apiVersion, kind or metadata.name: ", "", "diff", "plain/train",
				"jobs/extra.yaml")
			for args, want := range map[string]string{
				"render jobs -o plain --prune": form.dir, "render --overlay place -o overlaid --prune": form.overlay,
				"render jobs --overlay place -o overlaid --prune": form.overlay,
			} {
				words := strings.Fields(args)
				dir := words[slices.Index(words, "-o")+1]
				before := filesIn(t, dir)
				if _, _, code := tegen("", words...); (code == cli.ExitOK) == (want == refused) {
					t.Errorf("tegen %s: exit %d, want %s", args, code, want)
				}
				if want == refused && !maps.Equal(before, filesIn(t, dir)) {
					t.Errorf("tegen %s changed %s", args, dir)
				}
			}
		})
	}
}

// filesIn are the files of a directory with their content.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*", "*/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil {
				files[name] = string(text)
			}
		}
	}
	return files
}

// TestHeadsHavePlaces: a misspelt head is reported with line and column and what was meant, in an overlay too.
func TestHeadsHavePlaces(t *testing.T) {
	for wrong, want := range map[string]string{
		misspelt("kind: TrainingJob", "kind: TrainingJobs"): `extra.yaml:2:7: kind: must be TrainingJob, not ` +
			`"TrainingJobs"; did you mean "TrainingJob"?`,
		misspelt("tegen.dev/v1alpha1", "tegen.dv/v1alpha1"): "extra.yaml:1:13: apiVersion: must be tegen.dev/v1alpha1",
		misspelt("tegen.dev/", "kubeflow.org/"):             "extra.yaml:1:13: apiVersion: must be tegen.dev/v1alpha1",
		misspelt("apiVersion:", "apiVersoin:"):              `:1:1: apiVersoin: unknown field; did you mean "apiVer`,
		misspelt("kind:", "Kind:"):                          `is "Kind" a misspelling of it?`,
		misspelt("metadata:", "metdata:"):                   `:3:1: metdata: unknown field; did you mean "metadata"`,
		environmentForm:                                     "yaml:2:7: kind: no option selects this Environment",
		generatorForm:                                       "list its file under transformers",
	} {
		inputFiles(t, wrong)
		for _, args := range []string{"vet jobs", "vet --overlay place", "vet jobs --overlay place"} {
			_, msg, code := tegen("", strings.Fields(args)...)
			if code != cli.ExitError || !strings.Contains(msg, want) {
				t.Errorf("%s: exit %d:\n%s\nwant %s", args, code, msg, want)
			}
		}
	}
}

// TestLinks: a link in a directory of jobs leads to a file of the directory, or the command fails: nothing is left out,
// and so --prune removes nothing.
func TestLinks(t *testing.T) {
	for what, c := range map[string]struct{ name, target, says string }{
		"a file out of the directory":      {"jobs/extra.yaml", "../other/extra.yaml", "is a link out of jobs"},
		"the same by its whole name":       {"jobs/extra.yaml", "/", "jobs/extra.yaml is a link out of jobs"},
		"a directory out of the directory": {"jobs/team", "../other", "jobs/team is a link out of jobs"},
		"nothing":                          {"jobs/extra.yaml", "gone.yaml", "is a link to a file that cannot be read"},
		"a file within":                    {"jobs/extra.yaml", "more/extra.yml", ""},
		"a directory within":               {"jobs/team", "more", ""},
		"the lock of an editor":            {"jobs/.#extra.yaml", "user@host.1", ""},
		"another's file":                   {"jobs/notes.txt", "../other/notes.txt", ""},
	} {
		t.Run(what, func(t *testing.T) {
			inputFiles(t, "")
			for _, dir := range []string{"other", "jobs/more"} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{
				"other/extra.yaml": extraJob, "other/notes.txt": "extra",
				"jobs/more/extra.yml": strings.ReplaceAll(extraJob, "extra", "more"),
			} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasSuffix(c.target, ".yml") { // it is read once
				if err := os.Rename("jobs/more", "jobs/.more"); err != nil {
					t.Fatal(err)
				}
				c.target = ".more/extra.yml"
			}
			_ = os.Remove(c.name)
			if err := os.Symlink(c.target, c.name); err != nil {
				t.Fatal(err)
			}
			_, msg, code := tegen("", "render", "jobs", "-o", "out", "--prune")
			if (code == cli.ExitOK) != (c.says == "") || !strings.Contains(msg, c.says) {
				t.Errorf("exit %d:\n%s\nwant %q", code, msg, c.says)
			}
			if _, err := os.Stat("out"); (err == nil) != (c.says == "") {
				t.Errorf("out: %v", err)
			}
		})
	}
	inputFiles(t, "")
	if err := errors.Join(os.Mkdir("other", 0o755), os.WriteFile("other/extra.yaml", []byte(extraJob), 0o600),
		os.Symlink("other/extra.yaml", "named.yaml"), os.Symlink("jobs", "linked")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"named.yaml", "linked"} { // who names a link means it
		if _, msg, code := tegen("", "vet", name); code != cli.ExitOK {
			t.Errorf("tegen vet %s: exit %d: %s", name, code, msg)
		}
	}
}
