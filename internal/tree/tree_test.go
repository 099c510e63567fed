package tree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// TestMain spares the disk: no test ends with a loss of power. TestOrder shows when files are synced.
func TestMain(m *testing.M) {
	flush = func(*os.File) error { return nil }
	os.Exit(m.Run())
}

// bundle is a job of namespace/name with files given as "concern: text".
func bundle(id string, files ...string) render.Bundle {
	namespace, name, _ := strings.Cut(id, "/")
	b := render.Bundle{Summary: &schema.Summary{Namespace: namespace, Name: name}}
	for _, f := range files {
		concern, text, _ := strings.Cut(f, ": ")
		b.Files = append(b.Files, render.File{Concern: concern, YAML: []byte(text + "\n")})
	}
	return b
}

// writeTo writes one place, and leaves the folders of other jobs.
func writeTo(ctx context.Context, dir string, bundles []render.Bundle, rest []byte) error {
	_, err := Write(ctx, Place{Dir: dir, Bundles: bundles, Rest: rest})
	return err
}

func mustWrite(t *testing.T, dir string, rest string, bundles ...render.Bundle) {
	t.Helper()
	if err := writeTo(t.Context(), dir, bundles, []byte(rest)); err != nil {
		t.Fatal(err)
	}
}

// state is everything below a directory: the text of files, "dir" for directories, the mode where it is unusual.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			out[name] = "dir"
			return nil
		}
		text, err := os.ReadFile(path)
		out[name] = string(text)
		if info, err := e.Info(); err == nil && info.Mode().Perm() != 0o644 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func header(id string) string {
	return "# Written by tegen from TrainingJob " + id + "; a change made here is lost.\n"
}

// inventory is what lists a tree: "path apiVersion kind name" of each object, or a path.
func inventory(lines ...string) string {
	slices.Sort(lines)
	return "# Written by tegen from the jobs of this directory; a change made here is lost.\n" +
		strings.Join(lines, "\n") + "\n"
}

const ofML = "metadata:\n  namespace: \"ml\"\n"

// list is the kustomization of a folder, which names the namespace of a job.
func list(namespace string, names ...string) string {
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + namespace + "resources:\n"
	for _, n := range names {
		text += "- " + n + ".yaml\n"
	}
	return text
}

