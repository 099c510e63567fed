package importer_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/test/meaning"
)

// corpus is a folder beside the repository: manifests that others published. None of them is in the repository.
const corpus = "../../../shared/corpus"

// TestCorpus holds import against published manifests: it ends, what it calls valid renders, what it calls complete has
// lost nothing without a word, and it refuses few.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(corpus + "*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Skip("the manifests of others are not on this machine: nothing is compared with them")
	}
	var table strings.Builder
	refused, valid, strict := 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(meaning.Fill(string(text)))
			out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: text}})
			t.Logf("%s%s", out.YAML, lines(out.Notes))
			verdict := "renders, --strict too"
			switch {
			case out.Jobs == 0:
				if filepath.Dir(file) == corpus { // the other folder has many kinds of no job
					refused++
				}
				verdict = "refused: " + out.Notes[len(out.Notes)-1].Why
			case out.Invalid:
				verdict = "must be corrected: " + blocker(out.Notes)
			case out.Lossy:
				valid++
				verdict = "renders, and --strict fails"
			default:
				valid++
				strict++
			}
			fmt.Fprintf(&table, "%-90s %s\n", name, verdict)
			if out.Jobs == 0 || out.Invalid {
				return
			}
			made := renders(t, out.YAML)
			for _, loss := range losses(t, text, made+"\n---\n"+string(out.YAML), out.Notes) {
				t.Errorf("lost without a word: %s", loss)
			}
			if len(documents(t, string(text))) == 0 {
				return // a key stands twice, and no strict reader reads it
			}
			for _, gain := range gains(t, string(text), made, out.Notes) {
				t.Errorf("rendered without a word: %s", gain)
			}
		})
	}
	t.Logf("%s%d files: %d refused, %d that render, %d of them with nothing lost", table.String(), len(files), refused,
		valid, strict)
	if refused >= 5 {
		t.Errorf("%d of %d files are refused", refused, len(files))
	}
}

func lines(notes []importer.Note) string {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// blocker is the first note that says what must be corrected, or all of them where none does, which is a mistake.
func blocker(notes []importer.Note) string {
	for _, n := range notes {
		if n.Verdict == importer.Refused || n.Verdict == importer.Error && strings.Contains(n.Why, "placeholder") {
			return n.Field + ": " + n.Why
		}
	}
	return lines(notes)
}

// renders is what jobs that were called valid become.
func renders(t *testing.T, text []byte) string {
	t.Helper()
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: text}})
	if err != nil {
		t.Fatalf("it does not load: %v", err)
	}
	bundles, err := render.Jobs(jobs, render.Options{})
	if err != nil {
		t.Fatalf("it does not render: %v", err)
	}
	var b strings.Builder
	if err := render.Write(&b, bundles); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// losses are the values of manifests that are neither in a text under the same key, nor below or above a place that a
// note names. It looks with other eyes than import does: it compares no objects.
func losses(t *testing.T, text []byte, kept string, notes []importer.Note) (out []string) {
	t.Helper()
	pairs := map[string]bool{}
	for _, object := range documents(t, kept) {
		walk(object, "", "", func(path, key, value string) {
			pairs[keyInPod(path, key)+"="+amount(value)] = true
		})
	}
	for _, object := range documents(t, string(text)) {
		kind := fmt.Sprint(object["kind"])
		walk(object, "", "", func(path, key, value string) {
			if wordKey(key) == "word" {
				for _, word := range lostWords(path, value, kept, notes) {
					out = append(out, path+": "+word)
				}
				return
			}
			kept := pairs[keyInPod(path, key)+"="+amount(value)]
			if !kept && !reportsPath(notes, kind, path) && !unsaid.MatchString(path+"="+value) {
				out = append(out, path+": "+value)
			}
		})
	}
	return out
}

// keyInPod is a key with the one above it, within a pod: a role has a restartPolicy too, which is none of its pods.
func keyInPod(path, key string) string {
	steps := regexp.MustCompile(`\[[0-9]+\]`).ReplaceAllString(path, "")
	steps = strings.TrimPrefix(steps, "spec.components.template.") // of an AppWrapper
	at := strings.LastIndex(steps, "template.spec.")
	if at < 0 {
		return key
	}
	above := strings.Split(steps[at+len("template."):], ".")
	// Kubernetes copies limits to requests.
	return strings.Replace(above[max(len(above)-2, 0)], "requests", "limits", 1) + "." + key
}

