package command

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/starter"
)

// Places of a field: in a base with the TrainingJobs, in the kustomization that runs tegen, and in one above.
const (
	inBase = "base"
	beside = "beside"
	above  = "above"
)

// fieldFiles are a kustomization with a field in a place: two jobs, an Environment and a ConfigMap that both jobs name.
func fieldFiles(t *testing.T, place, text string, configured bool) map[string]string {
	t.Helper()
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	const jobs = "resources: [resnet.yaml, bert.yaml, settings.yaml, environment.yaml]\n"
	const run = "transformers: [tegen.yaml]\n"
	if configured {
		text += "configurations: [kustomizeconfig.yaml]\n"
	}
	job := func(name, more string) string {
		return "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name + ", namespace: " +
			"ml}\nspec:\n" +
			"  image: example.org/train:1.0\n  command: [python, train.py]\n  workers: {replicas: 2}\n" +
			"  env: [{name: A, configMap: {name: settings, key: a}}]\n" + more
	}
	own, lower := "", "" // directories of the field and of the jobs
	files := map[string]string{}
	switch place {
	case beside:
		files["kustomization.yaml"] = head + jobs + run + text
	case inBase:
		files["base/kustomization.yaml"] = head + jobs + text
		files["kustomization.yaml"] = head + "resources: [base]\n" + run
		own, lower = "base/", "base/"
	case above:
		files["jobs/kustomization.yaml"] = head + jobs + run
		files["kustomization.yaml"] = head + "resources: [jobs]\n" + text
		files["jobs/tegen.yaml"] = content(t, "overlays/kind/tegen.yaml")
		lower = "jobs/"
	}
	files["tegen.yaml"] = content(t, "overlays/kind/tegen.yaml")
	files[lower+"resnet.yaml"] = job("resnet", "  rendezvous: {backend: etcd, store: etcd}\n"+
		"  gang: {scheduler: coscheduling}\n")
	files[lower+"bert.yaml"] = job("bert", "  target: jobset\n")
	files[lower+"settings.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ml}\n" +
		"data: {a: b}\n"
	files[lower+"environment.yaml"] = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: kind}\n" +
		"spec: {overrides: {imagePullPolicy: IfNotPresent}}\n"
	written, err := starter.Files(starter.Options{
		Framework: "torchelastic", Target: "jobset", Overlay: "lab", CI: starter.None,
	})
	if err != nil {
		t.Fatal(err)
	}
	files[own+"kustomizeconfig.yaml"] = string(written["lab/kustomizeconfig.yaml"])
	return files
}

// builtByKustomize is what 'kustomize build --enable-alpha-plugins --enable-exec' prints, which runs this program.
func builtByKustomize(dir string) (string, error) {
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
	options.PluginConfig.FnpLoadingOptions.EnableExec = true
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return "", err
	}
	out, err := built.AsYaml()
	return string(out), err
}

// TestGoldenKustomizeFields shows each row of the table with kustomize itself: the field changes what the row says and
// nothing that it denies, tegen builds the same, and what acts on nothing or breaks something is reported.
func TestGoldenKustomizeFields(t *testing.T) {
	atRoot(t)
	plain := map[string]map[string]string{}
	for _, place := range []string{inBase, beside, above} {
		text, err := builtByKustomize(fieldDir(t, fieldFiles(t, place, "", false)))
		if err != nil {
			t.Fatal(err)
		}
		plain[place] = leavesOf(t, text)
	}
	for _, row := range kustomizeRows {
		for _, place := range row.places {
			for i, run := range row.runs {
				name := fmt.Sprintf("%s %s %s %d", strings.Trim(row.field, "`"), row.where, place, i)
				t.Run(name, func(t *testing.T) { run.try(t, place, plain[place]) })
			}
		}
	}
	const page, start = "docs/environments.md", "<!-- fields of kustomize -->\n"
	head, tail, ok := strings.Cut(content(t, page), start)
	_, rest, found := strings.Cut(tail, "\n\n")
	if !ok || !found {
		t.Fatalf("%s has no table behind %q", page, start)
	}
	golden.Open(t, ".").Compare(t, page, []byte(head+start+fieldTable()+"\n"+rest))
}

