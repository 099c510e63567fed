package krm

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/render"
)

// writeObjects prints the bundles' objects as items of a list, each with the file that kpt writes it to.
func writeObjects(out *bufio.Writer, bundles []render.Bundle, f formats) error {
	for _, b := range bundles {
		for _, file := range b.Files {
			path := b.Summary.Name + "/" + file.Concern + ".yaml"
			for i, doc := range documents(file.YAML) {
				at, entries := annotationsEnd(doc)
				if at < 0 {
					return fmt.Errorf("placing an object of %s: it has no metadata", path)
				}
				writeItem(out, "- ", doc[:at])
				if lines := f.place(path, i); lines != "" {
					if !entries {
						lines = "  annotations:\n" + lines
					}
					writeItem(out, "  ", []byte(lines))
				}
				writeItem(out, "  ", doc[at:])
			}
		}
	}
	return nil
}

// place are the lines of annotations that name a file and the object's place in it, quoted, since some tools take the
// type of other values for a number.
func (f formats) place(path string, index int) string {
	i := strconv.Itoa(index)
	var lines string
	if f.internal {
		lines = "    " + pathAnnotation + ": '" + path + "'\n    " + indexAnnotation + ": '" + i + "'\n"
	}
	if f.legacy {
		lines += "    " + legacyPath + ": '" + path + "'\n    " + legacyIndex + ": '" + i + "'\n"
	}
	return lines
}

// documents cuts what package manifest printed at its separators.
func documents(text []byte) [][]byte {
	docs := bytes.SplitAfter(text, []byte("\n"+manifest.Separator))
	for i := range docs[:len(docs)-1] {
		docs[i] = docs[i][:len(docs[i])-len(manifest.Separator)]
	}
	return docs
}

// annotationsEnd is where an annotation can be added to an object that package manifest printed, and whether there are
// others before it. It is -1 where the object has no metadata.
func annotationsEnd(doc []byte) (at int, entries bool) {
	const none = -1
	depth := none // of the block that is being read: 0 in metadata, 2 in its annotations
	end := 0
	for pos := 0; pos < len(doc); {
		line := doc[pos:]
		if n := bytes.IndexByte(line, '\n'); n >= 0 {
			line = line[:n]
		}
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		if len(line) > 0 && depth != none && indent <= depth {
			if depth == 2 || indent == 0 {
				return pos, depth == 2
			}
		}
		switch {
		case string(line) == "metadata:":
			depth = 0
		case depth == 0 && string(line) == "  annotations:":
			depth = 2
		}
		pos += len(line) + 1
		end = min(pos, len(doc))
	}
	if depth == none {
		return none, false
	}
	return end, depth == 2
}

// writeItem prints lines indented into a list, the first one after lead. The writer keeps its errors until it is
// flushed.
func writeItem(out *bufio.Writer, lead string, text []byte) {
	for line := range bytes.Lines(text) {
		if len(line) > 1 { // a blank line within a text stays blank
			_, _ = out.WriteString(lead)
		}
		_, _ = out.Write(line)
		lead = "  "
	}
}
