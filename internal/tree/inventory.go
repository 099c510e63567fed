package tree

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

// The inventory is a line for each file that tegen wrote in a place, or for each object in one. It says nothing that
// the files do not: reviewers see in it which objects come and go, and programs need not read YAML. Its name is none
// that Argo CD, Flux or kubectl read manifests from.
const (
	inventoryFile   = "tegen-inventory.txt"
	inventoryOrigin = "the jobs of this directory"
)

// planInventory lists what is planned and the files that stay as they are. It comes last, as it speaks of all others.
func (w *writer) planInventory(unchanged []string) error {
	var lines []string
	for _, f := range w.plan {
		if f.content != nil {
			lines = append(lines, objectLines(f.path, f.content)...)
		}
	}
	for _, path := range unchanged {
		text, err := w.read(path)
		if err != nil {
			return err
		}
		lines = append(lines, objectLines(path, text)...)
	}
	f := &file{path: inventoryFile}
	if len(lines) > 0 {
		slices.Sort(lines)
		f.content = []byte(headerOf(inventoryOrigin) + strings.Join(lines, ""))
	}
	if err := w.inspect(f, inventoryOrigin); err != nil {
		return err
	}
	if f.content == nil && w.origin(inventoryFile) != inventoryOrigin {
		return nil
	}
	w.plan = append(w.plan, f)
	return nil
}

// objectLines are those of a file: its path, apiVersion, kind and namespace/name of each object; the path alone where
// it has none, as the list for kustomize.
func objectLines(path string, text []byte) (lines []string) {
	path = filepath.ToSlash(path)
	if strings.HasSuffix(path, "/"+kustomizationFile) {
		return []string{path + "\n"}
	}
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		o := objectOf(doc)
		if o["kind"] == "" || o["name"] == "" {
			continue
		}
		name := o["name"]
		if o["namespace"] != "" {
			name = o["namespace"] + "/" + name
		}
		lines = append(lines, strings.Join([]string{path, o["apiVersion"], o["kind"], name}, " ")+"\n")
	}
	if len(lines) == 0 {
		return []string{path + "\n"}
	}
	return lines
}

// objectOf reads what tells an object apart from a document as tegen or kustomize prints it: one field a line, two
// spaces deep below metadata. Parsing YAML would take as long as rendering it.
func objectOf(doc []byte) map[string]string {
	o := map[string]string{}
	metadata := false
	for line := range bytes.Lines(doc) {
		key, value, _ := strings.Cut(strings.TrimRight(string(line), "\n"), ": ")
		switch {
		case key == "apiVersion", key == "kind":
			o[key] = strings.Trim(value, `'"`)
		case !strings.HasPrefix(key, " ") && key != "":
			metadata = key == "metadata:"
		case metadata && (key == "  name" || key == "  namespace"):
			o[strings.TrimSpace(key)] = strings.Trim(value, `'"`)
		}
		if len(o) == 4 {
			break
		}
	}
	return o
}
