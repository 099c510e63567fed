package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/importer/shell"
)

// program is what a container runs: the words of its command and of its arguments, in which a launcher's options are
// looked up and taken out. It changes as little as it can: what is not taken stays as it was written.
type program struct {
	command, args []string
	start         int    // of the launcher's options among all words; -1 where no launcher is seen
	inText        int    // the same among the words of the text that a shell reads
	launcher      string // its name
	shell         int    // the word that a shell reads, -1 for none
	from          []view // where the words stood, in the order of both
	taken         map[string]string
	at            map[string]view   // where the options stood that were taken
	flags         map[string]bool   // options without a value that were taken
	left          map[string]string // options that a shell has yet to fill in, and which stay
	// the pods' controller says who is who: options that hold its variables alone are taken from a shell too
	byController bool
	// why options of a launcher that a shell starts stay where they are, "" where they were read
	unread string
}

// launchers are the programs that start training processes, and the modules that python runs in their place.
var launchers = map[string]string{
	"torchrun": "torchrun", "dlrover-run": "dlrover-run", "horovodrun": "horovodrun",
	"bpslaunch": "bpslaunch", "torch.distributed.run": "torchrun",
	"torch.distributed.launch": "torchrun", "torchelastic.distributed.launch": "torchrun",
	"dlrover.trainer.torch.elastic_run": "dlrover-run",
}

func newProgram(c view) *program {
	p := &program{
		command: c.at("command").texts(), args: c.at("args").texts(),
		from:  append(c.at("command").items(), c.at("args").items()...),
		taken: map[string]string{}, at: map[string]view{}, flags: map[string]bool{}, left: map[string]string{},
	}
	p.find()
	return p
}

// find looks for the launcher among the words.
func (p *program) find() {
	p.start, p.inText, p.shell, p.launcher, p.unread = -1, -1, -1, "", ""
	words := p.words()
	if i := shell.TextIn(words); i >= 0 {
		p.shell = i
		p.readShell()
		return
	}
	for i, word := range words {
		name := launchers[path.Base(word)]
		isModule := name != "" && i > 0 && words[i-1] == "-m"
		if name != "" && (i == 0 || isModule) {
			p.start, p.launcher = i+1, name
			break
		}
	}
	if p.start < 0 {
		p.startedByOther(words)
	}
}

// startedByOther looks for a launcher that another program starts: env, or one that measures it. Which words are that
// program's is not known, so that the options stay.
func (p *program) startedByOther(words []string) {
	for i, word := range words {
		name := launchers[path.Base(word)]
		switch {
		case i == 0 && slices.Contains(naming, path.Base(word)), strings.HasSuffix(word, ".py"),
			strings.HasSuffix(word, ".sh"):
			return
		case i > 0 && name != "":
			p.launcher = name
			p.unread = fmt.Sprintf("%s is started by %s: what options it has is not read, and they stay there", name,
				words[0])
			return
		}
	}
}

func (p *program) words() []string { return slices.Concat(p.command, p.args) }

// drop removes words from i on; those of the command and those of the arguments stay apart.
func (p *program) drop(i, n int) {
	for range n {
		p.from = slices.Delete(slices.Clone(p.from), i, i+1)
		if i < len(p.command) {
			p.command = slices.Delete(slices.Clone(p.command), i, i+1)
		} else {
			p.args = slices.Delete(slices.Clone(p.args), i-len(p.command), i-len(p.command)+1)
		}
	}
}

// flagOptions are options of the launchers that take no value.
var flagOptions = []string{
	"standalone", "module", "m", "no-python", "run-path", "virtual-local-rank", "network-check",
	"node-check", "comm-perf-test", "auto-config", "auto-tunning", "exclude-straggler",
	"save-at-breakpoint", "precheck", "numa-affinity", "membind-policy", "gloo", "mpi", "verbose",
}

// take takes the launcher's options of these names out of the program, whatever their spelling. It stops at the first
// word that is no option: from there on the words are the training program's.
func (p *program) take(names ...string) {
	if p.shell >= 0 {
		p.takeFromShell(names)
		return
	}
	if p.start < 0 {
		return
	}
	for i := p.start; i < len(p.words()); {
		word := p.words()[i]
		if !strings.HasPrefix(word, "-") || word == "--" {
			return
		}
		name, value, inline := option(word)
		n, at := 1, p.from[i]
		if rest := p.words()[i+1:]; !inline && len(rest) > 0 && takesNext(name, rest[0]) {
			n, value, at = 2, rest[0], p.from[i+1]
		}
		if !slices.Contains(names, name) {
			i += n
			continue
		}
		p.keep(name, value, at, inline || n == 2)
		p.drop(i, n)
	}
}

// takesNext says whether the word behind an option is its value.
func takesNext(name, next string) bool {
	return !slices.Contains(flagOptions, name) && !strings.HasPrefix(next, "-")
}

func (p *program) keep(name, value string, at view, hasValue bool) {
	if hasValue {
		p.taken[name], p.at[name] = value, at
	} else {
		p.flags[name] = true
	}
}

// option splits --some_name=value; launchers take '_' for '-'.
func option(word string) (name, value string, inline bool) {
	name, value, inline = strings.Cut(strings.TrimLeft(word, "-"), "=")
	return strings.ReplaceAll(name, "_", "-"), value, inline
}

// say replaces the text that a shell reads.
func (p *program) say(text string) {
	if n := len(p.command); p.shell < n {
		p.command = slices.Clone(p.command)
		p.command[p.shell] = text
	} else {
		p.args = slices.Clone(p.args)
		p.args[p.shell-n] = text
	}
}

// takeInOrder takes options that stand at the start, in this order and no other, as a generator writes them.
func (p *program) takeInOrder(names ...string) {
	for _, name := range names {
		if words := p.words(); p.shell < 0 && p.start >= 0 && p.start < len(words) {
			if first, value, inline := option(words[p.start]); inline && first == name &&
				strings.HasPrefix(words[p.start], "-") {
				p.keep(name, value, p.from[p.start], true)
				p.drop(p.start, 1)
			}
		}
	}
}

// set gives the draft what is left, and marks the words that were taken as translated. Words without a field are
// reported where they are read.
func (p *program) set(d *draft, c view) {
	d.set("spec.command", p.command, c.at("command"))
	d.set("spec.args", p.args, c.at("args"))
	p.origins(d, c)
	kept := slices.DeleteFunc(sortedKeys(p.taken), func(name string) bool {
		return slices.Contains(staticOptions,
			name)
	})
	if p.shell >= 0 && len(kept) > 0 {
		d.note(programOf(c), Translated, "of %s's options, --%s became fields of the job", p.launcher,
			strings.Join(kept, ", --"))
	}
	if len(p.taken)+len(p.flags) > 0 {
		c.at("command").markTranslated()
		c.at("args").markTranslated()
	}
}

// origins records where each word of the job stood in the source, unless it changed.
func (p *program) origins(d *draft, c view) {
	all := append(c.at("command").items(), c.at("args").items()...)
	for _, list := range []struct {
		field string
		words []string
	}{{"spec.command", p.command}, {"spec.args", p.args}} {
		for i, word := range list.words {
			if n := slices.IndexFunc(all, func(v view) bool { return v.text() == word }); n >= 0 {
				d.origin[fmt.Sprintf("%s[%d]", list.field, i)] = all[n]
				all = all[n+1:]
			}
		}
	}
}

// programOf is the command of a container, or its args where it has no command.
func programOf(c view) view {
	if c.at("command").isSet() {
		return c.at("command")
	}
	return c.at("args")
}