// withoutSeals are files without the digests in kustomizations, which TestUnclear is about.
func withoutSeals(files map[string]string) map[string]string {
	for name, text := range files {
		if filepath.Base(name) == kustomizationFile {
			signature, _, _ := strings.Cut(text, "\n")
			_, _, body := unsealed(text)
			files[name] = signature + "\n" + body
		}
	}
	return files
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "rendered")
	const named = "\napiVersion: v1\nmetadata:\n  name: x\n  namespace: ml"
	mustWrite(t, dir, "kind: ConfigMap\n", bundle("ml/a", "etcd: kind: Service"+named, "worker: kind: Job"+named),
		bundle("ml/b", "worker: kind: Pod"+named))
	rest := "# Written by tegen from an overlay; a change made here is lost.\n"
	want := map[string]string{
		".": "dir", "a": "dir", "b": "dir", "overlay-resources": "dir",
		"a/etcd.yaml":                          header("ml/a") + "kind: Service" + named + "\n",
		"a/worker.yaml":                        header("ml/a") + "kind: Job" + named + "\n",
		"a/kustomization.yaml":                 header("ml/a") + list(ofML, "etcd", "worker"),
		"b/worker.yaml":                        header("ml/b") + "kind: Pod" + named + "\n",
		"b/kustomization.yaml":                 header("ml/b") + list(ofML, "worker"),
		"overlay-resources/resources.yaml":     rest + "kind: ConfigMap\n",
		"overlay-resources/kustomization.yaml": rest + list("", "resources"),
		"tegen-inventory.txt": inventory("a/etcd.yaml v1 Service ml/x", "a/worker.yaml v1 Job ml/x",
			"a/kustomization.yaml", "b/worker.yaml v1 Pod ml/x", "b/kustomization.yaml",
			"overlay-resources/resources.yaml", "overlay-resources/kustomization.yaml"),
	}
	if diff := cmp.Diff(want, withoutSeals(state(t, dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIdentical: unchanged files are not written again, so that they trigger neither make nor a watcher.
func TestIdentical(t *testing.T) {
	dir := t.TempDir()
	render := func(worker string) {
		mustWrite(t, dir, "rest\n", bundle("ml/a", "etcd: e", "worker: "+worker))
	}
	render("one")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, text := range state(t, dir) {
		if text != "dir" {
			if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	touched := func() (names []string) {
		for name, text := range state(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if text != "dir" && !info.ModTime().Equal(long) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	render("one")
	if got := touched(); len(got) > 0 {
		t.Errorf("the same content wrote %q", got)
	}
	render("two")
	if got := touched(); !slices.Equal(got, []string{"a/kustomization.yaml", "a/worker.yaml"}) {
		t.Errorf("one changed file wrote %q", got)
	}
}

// TestStale: what an earlier render of a job made and this one does not is removed; all else stays.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "etcd: e", "prefetch: p", "worker: w"), bundle("ml/b", "etcd: e", "worker: w"))
	put(t, filepath.Join(dir, "a/notes.md"), "mine")
	put(t, filepath.Join(dir, "a/patch.yaml"), "mine")
	put(t, filepath.Join(dir, "kustomization.yaml"), "resources: [a, b]\n")
	want := state(t, dir)
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
	delete(want, "a/etcd.yaml")
	delete(want, "a/prefetch.yaml")
	want["a/kustomization.yaml"] = header("ml/a") + list(ofML, "worker")
	want["tegen-inventory.txt"] = inventory("a/worker.yaml", "a/kustomization.yaml", "b/etcd.yaml", "b/worker.yaml",
		"b/kustomization.yaml")
	if diff := cmp.Diff(withoutSeals(want), withoutSeals(state(t, dir))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStaleNotOurs: a listed file that lost tegen's signature stays.
func TestStaleNotOurs(t *testing.T) {
	for what, text := range map[string]string{
		"a user's":      "kind: Service # by hand\n",
		"another job's": header("ml/other") + "kind: Service\n",
		"empty":         "",
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			mustWrite(t, dir, "", bundle("ml/a", "etcd: e", "worker: w"))
			put(t, filepath.Join(dir, "a/etcd.yaml"), text)
			mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
			if got := state(t, dir)["a/etcd.yaml"]; got != text {
				t.Errorf("the file holds %q now", got)
			}
		})
	}
}

// TestStaleElsewhere: the list of an earlier render never leads out of the folder.
func TestStaleElsewhere(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
	outside := filepath.Join(dir, "outside.yaml")
	put(t, outside, header("ml/a"))
	put(t, filepath.Join(dir, "a/sub/x.yaml"), header("ml/a"))
	put(t, filepath.Join(dir, "a/kustomization.yaml"), header("ml/a")+"resources: [../outside.yaml, "+outside+
		", sub/x.yaml, https://example.org/x.yaml]\n")
	mustWrite(t, dir, "", bundle("ml/a", "worker: w2"))
	got := state(t, dir)
	for _, name := range []string{"outside.yaml", "a/sub/x.yaml"} {
		if got[name] != header("ml/a") {
			t.Errorf("%s holds %q", name, got[name])
		}
	}
}

// TestRefuse: the error names the file in the way, and no folder changes.
func TestRefuse(t *testing.T) {
	cases := []struct {
		what    string
		prepare func(t *testing.T, dir string)
		bundles []render.Bundle
		rest    string
		says    []string
	}{
		{
			"a user's file",
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a/worker.yaml"), "kind: Job\n") },
			[]render.Bundle{bundle("ml/b", "worker: w"), bundle("ml/a", "etcd: e", "worker: w")},
			"",
			[]string{"a/worker.yaml was not written by tegen"},
		},
		{
			"a user's empty file",
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a/worker.yaml"), "") },
			[]render.Bundle{bundle("ml/a", "worker: w")},
			"",
			[]string{"a/worker.yaml was not written by tegen"},
		},
		{
			"a user's kustomization",
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a/kustomization.yaml"), "resources: []\n") },
			[]render.Bundle{bundle("ml/a", "worker: w")},
			"",
			[]string{"a/kustomization.yaml was not written by tegen"},
		},
		{
			"every file in the way is named",
			func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "a/etcd.yaml"), "x")
				put(t, filepath.Join(dir, "b/worker.yaml"), "x")
			},
			[]render.Bundle{bundle("ml/a", "etcd: e", "worker: w"), bundle("ml/b", "worker: w")},
			"",
			[]string{"a/etcd.yaml", "b/worker.yaml"},
		},
		{
			"another job's folder",
			func(t *testing.T, dir string) { mustWrite(t, dir, "", bundle("other/a", "worker: w")) },
			[]render.Bundle{bundle("ml/a", "worker: w")},
			"",
			[]string{"was rendered from TrainingJob other/a"},
		},
		{
			"a job whose name begins like this one's",
			func(t *testing.T, dir string) {
				put(t, filepath.Join(dir, "a/worker.yaml"), header("ml/a-long"))
			},
			[]render.Bundle{bundle("ml/a", "worker: w")},
			"",
			[]string{"was rendered from TrainingJob ml/a-long"},
		},
		{
			"two jobs of one name",
			func(*testing.T, string) {},
			[]render.Bundle{bundle("ml/a", "worker: w"), bundle("other/a", "worker: w")},
			"",
			[]string{"TrainingJob ml/a and TrainingJob other/a would share the folder a"},
		},
		{
			"a job with the name of the overlay's folder",
			func(*testing.T, string) {},
			[]render.Bundle{bundle("ml/overlay-resources", "worker: w")},
			"kind: ConfigMap\n",
			[]string{"overlay-resources"},
		},
		{
			"a directory in place of a file",
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "b/worker.yaml/x"), "x") },
			[]render.Bundle{bundle("ml/a", "worker: w"), bundle("ml/b", "worker: w")},
			"",
			[]string{"b/worker.yaml"},
		},
		{
			"a file in place of a folder",
			func(t *testing.T, dir string) { put(t, filepath.Join(dir, "b"), "x") },
			[]render.Bundle{bundle("ml/a", "worker: w"), bundle("ml/b", "worker: w")},
			"",
			[]string{"b"},
		},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			mustWrite(t, dir, "", bundle("ml/untouched", "worker: before"))
			c.prepare(t, dir)
			before := state(t, dir)
			err := writeTo(t.Context(), dir, append(c.bundles, bundle("ml/untouched", "worker: after")), []byte(c.rest))
			if err == nil {
				t.Fatal("it was written")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the message lacks %q: %v", s, err)
				}
			}
			if diff := cmp.Diff(before, state(t, dir)); diff != "" {
				t.Errorf("something changed (-before +after):\n%s", diff)
			}
		})
	}
}

