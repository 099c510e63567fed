package krm_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// numberOf is the number that a variable of the environment gives, or another one.
func numberOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// drawn is an overlay by chance. Its jobs are files of its own.
type drawn struct {
	*rand.Rand
	jobs  []string // texts, one job each
	names []string // theirs
	files map[string]string
}

const randomComponent = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"

// addJobs adds the jobs of a fixture.
func (d *drawn) addJobs(t *testing.T, file string, text []byte) {
	t.Helper()
	for _, doc := range yamldoc.Split(file, text) {
		n, err := doc.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if n == nil {
			continue
		}
		d.jobs = append(d.jobs, string(doc.Text))
		d.names = append(d.names, yamldoc.Field(n, "metadata", "name").Value)
	}
}

// one is one of some texts.
func (d *drawn) one(of ...string) string { return of[d.IntN(len(of))] }

// patches are a few in a directory, by all that a patch goes by, of what each job has.
func (d *drawn) patches(dir string) (text string) {
	if d.IntN(3) == 0 {
		return ""
	}
	for range 1 + d.IntN(3) {
		name := d.one(d.names...)
		target := "{" + d.one(
			"kind: TrainingJob", "kind: TrainingJob, name: "+name, "name: '"+name[:len(name)/2]+".*'",
			"kind: TrainingJob, labelSelector: '!stage'", "group: tegen.dev, annotationSelector: '!owner'",
			"kind: TrainingJob, labelSelector: drawn=yes",
		) + "}"
		text += d.one(
			"- target: "+target+"\n  patch: |\n    - {op: add, path: /metadata/labels, value: {drawn: \"yes\"}}\n",
			"- target: "+target+"\n  patch: |\n    - {op: replace, path: /spec/image, value: 'patched:"+
				strconv.Itoa(d.IntN(9))+"'}\n",
			"- target: "+target+"\n  patch: |\n    {apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, "+
				"metadata: {name: any, labels: {stage: late}}}\n",
		)
		if d.IntN(3) == 0 {
			head, patch, _ := strings.Cut(text[strings.LastIndex(text, "- target:"):], "  patch: |\n")
			name := fmt.Sprintf("patch-%d.yaml", len(d.files))
			d.files[filepath.Join(dir, name)] = strings.TrimPrefix(patch, "    ")
			text = text[:strings.LastIndex(text, "- target:")] + head + "  path: " + name + "\n"
		}
	}
	return "patches:\n" + text
}

// kustomization is a part of the overlay, in a directory: what stands in any of them.
func (d *drawn) kustomization(dir string) (text string) {
	for _, some := range []string{
		"namePrefix: " + d.one("a-", "b-") + "\n", "nameSuffix: " + d.one("-y", "-z") + "\n",
		"namespace: " + d.one("prod", "ml") + "\n", "labels: [{pairs: {team: vision}}]\n",
		"commonAnnotations: {owner: ann}\n", "images: [{name: example.org/train, newTag: v2}]\n",
		"configurations: [config.yaml]\n",
	} {
		if d.IntN(4) == 0 {
			text += some
		}
	}
	d.files[filepath.Join(dir, "config.yaml")] = "images:\n- {path: spec/image, kind: TrainingJob}\n" +
		"- {path: spec/images/etcd, kind: TrainingJob}\n"
	return text + d.patches(dir)
}

// overlay draws one, whose jobs are the resources of a base in half of the cases.
func (d *drawn) overlay() {
	var list []string
	for i, job := range d.jobs {
		list = append(list, fmt.Sprintf("job-%d.yaml", i))
		d.files[list[i]] = job
	}
	resources := "resources: [" + strings.Join(list, ", ") + "]\n"
	top := d.kustomization("")
	switch d.IntN(3) {
	case 0:
		for _, name := range list {
			d.files["base/"+name] = d.files[name]
		}
		d.files["base/kustomization.yaml"] = header + resources + d.kustomization("base")
		resources = "resources: [base]\n"
	case 1:
		d.files["component/kustomization.yaml"] = randomComponent + "nameSuffix: -c\n" + d.patches("component")
		top += "components: [component]\n"
	}
	if d.IntN(3) == 0 {
		top += "configMapGenerator: [{name: made, literals: [a=b]}]\n"
	}
	if d.IntN(4) == 0 {
		top += "replacements:\n- source: {kind: TrainingJob, name: " + d.names[0] + ", fieldPath: spec.image}\n" +
			"  targets: [{select: {kind: TrainingJob}, fieldPaths: [spec.image]}]\n"
	}
	transformers := "[tegen.yaml]"
	if d.IntN(3) == 0 {
		d.files["labels.yaml"] = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: labels}\n" +
			"labels: {stage: late}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"
		transformers = d.one("[labels.yaml, tegen.yaml]", "[tegen.yaml, labels.yaml]")
	}
	d.files["tegen.yaml"] = generator
	d.files["kustomization.yaml"] = header + resources + "transformers: " + transformers + "\n" + top
}

