package schema

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
)

const smallJob = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: %s}
spec:
  image: registry.example/team/resnet:1.4.2
  command: [python, train.py]
  workers: {replicas: 2}
`

func small(name string) string { return fmt.Sprintf(smallJob, name) }

func load(t *testing.T, texts ...string) ([]*job.Job, Errors) {
	t.Helper()
	var sources []Source
	for i, text := range texts {
		sources = append(sources, named(fmt.Sprintf("%d.yaml", i), text)...)
	}
	jobs, err := Load(sources)
	var errs Errors
	if err != nil && !errors.As(err, &errs) {
		t.Fatalf("an error of another type: %T", err)
	}
	return jobs, errs
}

// named are the sources of a text: one of its jobs, and one of each Environment in it, which is named so. Positions
// stay.
func named(name, text string) (sources []Source) {
	if !strings.Contains(text, "kind: Environment\n") {
		return []Source{{Name: name, Data: []byte(text)}}
	}
	jobs := ""
	for _, doc := range yamldoc.Split(name, []byte(text)) {
		lines := strings.Repeat("\n", bytes.Count(doc.Text, []byte("\n")))
		if !bytes.Contains(doc.Text, []byte("kind: Environment\n")) {
			jobs += string(doc.Text)
			continue
		}
		above := strings.Repeat("\n", doc.Line-1)
		sources = append(sources, Source{
			Name: name, Data: []byte(above + string(doc.Text)), Environment: AnyEnvironment,
		})
		jobs += lines
	}
	if strings.TrimSpace(jobs) != "" || len(sources) == 0 {
		sources = append(sources, Source{Name: name, Data: []byte(jobs)})
	}
	return sources
}

func TestHostileInput(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	for _, c := range []struct{ name, text, want string }{
		{"10 MB file", strings.Repeat("a: b\n", 2<<20), "more than the limit"},
		{"10 MB line", strings.Repeat("a", 10<<20), "more than the limit"},
		{"large document", "a: |\n" + strings.Repeat("  text\n", 200000), "more than the limit"},
		{"many documents", strings.Repeat("---\na: b\n", 100000), "more than the limit of 20000"},
		{"flow nesting", deep, "not YAML"},
		{"block nesting", nested(200), "nested deeper"},
		{"bomb", bomb.String(), "anchors are not supported"},
		{"bidirectional", "a: b # \u202e\n", "U+202E changes the direction"},
		{
			"many groups",
			small("a") + "  groups: [" + strings.Repeat("{name: g, image: 'a:1', command: [x]},", 20000) + "]\n",
			"spec.groups: has 20000 items, more than the limit of 2000",
		},
		{
			"many jobs", strings.Repeat("{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob}\n---\n", 5001),
			"5001 jobs exceed the limit of 5000",
		},
		{"NUL", "a: \x00", "NUL byte"},
		{"line separator", "a: b\u2028c", "U+2028"},
		{"next line", "a: b\u0085c", "U+0085"},
		{"BOM", "\xef\xbb\xbfa: b", "byte order mark"},
		{"UTF-16", "\xff\xfea\x00", "byte order mark"},
		{"CRLF", "a: b\r\n", "carriage return"},
		{"bad UTF-8", "a: \xff", "not UTF-8"},
		{"tab", "spec:\n\timage: x", "tab in the indentation"},
		{"duplicate key", "a: 1\na: 2\n", "stands on line 1 already"},
		{"merge key", "a: {<<: {b: c}}", "merge keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, errs := load(t, c.text)
			runtime.ReadMemStats(&after)
			if len(errs) == 0 || !strings.Contains(errs.Error(), c.want) {
				t.Fatalf("got %.200v, want %q", errs, c.want)
			}
			if errs[0].Line < 1 || errs[0].Col < 1 {
				t.Errorf("no position: %v", errs[0])
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d MB were allocated", used>>20)
			}
		})
	}
}

// TestLargeEnvironment: an Environment counts for each job that it is merged into.
func TestLargeEnvironment(t *testing.T) {
	text := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {env: [{name: A, value: " +
		strings.Repeat("a", 900_000) + "}]}\n"
	var jobs strings.Builder
	for i := range 300 {
		jobs.WriteString(small(fmt.Sprintf("j%d", i)) + "---\n")
	}
	_, errs := load(t, text, jobs.String())
	const want = "bytes, merged into 300 jobs, exceeds the limit of 100 MiB in all"
	if len(errs) != 1 || !strings.Contains(errs.Error(), want) || errs[0].File != "0.yaml" || errs[0].Line != 4 {
		t.Errorf("%.300v, want %q", errs, want)
	}
}

func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// TestNothingHides: each mistake of every document is reported, and a document that is not YAML hides no other.
func TestNothingHides(t *testing.T) {
	_, errs := load(t,
		small("Bad")+"---\nspec: [\n---\n"+strings.Replace(small("b"), "image:", "imag:", 1),
		strings.Replace(small("c"), "replicas: 2", "replicas: two, max: none", 1))
	want := []string{"0.yaml:3:18", "0.yaml:10:1", "0.yaml:14:1", "0.yaml:15:3", "1.yaml:7:23", "1.yaml:7:33"}
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s\n%v", diff, errs)
	}
}

func TestDocumentMarkers(t *testing.T) {
	for _, text := range []string{
		small("a") + "---\n" + small("b"),
		small("a") + "---\t# the second\n" + small("b"),
		"--- # first\n" + small("a") + "...\n---\n" + small("b") + "---\n",
		"# a comment\n---\n" + small("a") + "\n---\n# only a comment\n---\n" + small("b"),
	} {
		jobs, errs := load(t, text)
		if errs != nil || len(jobs) != 2 {
			t.Errorf("%d jobs, %v, of:\n%s", len(jobs), errs, text)
		}
	}
	jobs, errs := load(t, strings.Replace(small("a"), "[python, train.py]", "[sh, -c, \"a --- b\"]", 1))
	if errs != nil || jobs[0].Spec.Command[2] != "a --- b" {
		t.Errorf("a marker in a string: %v", errs)
	}
}

// TestShuffled: the order of fields, documents and files changes nothing.
func TestShuffled(t *testing.T) {
	fields := []string{
		"  image: registry.example/a:1\n", "  command: [x]\n", "  workers: {max: 4, min: 2}\n",
		"  resources: {gpu: 1, cpu: 2, memory: 4Gi}\n", "  suspend: true\n",
	}
	make := func(r *rand.Rand) (sources []Source) {
		for _, name := range r.Perm(4) {
			lines := slices.Clone(fields)
			r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			sources = append(sources,
				Source{
					Name: fmt.Sprint(name),
					Data: []byte(fmt.Sprintf("spec:\n%skind: TrainingJob\nmetadata: {name: j%d}\napiVersion: "+
						"tegen.dev/v1alpha1\n", strings.Join(lines, ""), name)),
				})
		}
		return sources
	}
	var want []byte
	for seed := range uint64(20) {
		jobs, err := Load(make(rand.New(rand.NewPCG(seed, 0))))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for _, j := range jobs {
			j.Origin.At = structural.Position{}
			fmt.Fprintf(&got, "%+v\n", j.Metadata)
			fmt.Fprintf(&got, "%+v\n", j.Spec.Workers)
		}
		if want == nil {
			want = got.Bytes()
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: here}
spec:
  namespace: training
  defaults: {resources: {cpu: 3, gpu: 2, memory: 4Gi}, identity: {nodeRole: {}}, placement: {nodeSelector: {zone: a}}}
  overrides: {suspend: true, resources: {gpu: 1, cpu: 1, memory: 4Gi}}
  env: [{name: A, value: env}, {name: B, value: env}]
  images: [{from: registry.example/, to: mirror.example/r/}, {from: registry.example/team/, to: mirror.example/t/}]
  caps: {memory: 2Gi}
  accelerator: {tolerations: [{key: gpu, operator: Exists}], nodeSelector: {pool: gpu, zone: b}}
  storage: {replace: all, nfs: {server: nfs.example, path: /export}}
`
	text := strings.Replace(small("a"), "workers:", `resources: {cpu: 1, memory: 8Gi}
  env: [{name: A, value: own}]
  storage: [{mountPath: /data, claim: shared}, {name: s, mountPath: /s, emptyDir: {}}]
  workers:`, 1)
	jobs, errs := load(t, text, env)
	if errs != nil {
		t.Fatal(errs)
	}
	j := jobs[0]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"an environment names the namespace", j.Metadata.Namespace, "training"},
		{"the job's own value wins over a default", j.Spec.Resources.CPU.String(), "1"},
		{"an override wins over a default", j.Spec.Resources.GPU, int64(1)},
		{"an override wins over the product's default", j.Spec.Suspend, true},
		{"a cap lowers", j.Spec.Resources.Memory.String(), "2Gi"},
		{"the longest image prefix is rewritten", j.Spec.Image, "mirror.example/t/resnet:1.4.2"},
		{"the job's own variable wins", *j.Spec.Env[0].Value, "own"},
		{"a further variable is added", j.Spec.Env[1].Name, "B"},
		{"the job's side of a selector wins", j.Spec.Placement.NodeSelector["zone"], "a"},
		{"accelerators bring their selector", j.Spec.Placement.NodeSelector["pool"], "gpu"},
		{"accelerators bring tolerations", len(j.Spec.Placement.Tolerations), 1},
		{"a volume moves to a directory of its claim", j.Spec.Storage[0].NFS.Path, "/export/training/shared"},
		{"an existing claim becomes the job's own", j.Spec.Storage[0].ClaimName(j), "a-data"},
		{"a moved volume has the default size", j.Spec.Storage[0].NFS.Size.String(), "10Gi"},
		{"scratch space stays", j.Spec.Storage[1].EmptyDir != nil, true},
		{"identity comes from the defaults", j.Spec.Identity.NodeRole != nil, true},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

