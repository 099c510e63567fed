package node

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/test/gitops"
)

// TestRunbook runs the commands of a runbook for Flux in their order, each as it is printed, but for those of kind and
// of Flux's own command, whose "reconcile" is done without it. Where the runbook has somebody change a field, the test
// does.
func TestRunbook(t *testing.T) {
	w := begin(t)
	d := w.newDesk(t, "runbook")
	const file, overlay, worker = "jobs/digits.yaml", "overlays/kind", "digits-flux-worker"
	_, text := readFixture(t, "checkpoint-c10d")
	text = strings.ReplaceAll(text, "digits-c10d", "digits-flux")
	d.write(file, text)
	d.write("jobs/other.yaml", block(t, "docs/start.md", "jobs/resnet.yaml")) // which git does not have
	if err := os.CopyFS(filepath.Join(d.dir, overlay), os.DirFS(filepath.Join(root, overlay))); err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "REPO="+d.repository.URL)
	j := w.job(t, "10 runbook", manifest(t, file, text, "kind"), "")
	t.Cleanup(func() { d.forget("kind") })

	var world generation
	since := time.Now()
	train := func(size int, what string) func() {
		return func() {
			world = j.awaitWorld(size, since, patience)
			j.took(what, since, world.stepped)
			j.awaitProgress(world)
		}
	}
	checks := map[string]func(){ // by what comes before
		"Watch":                          train(3, "tegen gitops flux, applied, to three workers that train"),
		"Scale digits-flux to 2 workers": train(2, "commit of two workers to two that train"),
		"Simulate a disruption":          train(2, "kubectl delete pod to two workers that train"),
		"Suspend digits-flux": func() {
			at := j.awaitSuspended(j.workload(worker))
			j.took("commit of suspend: true to no worker being left", since, at)
		},
		"Resume digits-flux": func() {
			train(2, "commit of suspend: false to two workers that train")()
			j.checkContinued(world)
		},
		"Clean up": func() { j.awaitNothing() },
	}
	for _, s := range runbookSections(t, d.run("tegen runbook "+file+" --overlay "+overlay+" --with flux")) {
		d.t.Logf("## %s", s.title)
		committed := ""
		for _, command := range s.commands {
			if m := fieldToChange.FindStringSubmatch(command); m != nil {
				d.set(m[1], m[2], m[3])
				continue
			}
			if m := commitMessage.FindStringSubmatch(command); m != nil {
				committed, since = m[1], time.Now()
			}
			if strings.HasPrefix(command, "tegen gitops") {
				since = time.Now()
				j.setApplied()
			}
			if strings.HasPrefix(command, "kubectl delete -n training pod") {
				since = time.Now()
			}
			d.step(command)
			if check := checks[committed]; check != nil && strings.HasPrefix(command, "flux reconcile") {
				check()
				delete(checks, committed)
			}
		}
		if check := checks[s.title]; check != nil {
			check()
			delete(checks, s.title)
		}
	}
	for what := range checks {
		t.Errorf("the runbook has no %q", what)
	}
	j.deleted = !t.Failed()
}

var (
	fieldToChange = regexp.MustCompile(`^# in (\S+): (\S+): (\S+)$`)
	commitMessage = regexp.MustCompile(`^git commit -m '(.*)'$`)
	reconcile     = regexp.MustCompile(`^flux reconcile kustomization (\S+) -n flux-system --with-source$`)
	// Elsewhere there is a cluster already, with Flux in it, and images on its nodes.
	elsewhere = regexp.MustCompile(`^(kind|flux) `)
)

// step does what one line of a runbook says.
func (d *desk) step(command string) {
	d.t.Helper()
	m := reconcile.FindStringSubmatch(command)
	switch {
	case m != nil:
		d.reconcile(m[1])
	case strings.HasPrefix(command, "#"), elsewhere.MatchString(command):
		d.t.Logf("left out: %s", command)
	case strings.HasSuffix(command, "--watch"), strings.HasSuffix(command, "--follow"):
		d.follow(command, func(printed string) bool { return strings.Count(printed, "\n") > 1 })
	default:
		d.run(command)
	}
}

// reconcile does what flux reconcile kustomization --with-source does, and holds that the last commit was applied.
func (d *desk) reconcile(kustomization string) {
	d.t.Helper()
	d.repository.Head = strings.TrimSpace(d.run("git rev-parse HEAD"))
	source := d.kubectl(d.t, "get", "-n", "flux-system", "kustomization.kustomize.toolkit.fluxcd.io", kustomization,
		"-o=jsonpath={.spec.sourceRef.name}")
	status, err := d.flux.Sync(d.t.Context(), gitops.App{Name: kustomization, Source: source, Repository: d.repository})
	if err != nil || !status.Synced {
		d.t.Fatalf("%s: %s: %v", kustomization, status, err)
	}
}

// set changes a field of the job in a file, such as workers.replicas.
func (d *desk) set(file, path, value string) {
	d.t.Helper()
	d.t.Logf("%s: %s: %s", file, path, value)
	text, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		d.t.Fatal(err)
	}
	var job map[string]any
	if err := yaml.Unmarshal(text, &job); err != nil {
		d.t.Fatal(err)
	}
	in := job["spec"].(map[string]any)
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		in = in[step].(map[string]any)
	}
	var to any
	if err := yaml.Unmarshal([]byte(value), &to); err != nil {
		d.t.Fatal(err)
	}
	in[steps[len(steps)-1]] = to
	if text, err = yaml.Marshal(job); err != nil {
		d.t.Fatal(err)
	}
	d.write(file, string(text))
}

// workload is the name of the job's Job of a role, with the hash that git's has.
func (j *testJob) workload(prefix string) string {
	j.t.Helper()
	jobs, err := j.client.BatchV1().Jobs(j.namespace).List(j.t.Context(),
		metav1.ListOptions{LabelSelector: instance + "=" + j.name})
	if err != nil {
		j.t.Fatalf("listing the Jobs of %s: %v", j.name, err)
	}
	var names []string
	for i := range jobs.Items {
		if strings.HasPrefix(jobs.Items[i].Name, prefix) {
			names = append(names, jobs.Items[i].Name)
		}
	}
	if len(names) != 1 {
		j.t.Fatalf("%s has the Jobs %q, want one", j.name, names)
	}
	return names[0]
}

// awaitNothing waits until nothing is left of the job, its data included.
func (j *testJob) awaitNothing() {
	j.t.Helper()
	eventually(j.t, "nothing to be left of "+j.name, patience, func() error {
		left, err := j.left(nil)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return err
	})
}

// runbookSection is a heading with the lines of its code blocks.
type runbookSection struct {
	title    string
	commands []string
}

func runbookSections(t *testing.T, text string) (all []runbookSection) {
	t.Helper()
	inBlock := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		title := regexp.MustCompile(`^## \d+\. (.*)$`).FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock:
			s := &all[len(all)-1]
			s.commands = append(s.commands, line)
		case title != nil:
			all = append(all, runbookSection{title: title[1]})
		}
	}
	return slices.DeleteFunc(all, func(s runbookSection) bool { return len(s.commands) == 0 })
}

func TestRunbookSections(t *testing.T) {
	t.Parallel()
	const text = "# A job\n\nWords.\n\n## 1. First\n\n```sh\none\ntwo | three\n```\n\nMore.\n\n```sh\n# four\n```\n" +
		"\n## 2. Words alone\n\nNone.\n\n## 3. Last\n\n```sh\nfive\n```\n"
	got := fmt.Sprintf("%q", runbookSections(t, text))
	if want := `[{"First" ["one" "two | three" "# four"]} {"Last" ["five"]}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
