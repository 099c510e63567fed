package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listed is a line of the list of a Top.
type Listed struct {
	Name    string // of the place
	Overlay string // its directory as seen from the Top's, with slashes; "" where that is unknown
}

// parseList reads a list. Before overlays were in it, a line was a name alone.
func parseList(text string) (list []Listed) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "#") {
			name, overlay, _ := strings.Cut(line, "\t")
			list = append(list, Listed{name, overlay})
		}
	}
	return list
}

func printList(list []Listed) string {
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	for _, l := range list {
		text.WriteString(l.Name)
		if l.Overlay != "" {
			text.WriteString("\t" + l.Overlay)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// sort says what becomes of a place that is not rendered this time. Whoever renders some of his overlays would with
// Prune else remove the others' jobs from their clusters.
func (t Top) sort(u *Unnamed, l Listed, list []Listed, places []Place) {
	there := t.find(l, places)
	switch {
	case there == "" && t.gone(l, list, places) && t.Prune:
		u.Removed = append(u.Removed, l.Name)
		return
	case there == "" && t.gone(l, list, places):
		u.Gone = append(u.Gone, l.Name)
	default:
		u.Kept = append(u.Kept, Listed{l.Name, there})
	}
	u.list = append(u.list, l)
}

// find is the overlay of a listed place: where it was, or beside one that is named; "" where neither is there.
func (t Top) find(l Listed, places []Place) string {
	if was := filepath.Join(t.Dir, filepath.FromSlash(l.Overlay)); l.Overlay != "" && exists(was) {
		return was
	}
	for _, p := range places {
		if abs, err := filepath.Abs(p.Overlay); err == nil && exists(filepath.Join(filepath.Dir(abs), l.Name)) {
			return filepath.Join(filepath.Dir(filepath.Clean(p.Overlay)), l.Name)
		}
	}
	return ""
}

// gone says whether an overlay that was not found is no more. It may be elsewhere where the list does not say where it
// was, or where no overlay is where it was, as in another clone. Who names as many as there were names all.
func (t Top) gone(l Listed, list []Listed, places []Place) bool {
	stayed := slices.ContainsFunc(places, func(p Place) bool {
		return p.Overlay != "" && slices.Contains(list, Listed{filepath.Base(p.Dir), t.relative(p.Overlay)})
	})
	return l.Overlay != "" && stayed || len(places) >= len(list)
}

// relative is an overlay's path as seen from the directory, "" where there is none that fits on a line.
func (t Top) relative(overlay string) string {
	top, err := filepath.Abs(t.Dir)
	if err != nil || overlay == "" {
		return ""
	}
	abs, err := filepath.Abs(overlay)
	if err != nil {
		return ""
	}
	path, err := filepath.Rel(top, abs)
	if err != nil || strings.ContainsAny(path, "\t\r\n") {
		return ""
	}
	return filepath.ToSlash(path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !os.IsNotExist(err)
}