// lostWords are those of a program's word, or of a shell's text, that no job has and no note shows: that a line says
// what became of the program tells of none of its words. An option that became a field is shown by its name.
func lostWords(path, value, kept string, notes []importer.Note) (out []string) {
	for _, word := range strings.Fields(value) {
		word = strings.Trim(word, `"';\`)
		name, _, _ := strings.Cut(strings.ReplaceAll(word, "_", "-"), "=")
		fromController := slices.ContainsFunc(notes, func(n importer.Note) bool {
			goes := n.Verdict == importer.Changed || n.Verdict == importer.Dropped || n.Verdict == importer.Beside ||
				n.Field == "" && n.Verdict == importer.Translated
			return strings.Contains(n.Why, word) || dials(word, n.Why) ||
				strings.Contains(n.Why, name) || strings.Contains(n.Value, word) ||
				goes && strings.HasPrefix(path, n.Field)
		})
		if !strings.Contains(kept, word) && !fromController && !counts.MatchString(word) {
			out = append(out, word)
		}
	}
	return out
}

// dials says whether a line tells of the address in a word.
func dials(word, why string) bool {
	address, ok := strings.CutPrefix(why, "the pods ")
	address, _, _ = strings.Cut(address, " ")
	return ok && strings.Contains(word, address)
}

// counts are options that are left out where they say what the numbers of workers and accelerators do; TestMeaning
// holds these against each other.
var counts = regexp.MustCompile(`^--n(nodes|proc[_-]per[_-]node)=[0-9]+$`)

// unsaid are places, or values there, that need no word: they are no part of what runs, name what the pod alone knows,
// are idle, or what somebody gives who finds none, as Volcano's queue, and what is the API's default.
var unsaid = regexp.MustCompile(
	`^(kind|apiVersion)=|\.(volumes|volumeMounts)\[[0-9]+\]\.name=|\.resources=|^spec\.queue=default$|` +
		`\.(hostNetwork|readOnly)=false$|^spec\.suspend=false$|\.successPolicy\.operator=All$|\.env\[[0-9]+\]\.value=$`)

// amount is a quantity in one spelling.
func amount(text string) string {
	if q, err := resource.ParseQuantity(text); err == nil {
		return q.String()
	}
	return text
}

var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func reportsPath(notes []importer.Note, kind, path string) bool {
	return slices.ContainsFunc(notes, func(n importer.Note) bool {
		whole := n.Field == "" && (n.Verdict == importer.Beside || n.Verdict == importer.Dropped ||
			n.Verdict == importer.Translated) && strings.HasPrefix(n.Object, kind)
		named := n.Field == "" && n.Verdict == importer.Changed && path == "metadata.name" &&
			strings.HasPrefix(n.Object, kind) // an AppWrapper, of which only the name is in the line
		return whole || named || n.Field != "" && n.Verdict != importer.Added &&
			(strings.HasPrefix(path, n.Field) || strings.HasPrefix(n.Field, path))
	})
}

func documents(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object map[string]any
		switch err := dec.Decode(&object); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil: // a strict reader refuses it
			return nil
		}
		out = append(out, object)
	}
}

// walk visits the scalars of a value, and what is empty, with the path and the key that it stands under.
func walk(value any, path, key string, visit func(path, key, value string)) {
	switch x := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			below := strings.TrimPrefix(path+"."+name, ".")
			if !plain.MatchString(name) {
				below = path + "[" + strconv.Quote(name) + "]"
			}
			walk(x[name], below, name, visit)
		}
		if len(x) == 0 {
			visit(path, key, "{}")
		}
	case []any:
		for i, item := range x {
			walk(item, fmt.Sprintf("%s[%d]", path, i), key, visit)
		}
		if len(x) == 0 {
			visit(path, key, "[]")
		}
	case nil:
	default:
		visit(path, key, strings.TrimSpace(fmt.Sprint(x)))
	}
}