// TestStorageClassesOfStores: the volume of an etcd or a companion stays one of its own, of a class that exists here.
func TestStorageClassesOfStores(t *testing.T) {
	for _, c := range []struct{ where, named, unnamed string }{
		{"replace: all, dynamic: {storageClass: standard}", "standard", "standard"},
		{"replace: all, dynamic: {}", "", ""},
		{"replace: all, nfs: {server: nfs.example, path: /export}", "", ""},
		{"replace: unnamed, dynamic: {storageClass: standard}", "gp3", "standard"},
		{"replace: unnamed, nfs: {server: nfs.example, path: /export}", "gp3", ""},
	} {
		env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {storage: {" + c.where +
			"}}\n"
		text := strings.Replace(small("a"), "workers:", `rendezvous:
    {backend: etcd, store: etcd, etcd: {storage: {size: 8Gi, storageClass: gp3}}}
  workers:`, 1) + "---\n" + strings.Replace(small("b"), "workers:", `rendezvous:
    {backend: etcd, store: companion, companion: {storage: {size: 8Gi}}}
  images: {rendezvous: registry.example/rendezvous:1}
  workers:`, 1)
		jobs, errs := load(t, text, env)
		if errs != nil {
			t.Fatal(errs)
		}
		got := []string{
			jobs[0].Spec.Rendezvous.Etcd.Storage.StorageClass,
			jobs[1].Spec.Rendezvous.Companion.Storage.StorageClass,
		}
		if diff := cmp.Diff([]string{c.named, c.unnamed}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.where, diff)
		}
	}
}

// TestAlternativesAreOneValue: an override of one alternative replaces another, it is not merged with it.
func TestAlternativesAreOneValue(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {overrides: {identity: " +
		"{nodeRole: {}}}}\n"
	text := strings.Replace(small("a"), "workers:",
		"identity: {irsa: {role: 'arn:aws:iam::123456789012:role/r'}}\n  workers:", 1)
	jobs, errs := load(t, text, env)
	if errs != nil {
		t.Fatal(errs)
	}
	if id := jobs[0].Spec.Identity; id.IRSA != nil || id.NodeRole == nil {
		t.Errorf("identity: %+v", id)
	}
}

// TestEnvironmentMistakesHaveItsFile: what an environment makes wrong is reported there.
func TestEnvironmentMistakesHaveItsFile(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec:\n  overrides:\n    " +
		"workers: {replicas: 3, max: 2}\n"
	_, errs := load(t, small("a"), env)
	if len(errs) != 1 || errs[0].Error() != "1.yaml:6:25: spec.workers.replicas: 3 is above max 2" {
		t.Errorf("got %v", errs)
	}
}

// TestNoConsequences: a mistake is reported once, and not again by what follows from it.
func TestNoConsequences(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec:\n  defaults: {image: " +
		"'a:1', workers: {replicas: %s}}\n  caps: {cpu: %s}\n%s"
	bare := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {command: [x]}\n"
	for _, c := range []struct {
		what  string
		texts []string
		want  int
	}{
		{"two names that are none", []string{small("Foo"), small("Bar")}, 2},
		{
			"a mistyped namespace in two jobs of one name",
			[]string{
				strings.Replace(small("a"), "name: a", "name: a, nmespace: x", 1),
				strings.Replace(small("a"), "name: a", "name: a, nmespace: y", 1),
			},
			2,
		},
		{
			"an environment with an unknown field still gives what is required",
			[]string{bare, fmt.Sprintf(env, "2", "1", "  cpas: {}\n")},
			1,
		},
		{"an environment's number in another notation", []string{bare, fmt.Sprintf(env, "2", "0x10", "")}, 1},
		{"an environment's default that is none", []string{bare, fmt.Sprintf(env, "0x2", "1", "")}, 1},
		{
			"metadata mistyped, with an environment that gives the image",
			[]string{strings.Replace(bare, "metadata", "metadta", 1), fmt.Sprintf(env, "2", "1", "")},
			2,
		},
		{
			"a field that stands elsewhere",
			[]string{strings.Replace(small("a"), "workers: {replicas: 2}", "replicas: 4", 1)},
			1,
		},
		{"a mistyped field", []string{strings.Replace(small("a"), "command:", "comand:", 1)}, 1},
	} {
		if _, errs := load(t, c.texts...); len(errs) != c.want {
			t.Errorf("%s: %d messages, want %d:\n%v", c.what, len(errs), c.want, errs)
		}
	}
}

// TestNeighbours: a mistake in one field hides no rule about others beside it.
func TestNeighbours(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{
			"workers: {replicas: 2}", "workers: {replicas: 2}\n  resources: {shm: 8Gi, memory: 4Gi, gpus: 1}",
			"8Gi is above memory 4Gi",
		},
		{"workers: {replicas: 2}", "workers: {min: 4, max: 2, firstIndx: 1}", "2 is below min 4"},
		{
			"workers: {replicas: 2}", "workers: {replicas: 2}\n  rendezvous: {backend: etcd, lastcall: 5s}",
			"needs a store",
		},
		{
			"image: registry.example/team/resnet:1.4.2", "image: x:latest\n  createNamespace: true",
			"namespace default exists",
		},
	} {
		_, errs := load(t, strings.Replace(small("a"), c.from, c.to, 1))
		if len(errs) != 2 || !strings.Contains(errs.Error(), c.want) {
			t.Errorf("want %q and one more:\n%v", c.want, errs)
		}
	}
}

// TestPlacesOfItems: what is wrong in a list is reported at its own place, whatever else is wrong in it.
func TestPlacesOfItems(t *testing.T) {
	_, errs := load(t, strings.Replace(small("a"), "[python, train.py]", `[5, "--x=<NAME>"]`, 1))
	if len(errs) != 2 || errs[1].Path != "spec.command[1]" {
		t.Errorf("got %v", errs)
	}
}

// FuzzLoad: whatever the bytes, Load ends, and every error has a position inside the file.
func FuzzLoad(f *testing.F) {
	for _, kind := range []string{"valid", "invalid"} {
		files, err := os.ReadDir("../fixtures/" + kind)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile("../fixtures/" + kind + "/" + file.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := Load([]Source{{Name: "f.yaml", Data: text}})
		if err == nil {
			return
		}
		var errs Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("an error without a position: %v", err)
		}
		lines := bytes.Count(text, []byte("\n")) + 1
		for _, e := range errs {
			if e.File != "f.yaml" || e.Line < 1 || e.Line > lines || e.Col < 1 || e.Msg == "" ||
				strings.Contains(e.Msg, "\n") {
				t.Fatalf("position %s:%d:%d of %d lines, message %q", e.File, e.Line, e.Col, lines, e.Msg)
			}
		}
	})
}
