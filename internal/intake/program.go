package intake

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/contract"
)

// program is what a container runs: the words of its command and of its arguments, in which a launcher's options are
// looked up and taken out. It changes as little as it can: what is not taken stays as it was written.
type program struct {
	command, args []string
	start         int    // of the launcher's options among all words; -1 where no launcher is seen
	launcher      string // its name
	shell         int    // the word that a shell reads, -1 for none
	taken         map[string]string
	flags         map[string]bool   // options without a value that were taken
	left          map[string]string // options that a shell has yet to fill in, and which stay
}

// launchers are the programs that start training processes, and the modules that python runs in their place.
var launchers = map[string]string{
	"torchrun": "torchrun", "dlrover-run": "dlrover-run", "horovodrun": "horovodrun", "bpslaunch": "bpslaunch",
	"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun", "torchelastic.distributed.launch": "torchrun",
	"dlrover.trainer.torch.elastic_run": "dlrover-run",
}

func newProgram(c view) *program {
	p := &program{command: c.at("command").texts(), args: c.at("args").texts(), start: -1, shell: -1, taken: map[string]string{}, flags: map[string]bool{}, left: map[string]string{}}
	words := p.words()
	if i := shellWord(words); i >= 0 {
		p.shell = i
		for _, word := range shellWords.FindAllString(words[i], -1) {
			if name := launchers[path.Base(word)]; name != "" {
				p.launcher = name
			}
		}
		return p
	}
	for i, word := range words {
		name := launchers[path.Base(word)]
		isModule := name != "" && i > 0 && words[i-1] == "-m"
		if name != "" && (i == 0 || isModule) {
			p.start, p.launcher = i+1, name
			break
		}
		if i == 1 && word == "run" && path.Base(words[0]) == contract.Rendezvous {
			p.start, p.launcher = 2, contract.Rendezvous
			break
		}
	}
	return p
}

// shellWords are those of a simple command; what a shell would do to more than these stays the shell's.
var shellWords = regexp.MustCompile(`[^\s;&|()]+`)

// shellWord is the index of the text in sh -c TEXT, -1 for other commands.
func shellWord(words []string) int {
	if len(words) < 3 || !slices.Contains([]string{"sh", "bash", "dash", "ash"}, path.Base(words[0])) {
		return -1
	}
	for i, word := range words[1 : len(words)-1] {
		if strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") && !strings.HasPrefix(word, "--") {
			return i + 2
		}
	}
	return -1
}

func (p *program) words() []string { return slices.Concat(p.command, p.args) }

// drop removes words from i on; those of the command and those of the arguments stay apart.
func (p *program) drop(i, n int) {
	for range n {
		if i < len(p.command) {
			p.command = slices.Delete(slices.Clone(p.command), i, i+1)
		} else {
			p.args = slices.Delete(slices.Clone(p.args), i-len(p.command), i-len(p.command)+1)
		}
	}
}

// bare are options of the launchers that take no value.
var bare = []string{
	"standalone", "module", "m", "no-python", "run-path", "virtual-local-rank", "network-check", "node-check", "comm-perf-test",
	"auto-config", "auto-tunning", "exclude-straggler", "save-at-breakpoint", "precheck", "numa-affinity", "membind-policy", "gloo", "mpi", "verbose",
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
		n := 1
		if !inline && !slices.Contains(bare, name) {
			n = 2
			if i+1 < len(p.words()) {
				value = p.words()[i+1]
			}
		}
		if !slices.Contains(names, name) {
			i += n
			continue
		}
		p.keep(name, value, inline || n == 2)
		p.drop(i, min(n, len(p.words())-i))
	}
}

func (p *program) keep(name, value string, hasValue bool) {
	if hasValue {
		p.taken[name] = value
	} else {
		p.flags[name] = true
	}
}

// option splits --some_name=value; launchers take '_' for '-'.
func option(word string) (name, value string, inline bool) {
	name, value, inline = strings.Cut(strings.TrimLeft(word, "-"), "=")
	return strings.ReplaceAll(name, "_", "-"), value, inline
}

// takeFromShell takes options out of the text that a shell reads, where they stand as plain words. One whose value the
// shell has yet to put in stays: the shell goes on putting it in.
func (p *program) takeFromShell(names []string) {
	if p.launcher == "" {
		return
	}
	for _, name := range names {
		re := regexp.MustCompile(`(^|\s)--?` + strings.ReplaceAll(regexp.QuoteMeta(name), "-", "[-_]") + `(?:=|\s+)("[^"]*"|'[^']*'|[^\s'";&|()]+)`)
		text := p.words()[p.shell]
		m := re.FindStringSubmatch(text)
		switch {
		case m == nil:
		case strings.ContainsAny(m[2], "$`"):
			p.left[name] = strings.Trim(m[2], `"'`)
		default:
			p.taken[name] = strings.Trim(m[2], `"'`)
			p.say(strings.TrimLeft(re.ReplaceAllString(text, ""), " "))
		}
	}
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
			if first, value, inline := option(words[p.start]); inline && first == name && strings.HasPrefix(words[p.start], "-") {
				p.keep(name, value, true)
				p.drop(p.start, 1)
			}
		}
	}
}

// set gives the draft what is left, and says that the words which were taken are kept elsewhere.
func (p *program) set(d *draft, c view) {
	d.set("spec.command", p.command, c.at("command"))
	d.set("spec.args", p.args, c.at("args"))
	if p.shell >= 0 && len(p.taken) > 0 {
		d.note(trainerWords(c), Moved, "of %s's options, --%s became fields of the job", p.launcher, strings.Join(sortedKeys(p.taken), ", --"))
	}
	if len(p.taken)+len(p.flags) > 0 {
		c.at("command").moved()
		c.at("args").moved()
	}
}
