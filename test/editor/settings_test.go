package editor

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"

	"github.com/tegen-dev/tegen/internal/starter"
)

// testSettings: what docs/editors.md says to set has files known by their names.
func testSettings(t *testing.T) {
	folder := workspace(t)
	var written map[string]any
	if err := json.Unmarshal([]byte(block(t, ".vscode/settings.json")), &written); err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{}
	for name, value := range written {
		settings[strings.TrimPrefix(name, "yaml.")] = value
	}
	if err := os.Mkdir(filepath.Join(folder, "schemas"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name := range settings["schemas"].(map[string]any) {
		if err := os.Rename(filepath.Join(folder, path.Base(name)), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, folder, settings)
	_, plain, _ := strings.Cut(job, "\n")
	_, place, _ := strings.Cut(environment, "\n")
	s.compare(t, map[string]given{
		"jobs/resnet.yaml": {
			plain + "  suspnd: true\n", []diagnostic{{on(5, 2, 8), "Property suspnd is not allowed."}},
		},
		"jobs/kustomization.yaml": {"resources: [resnet.yaml]\n", nil},
		"overlays/kind/environment.yaml": {
			place + "  default: {}\n", []diagnostic{{on(4, 2, 9), "Property default is not allowed."}},
		},
		"overlays/kind/kustomization.yaml": {"resources: [../../jobs]\n", nil},
	})
	var list struct{ Items []completion }
	s.at(t, "textDocument/completion", strings.Replace(job, modeline, modeline+"schemas/", 1)+"  fail|", &list)
	i := slices.IndexFunc(list.Items, func(c completion) bool { return c.Label == "failure" })
	if i < 0 || strings.Contains(list.Items[i].InsertText, "inPlace") {
		t.Errorf("completion writes defaults: %+v", list.Items)
	}
}

// TestNeovim: the two editors are told the same.
func TestNeovim(t *testing.T) {
	var code struct {
		Schemas  map[string][]string `json:"yaml.schemas"`
		Defaults bool                `json:"yaml.disableDefaultProperties"`
	}
	if err := json.Unmarshal([]byte(block(t, ".vscode/settings.json")), &code); err != nil {
		t.Fatal(err)
	}
	l := lua.NewState()
	defer l.Close()
	// Of Neovim, the two functions that the settings call.
	err := l.DoString(`vim = {lsp = {
		config = function(name, c) config = c; configured = name end,
		enable = function(name) enabled = name end,
	}}` + "\n" + block(t, "init.lua"))
	if err != nil {
		t.Fatal(err)
	}
	const server = "yamlls"
	if name := l.GetGlobal("configured").String(); name != server || l.GetGlobal("enabled").String() != server {
		t.Errorf("configured %s and enabled %s", name, l.GetGlobal("enabled"))
	}
	yaml := table(t, table(t, l.GetGlobal("config"), "settings"), "yaml")
	if defaults := l.GetField(yaml, "disableDefaultProperties"); defaults != lua.LBool(code.Defaults) {
		t.Errorf("disableDefaultProperties is %s", defaults)
	}
	schemas := map[string][]string{}
	table(t, yaml, "schemas").ForEach(func(name, patterns lua.LValue) {
		patterns.(*lua.LTable).ForEach(func(_, pattern lua.LValue) {
			schemas[name.String()] = append(schemas[name.String()], pattern.String())
		})
	})
	if diff := cmp.Diff(code.Schemas, schemas); diff != "" {
		t.Errorf("schemas (-VS Code +Neovim):\n%s", diff)
	}
}

func table(t *testing.T, of lua.LValue, name string) *lua.LTable {
	t.Helper()
	parent, ok := of.(*lua.LTable)
	if !ok {
		t.Fatalf("%s is in no table: %s", name, of)
	}
	child, ok := parent.RawGetString(name).(*lua.LTable)
	if !ok {
		t.Fatalf("%s is no table", name)
	}
	return child
}

// block is the text of a code block of docs/editors.md.
func block(t *testing.T, marker string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/editors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- "+marker+" -->\n```")
	_, rest, ok2 := strings.Cut(rest, "\n")
	body, _, ok3 := strings.Cut(rest, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("docs/editors.md has no block %s", marker)
	}
	return body
}

// released is where the schemas of a release are.
const released = "https://github.com/tegen-dev/tegen/releases/latest/download/"

// lines are the comments by which files of the repository name a schema.
var lines = regexp.MustCompile(`(?m)^# yaml-language-server: \$schema=(\S+)\n`)

// testModelines: files that name a released schema are right under it, and no other kind's is named.
func testModelines(t *testing.T, s *server) {
	files := map[string]string{"both.yaml": block(t, "jobs/both.yaml"), "resnet.yaml": block(t, "jobs/resnet.yaml")}
	for _, name := range []string{"kind", "eks"} {
		text, err := os.ReadFile("../../overlays/" + name + "/environment.yaml")
		if err != nil {
			t.Fatal(err)
		}
		files[name+".yaml"] = string(text)
	}
	for _, framework := range starter.Frameworks() {
		all, err := starter.Files(starter.Options{
			Framework: framework, Target: starter.TargetsOf(framework)[0], Overlay: "overlays/lab", CI: starter.None,
		})
		if err != nil {
			t.Fatal(err)
		}
		files[framework+".yaml"] = string(all[starter.JobFile])
		files["lab.yaml"] = string(all["overlays/lab/environment.yaml"])
	}
	cases := map[string]given{}
	for name, text := range files {
		for _, doc := range strings.Split(text, "\n---\n") {
			schema := "trainingjob.schema.json"
			if strings.Contains(doc, "\nkind: Environment\n") {
				schema = "environment.schema.json"
			}
			if named := lines.FindStringSubmatch(doc); named == nil || named[1] != released+schema {
				t.Errorf("%s names %q and not %s", name, named, released+schema)
			}
		}
		local := strings.ReplaceAll(text, released, "") // which is beside the file
		cases[name] = given{local, nil}
		line := strings.Count(local[:strings.Index(local, "\nmetadata:")], "\n") + 1
		cases["misspelt-"+name] = given{
			strings.Replace(local, "\nmetadata:", "\nmetdata: {}\nmetadata:", 1),
			[]diagnostic{{on(line, 0, 7), "Property metdata is not allowed."}},
		}
	}
	s.compare(t, cases)
}