// opened is a writer with the lock, as in Write.
func opened(t *testing.T, dir string) *writer {
	t.Helper()
	w, err := open(t.Context(), Place{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.release(false) })
	return w
}

// TestInterrupted: a write that is interrupted while it prepares leaves nothing, and says so.
func TestInterrupted(t *testing.T) {
	base := t.TempDir()
	stop := errors.New("somebody's signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	err := writeTo(ctx, filepath.Join(base, "deep", "out"), []render.Bundle{bundle("ml/a", "worker: w")}, nil)
	if !errors.Is(err, stop) || !strings.Contains(err.Error(), "everything in it is as it was") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(map[string]string{".": "dir"}, state(t, base)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestStageFails: a directory that cannot be made leaves neither temporary files nor the directories made for others.
func TestStageFails(t *testing.T) {
	base := t.TempDir()
	w, err := open(t.Context(), Place{Dir: filepath.Join(base, "deep", "er", "out"), Bundles: []render.Bundle{
		bundle("ml/a", "worker: w"), bundle("ml/b", "worker: w"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.planAll(); err != nil {
		t.Fatal(err)
	}
	w.plan[len(w.plan)-1].path = filepath.Join("b", "none", "deeper", kustomizationFile)
	if err := w.stage(t.Context()); err == nil {
		t.Fatal("it was staged")
	}
	w.discard()
	w.release(true)
	if diff := cmp.Diff(map[string]string{".": "dir"}, state(t, base)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestNoTemporaryFiles: nothing is left beside the files, after success and after failure.
func TestNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"), bundle("ml/b", "worker: w"))
	put(t, filepath.Join(dir, "b/worker.yaml"), "mine")
	if err := writeTo(t.Context(), dir, []render.Bundle{bundle("ml/a", "worker: x"), bundle("ml/b", "worker: x")},
		nil); err == nil {
		t.Fatal("a user's file was replaced")
	}
	for name := range maps.Keys(state(t, dir)) {
		if strings.HasPrefix(filepath.Base(name), ".") && name != "." {
			t.Errorf("%s is left", name)
		}
	}
}

// TestAfterAKill: a render repairs whatever state a killed render left.
func TestAfterAKill(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
	put(t, filepath.Join(dir, "a/namespace.yaml"), header("ml/a")+"kind: Namespace\n") // stale, and listed nowhere
	put(t, filepath.Join(dir, "a/.worker.yaml.tegen-123456"), "half")
	put(t, filepath.Join(dir, "a/.worker.yaml.tegen-new-1"), "half")
	put(t, filepath.Join(dir, "a/.etcd.yaml.tegen-old-1"), header("ml/a"))
	put(t, filepath.Join(dir, "a/.notes.yaml.swp"), "somebody's")
	mustWrite(t, dir, "", bundle("ml/a", "worker: w"))
	var names []string
	for name := range state(t, dir) {
		names = append(names, name)
	}
	slices.Sort(names)
	got := strings.Join(names, " ")
	for name, want := range map[string]bool{
		"namespace.yaml": false, ".worker.yaml.tegen-123456": false,
		".tegen-new": false, ".tegen-old": false, ".notes.yaml.swp": true, "worker.yaml": true,
	} {
		if strings.Contains(got, name) != want {
			t.Errorf("%s is there: %t; all: %s", name, !want, got)
		}
	}
}

// TestObjectsMoveOn: when an overlay's later transformers take the objects over, the job's folder goes, and it comes
// back when they are gone.
func TestObjectsMoveOn(t *testing.T) {
	dir := t.TempDir()
	const object = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  namespace: ml\n"
	whole := bundle("ml/a", "worker: "+strings.TrimSuffix(object, "\n"))
	moved := render.Bundle{Summary: whole.Summary}
	write := func(rest string, b render.Bundle) map[string]bool {
		t.Helper()
		if err := writeTo(t.Context(), dir, []render.Bundle{b}, []byte(rest)); err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, name := range []string{"a/worker.yaml", "a/kustomization.yaml", "overlay-resources/resources.yaml"} {
			_, err := os.Stat(filepath.Join(dir, name))
			there[name] = err == nil
		}
		return there
	}
	jobs := map[string]bool{
		"a/worker.yaml": true, "a/kustomization.yaml": true,
		"overlay-resources/resources.yaml": false,
	}
	rest := map[string]bool{
		"a/worker.yaml": false, "a/kustomization.yaml": false,
		"overlay-resources/resources.yaml": true,
	}
	for i, c := range []struct {
		rest string
		b    render.Bundle
		want map[string]bool
	}{{"", whole, jobs}, {object, moved, rest}, {"", whole, jobs}} {
		if diff := cmp.Diff(c.want, write(c.rest, c.b)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestForeign: files of generators that the program lacks are reported when they are removed, or would be. Others are
// removed without a word.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "worker: 1", "alerts2: 2", "service: 3"))
	p := Place{Dir: dir, Bundles: []render.Bundle{bundle("ml/a", "worker: 1")}}
	p.Generators = []string{"worker", "service"}
	want := []string{filepath.Join("a", "alerts2.yaml")}
	if _, others, err := Check(io.Discard, p); err != nil || !slices.Equal(others[0].Foreign, want) {
		t.Errorf("to check: %+v, %v", others, err)
	}
	if others, err := Write(t.Context(), p); err != nil || !slices.Equal(others.Foreign, want) {
		t.Errorf("to write: %+v, %v", others, err)
	}
	if others, err := Write(t.Context(), p); err != nil || others.Foreign != nil {
		t.Errorf("again: %+v, %v", others, err)
	}
}
