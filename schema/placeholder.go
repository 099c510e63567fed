package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholder is what a copied example leaves to be filled in: <NAME> anywhere, <a name> where it is a whole text or a
// whole part of a path or list.
var placeholder = regexp.MustCompile(`<[A-Z][A-Z0-9_-]+>|(?:^|[/=:,@-])(<[A-Za-z][A-Za-z0-9 _-]*>)(?:$|[/=:,@.-])`)

// tokens of models that are written like a placeholder in capitals.
var tokens = []string{"<BOS>", "<CLS>", "<EOS>", "<MASK>", "<PAD>", "<SEP>", "<UNK>"}

// Placeholders finds such in a text, and says where each starts and ends. Among the words of a program, and in its
// variables, <pad> and <end_of_turn> are tokens of a model and no placeholders: there one has a capital, a space or
// "your" in it, or is with a _ a part of a path.
func Placeholders(text string, inProgram bool) (all [][2]int) {
	for at := 0; at < len(text); {
		m := placeholder.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		if m[2] >= 0 {
			from, to = at+m[2], at+m[3]
		}
		word := text[from:to]
		inPath := from > 0 && strings.ContainsRune("/:@", rune(text[from-1])) || strings.HasPrefix(text[to:], "/")
		named := strings.ToLower(word) != word && !slices.Contains(tokens, word) || strings.Contains(word, " ") ||
			strings.Contains(word, "your") || inPath && strings.Contains(word, "_")
		if !inProgram || named {
			all = append(all, [2]int{from, to})
		}
		at = to
	}
	return all
}

// fileSystemNotes name file systems that nobody has: the id of an overlay that was copied and not filled in.
func (s *Spec) fileSystemNotes() (notes []string) {
	for i, v := range s.Storage {
		id := ""
		switch {
		case v.EFS != nil:
			id = v.EFS.FileSystem
		case v.FSx != nil:
			id = v.FSx.FileSystem
		}
		if id != "" && strings.Trim(id, "0") == "fs-" {
			notes = append(notes, fmt.Sprintf("spec.storage[%d]: %s is the id of no file system: put in that of "+
				"yours, in the job or in its Environment", i, id))
		}
	}
	return notes
}

// isProgram says whether a field is a part of what a container runs, in a job or its podTemplate.
func isProgram(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(step string) bool {
		name, _, _ := strings.Cut(step, "[")
		return name == "command" || name == "args" || name == "env"
	})
}