func fieldTable() string {
	var b strings.Builder
	b.WriteString("| field | where | the TrainingJob | the rendered objects | reported |\n|---|---|---|---|---|\n")
	for _, r := range kustomizeRows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.field, r.where, r.job, r.objects, r.reported)
	}
	return b.String()
}

func fieldDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func (r *kustomizeRun) try(t *testing.T, place string, plain map[string]string) {
	t.Helper()
	dir := fieldDir(t, fieldFiles(t, place, r.text, r.configured))
	built, err := builtByKustomize(dir)
	if r.fails != "" && (err == nil || !strings.Contains(err.Error(), r.fails)) || r.fails == "" && err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	_, msg, code := tegen("", "vet", "--overlay", dir)
	reports(t, "vet --overlay", msg, r.vet)
	if err != nil {
		return
	}
	if code == cli.ExitOK {
		out, msg, code := tegen("", "render", "--overlay", dir)
		if code != cli.ExitOK || !maps.Equal(leavesOf(t, built), leavesOf(t, out)) {
			t.Errorf("tegen builds something else, exit %d:\n%s", code, msg)
		}
	}
	differences := differencesOf(plain, leavesOf(t, built))
	for _, want := range r.changes {
		if !slices.ContainsFunc(differences, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("there is no %q among\n%s", want, strings.Join(differences, "\n"))
		}
	}
	for _, line := range differences {
		for _, kept := range r.keeps {
			if strings.HasPrefix(line, kept+" ") || strings.HasPrefix(line, kept) && strings.Contains(kept, ":") {
				t.Errorf("it changes %s", line)
			}
		}
	}
	out, msg, _ := tegen(built, "check", "-")
	reports(t, "check", out+msg, r.check)
}

// reports holds what a command prints to parts of it; to nothing where there are none.
func reports(t *testing.T, command, msg string, parts []string) {
	t.Helper()
	if len(parts) == 0 && msg != "" {
		t.Errorf("%s reports\n%s", command, msg)
	}
	for _, part := range parts {
		if !strings.Contains(msg, part) {
			t.Errorf("%s does not report %q, but\n%s", command, part, msg)
		}
	}
}

// leavesOf are the fields of a stream's objects and their values. Names of objects are without prefix and hash.
func leavesOf(t *testing.T, stream string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for doc := range strings.SplitSeq(stream, "\n---\n") {
		var object map[string]any
		fromYAML(t, doc, &object)
		if object == nil {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		name := hashOfName.ReplaceAllString(fmt.Sprint(metadata["name"]), "-H")
		leaves(all, fmt.Sprintf("%s %s: ", object["kind"], strings.TrimPrefix(name, "eu-")), "", object)
	}
	return all
}

func leaves(all map[string]string, object, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			leaves(all, object, strings.TrimPrefix(path+"."+key, "."), value)
		}
	case []any:
		for i, value := range v {
			leaves(all, object, fmt.Sprintf("%s[%d]", path, i), value)
		}
	default:
		all[object+path] = fmt.Sprint(v)
	}
}

// differencesOf are the fields that became another, without the hashes in names, and the objects with a new hash.
func differencesOf(before, after map[string]string) (lines []string) {
	for _, field := range slices.Sorted(maps.Keys(after)) {
		was, is := before[field], after[field]
		object, path, _ := strings.Cut(field, ": ")
		switch {
		case was == is:
		case path == "metadata.annotations.tegen.dev/content-hash":
			lines = append(lines, object+": new hash")
		case hashOfName.ReplaceAllString(was, "-H") != hashOfName.ReplaceAllString(is, "-H"):
			lines = append(lines, field+": "+hashOfName.ReplaceAllString(is, "-H"))
			if env := envOfMap.FindString(path); env != "" {
				lines = append(lines, object+": env A: "+is)
			}
		}
	}
	return lines
}

var envOfMap = regexp.MustCompile(`env\[\d+\]\.valueFrom\.configMapKeyRef\.name$`)
