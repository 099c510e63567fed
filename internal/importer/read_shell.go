package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
	"github.com/tegen-dev/tegen/internal/lazy"
)

// readShell looks for the launcher in the text that a shell reads. Its options can be taken only where it is the only
// one, and started by a plain command.
func (p *program) readShell() {
	s, ok := shell.Scan(p.words()[p.shell])
	plain, hidden := launchersIn(s)
	for _, i := range plain {
		p.launcher = cmp.Or(p.launcher, launchers[path.Base(s.Tokens[i].Text)])
	}
	p.launcher = cmp.Or(p.launcher, hidden)
	switch {
	case p.launcher == "":
	case !ok:
		p.unread = "a quote or bracket in it is not closed: what options its launcher has is not read, and they stay " +
			"there"
	case len(plain) > 1:
		p.unread = "more than one launcher is started in it: what options they have is not read, and they stay there"
	case hidden != "":
		p.unread = hidden + " stands in quotes, a variable or a here-document of it: what options it has is not " +
			"read, and they stay there"
	default:
		p.inText = plain[0] + 1
	}
}

// launchersIn are the words that start one, and the name of one that something else than a plain command starts.
func launchersIn(s *shell.Text) (plain []int, hidden string) {
	first, script := 0, false
	for i, t := range s.Tokens {
		if i == first {
			script = false
		}
		switch name := launchers[path.Base(t.Text)]; {
		case t.Ends:
			first = i + 1
		case slices.Contains(naming, path.Base(s.Tokens[first].Text)) || script:
		case name != "" && !t.Expands:
			plain = append(plain, i)
			script = true // what follows are its words
		case hiddenLauncher(t) != "":
			hidden = cmp.Or(hidden, hiddenLauncher(t))
		default:
			script = strings.HasSuffix(t.Text, ".py")
		}
	}
	for _, text := range s.Documents {
		hidden = cmp.Or(hidden, launcherWithin(text))
	}
	return plain, hidden
}

// naming are commands that start none of the programs they name.
var naming = []string{"echo", "printf", "which", "type"}

var assignment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)

// hiddenLauncher is the launcher within a word, or within the value of a variable.
func hiddenLauncher(t shell.Token) string {
	if text := assignment().ReplaceAllString(t.Text, ""); text != t.Text || strings.ContainsAny(text, " \t\n`(") {
		return launcherWithin(text)
	}
	return ""
}

var looseWord = lazy.Regexp("[^\\s;&|()\"'`]+")

func launcherWithin(text string) string {
	for _, word := range looseWord().FindAllString(text, -1) {
		if name := launchers[path.Base(word)]; name != "" {
			return name
		}
	}
	return ""
}

// takeFromShell takes options out of the text that a shell reads: from the words between the launcher and the first
// that is no option, each with the space before it. An option whose value the shell has yet to expand stays.
func (p *program) takeFromShell(names []string) {
	if p.inText < 0 {
		return
	}
	text := p.words()[p.shell]
	s, _ := shell.Scan(text)
	var b strings.Builder
	done := 0
	for i := p.inText; i < len(s.Tokens); {
		t := s.Tokens[i]
		if t.Ends || !strings.HasPrefix(t.Text, "-") || t.Text == "--" {
			if mayHoldOptions(s.Tokens[i:]) {
				p.unread = "what options " + t.Text + " holds is not read, and they stay there"
			}
			break
		}
		name, value, inline := option(t.Text)
		n, expands := 1, t.Expands
		if next := i + 1; !inline && next < len(s.Tokens) && !s.Tokens[next].Ends &&
			takesNext(name, s.Tokens[next].Text) {
			n, value, expands = 2, s.Tokens[next].Text, expands || s.Tokens[next].Expands
		}
		if p.byController && expands && masterValue().MatchString(value) {
			value, expands = asKubernetesHas(value), false
		}
		switch {
		case !slices.Contains(names, name):
		case expands:
			p.left[name] = value
		default:
			p.keep(name, value, p.from[p.shell], inline || n == 2)
			b.WriteString(text[done:s.Tokens[i-1].To])
			done = s.Tokens[i+n-1].To
		}
		i += n
	}
	p.say(b.String() + text[done:])
}

// mayHoldOptions says whether the first of these words is a variable that may hold options of the launcher, and not
// only the training script: the script follows as a word of its own, nothing follows, or more options of the launcher
// do.
func mayHoldOptions(tokens []shell.Token) bool {
	if t := tokens[0]; t.Ends || !strings.HasPrefix(t.Text, "$") || !t.Expands || strings.Contains(t.Text, "/") {
		return false
	}
	launchers := false
	for i, t := range tokens[1:] {
		name, _, _ := option(t.Text)
		switch isOption := strings.HasPrefix(t.Text, "-"); {
		case t.Ends:
			return i == 0
		case i == 0 && !isOption, launchers && (strings.HasSuffix(t.Text, ".py") || t.Text == "-m"):
			return true
		case isOption && slices.Contains(torchOptions, name):
			launchers = true
		}
	}
	return len(tokens) == 1
}