// draw returns a generator of overlays, and says by which seed it can be had again.
func draw(t *testing.T, round int) *drawn {
	t.Helper()
	seed := numberOf(t, "TEGEN_SEED", 1) + round
	t.Logf("TEGEN_SEED=%d TEGEN_ROUNDS=1 makes this one", seed)
	return &drawn{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), files: map[string]string{}}
}

// TestRandomOverlays: overlays of a few fixtures come out as from kustomize, or are refused by both. What Overlay alone
// refuses are patches that select nothing and references that lead nowhere.
func TestRandomOverlays(t *testing.T) {
	k := newKustomize(t)
	fixtures, err := filepath.Glob(filepath.Join(root, "fixtures/valid/*.yaml"))
	if err != nil || len(fixtures) == 0 {
		t.Fatal("no fixtures: ", err)
	}
	same := 0
	for round := range numberOf(t, "TEGEN_ROUNDS", 6) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			d := draw(t, round)
			for _, i := range d.Perm(len(fixtures))[:1+d.IntN(3)] {
				text, err := os.ReadFile(fixtures[i])
				if err != nil {
					t.Fatal(err)
				}
				d.addJobs(t, fixtures[i], text)
			}
			d.overlay()
			dir, top := folder(t, d.files), d.files["kustomization.yaml"]
			want, msg, failed := k.build(t, dir, full...)
			got, err := overlay(t, dir)
			switch {
			case err != nil && failed != nil:
				return
			case err != nil:
				for line := range strings.Lines(err.Error()) {
					if !strings.Contains(line, "nothing matches its target") && !strings.Contains(line, "needs ") {
						t.Fatalf("kustomize builds it, Overlay does not: %v\n%s", err, top)
					}
				}
				return
			case failed != nil:
				t.Fatalf("Overlay builds what kustomize does not: %v\n%s\n%s", failed, msg, top)
			}
			same++
			if diff := cmp.Diff(byID(t, want), byID(t, got)); diff != "" {
				t.Errorf("(-kustomize +tegen):\n%s\n%s", diff, top)
			}
		})
	}
	if same == 0 && os.Getenv("TEGEN_SEED") == "" {
		t.Error("none was built by both")
	}
}

// TestRandomGroups: many jobs from outside, in groups, come out as they would if the overlay listed them.
func TestRandomGroups(t *testing.T) {
	for round := range numberOf(t, "TEGEN_ROUNDS", 2) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			d := draw(t, round)
			for i := range 40 + d.IntN(40) {
				text := strings.Replace(job, "name: resnet", fmt.Sprintf("name: job-%d", i), 1)
				if d.IntN(3) == 0 {
					text = strings.Replace(text, "metadata:\n", "metadata:\n  labels: {stage: early}\n", 1)
				}
				d.jobs, d.names = append(d.jobs, text), append(d.names, fmt.Sprintf("job-%d", i))
			}
			d.overlay()
			top := d.files["kustomization.yaml"]
			outside := maps.Clone(d.files)
			outside["kustomization.yaml"] = strings.Replace(top, "resources: [base]", "resources: [job-0.yaml]", 1)
			if outside["kustomization.yaml"] != top { // what a base does is done to its own jobs
				list, _, _ := strings.Cut(strings.TrimPrefix(d.files["base/kustomization.yaml"], header), "\n")
				d.files["base/kustomization.yaml"] = header + list + "\n"
			}
			want, failed := overlay(t, folder(t, d.files))
			var sources []schema.Source
			for some := range slices.Chunk(d.jobs, 1+d.IntN(50)) {
				sources = append(sources, schema.Source{
					Name: fmt.Sprintf("%d.yaml", len(sources)), Data: []byte(strings.Join(some, "---\n")),
				})
			}
			got, err := overlay(t, folder(t, outside), sources...)
			if failed != nil || err != nil {
				if failed == nil {
					t.Fatalf("listed it builds, from outside it does not: %v\n%s", err, top)
				}
				return // with jobs from outside a patch that selects nothing has a note
			}
			if diff := cmp.Diff(byID(t, want), byID(t, got)); diff != "" {
				t.Errorf("(-listed +from outside):\n%s\n%s", diff, top)
			}
		})
	}
}
