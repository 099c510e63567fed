package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
)

var programRules = []rule{
	{
		(*validation).launchedTwice,
		"framework launcher bytescheduler.mode mpi.launch command args workers.replicas workers.max",
	},
	{(*validation).runnable, "framework launcher bytescheduler.mode mpi.launch command args script servers.command"},
}

// Launches says whether a command is torchrun already, by one of its names, and needs no other.
func Launches(command []string) bool {
	return len(command) > 0 && path.Base(command[0]) == "torchrun" ||
		slices.Contains(command, "torch.distributed.run") || slices.Contains(command, "torch.distributed.launch")
}

// The launchers that start a process for each accelerator, or on each host: as programs, and as modules of Python.
const (
	launcherPrograms = `torchrun|dlrover-run|mpirun|mpiexec|horovodrun|deepspeed|accelerate\s+launch|bpslaunch|` +
		`colossalai\s+run|composer`
	launcherModules = `torch\.distributed\.(?:run|launch)|torchelastic\.distributed\.launch|` +
		`dlrover\.trainer\.torch\.elastic_run|deepspeed\.launcher\.runner|accelerate\.commands\.launch|` +
		`horovod\.runner(?:\.launch)?`
)

// What may stand between the beginning of a command and the program that it starts in the end: a shell's own words, and
// programs that start another one, with their options and amounts.
const (
	shellWords = `(?:then|do|else|if|elif|while|until|!|\{)`
	starters   = `(?:(?:\S*/)?(?:env|exec|command|nohup|time|timeout|nice|numactl|stdbuf|taskset|tini|dumb-init)` +
		`(?:\s+(?:-[sku]\s+\w+|-\S*|["']?[$0-9]\S*))*|[A-Za-z_]\w*=\S*)`
)

// ownLaunch finds one where a command begins, in what a shell is to run or in the words of a command: not in the
// arguments of another program.
var ownLaunch = lazy.Regexp(`(?:^|[;&|()\n])\s*(?:` + shellWords + `\s+)*(?:` + starters + `\s+)*(?:(?:\S*/)?(` +
	launcherPrograms +
	`)|(?:\S*/)?python[0-9.]*\s+(?:-[^m\s]\S*\s+)*-m\s+(` + launcherModules + `))(?:$|[\s;&|)])`)

// shellText is the index of what a shell is to run, -1 where the command is none.
func shellText(words []string) int {
	if len(words) == 0 || !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh"}, path.Base(words[0])) {
		return -1
	}
	for i := 1; i < len(words)-1; i++ {
		switch word := words[i]; {
		case !strings.HasPrefix(word, "-"):
			return -1 // a file
		case strings.HasPrefix(word, "--"):
		case strings.Contains(word, "c"):
			if strings.HasSuffix(word, "o") { // whose value stands between
				i++
			}
			return min(i+1, len(words)-1)
		case strings.HasSuffix(word, "o"), strings.HasSuffix(word, "O"):
			i++
		}
	}
	return -1
}

// shellCode is what a shell reads as words of its own: without comments, and with nothing in quotes that would end a
// command outside of them.
func shellCode(text string) string {
	var out strings.Builder
	quote, before := rune(0), '\n'
	comment, escaped := false, false
	for _, c := range text {
		switch {
		case comment && c != '\n', escaped && c == '\n':
			escaped = false
			continue // a line that goes on is one line
		case escaped:
			escaped = false
			if strings.ContainsRune(";&|()", c) {
				c = '.'
			}
		case quote == 0 && c == '#' && strings.ContainsRune(" \t\n;&|(", before):
			comment = true
			continue
		case c == '\\' && quote != '\'':
			escaped = true
			before = c
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case quote != 0 && strings.ContainsRune(";&|()\n", c):
			c = '.'
		}
		comment = comment && c != '\n'
		out.WriteRune(c)
		before = c
	}
	return out.String()
}

// wordPath is where a word of the command and its arguments stands.
func (s *Spec) wordPath(i int) string {
	if i >= len(s.Command) {
		return fmt.Sprintf("spec.args[%d]", i-len(s.Command))
	}
	return fmt.Sprintf("spec.command[%d]", i)
}

// launchIn finds a launcher that words start, and the word that it is in. Where no shell reads them, it is the program
// or nothing: separators are another program's.
func launchIn(words []string) (at int, match []string) {
	if i := shellText(words); i >= 0 {
		return i, ownLaunch().FindStringSubmatch(shellCode(words[i]))
	}
	text := strings.Join(words, " ")
	if found := ownLaunch().FindStringIndex(text); found == nil || found[0] > 0 ||
		strings.ContainsRune(";&|()\n", rune(text[0])) {
		return 0, nil
	}
	return 0, ownLaunch().FindStringSubmatch(text)
}

// launchedTwice refuses a launcher of the author's where tegen puts one before the command: each would start its own
// processes, and the inner one has no part in the others' rendezvous.
func (r *validation) launchedTwice() {
	s := &r.Spec
	by := s.LaunchedBy()
	if by == "" || s.Torchrun() && Launches(s.Command) {
		return
	}
	words := slices.Concat(s.Command, s.Args)
	if len(s.Command) == 0 && by == LauncherTorchrun {
		return // the first argument is a file that Python reads
	}
	at, m := launchIn(words)
	if m == nil {
		return
	}
	name := strings.Join(strings.Fields(m[1]+m[2]), " ")
	if hostLauncher().MatchString(" "+name+" ") && s.Horovodrun() || s.BytePS() &&
		(hostLauncher().MatchString(" "+name+" ") || launcherWord().MatchString(name)) {
		return // horovodProgram and bytePSProgram say so
	}
	remedy := "leave it and its options out"
	switch owner := ownersOf[name]; {
	case owner != "" && s.Framework == FrameworkTorchelastic:
		remedy = leaveTo(name)
		if s.Workers.Max < 2 {
			remedy += ", or set launcher: entrypoint"
		}
	case s.Torchrun() && !launcherWord().MatchString(name): // torchrun starts what it would start
		remedy += ", or set launcher: entrypoint"
	case s.Torchrun():
		remedy = "set launcher: entrypoint, or " + remedy
	case s.Framework == FrameworkMPI:
		remedy += ", or set mpi.launch: command"
	case s.Framework == FrameworkHorovod && launcherWord().MatchString(name) && ownersOf[name] == "":
		remedy += ", or leave out framework: horovod, and " + name + " starts them"
	}
	r.fail(s.wordPath(at), "requires", "%s starts processes itself, and tegen puts %s before it: %s", name, by, remedy)
}

// runnable refuses what cannot be started: a script that no interpreter is named for, a line in place of words, or a
// launcher that was removed.
func (r *validation) runnable() {
	s := &r.Spec
	all := slices.Concat(s.Command, s.Args)
	for i := range max(0, len(all)-1) {
		if path.Base(all[i]) == names.Rendezvous && all[i+1] == "run" {
			r.fail(s.wordPath(i), "requires", "\"%s run\" was removed: start torchrun, and set rendezvous: "+
				"{backend: c10d, store: etcd, proxy: true}", names.Rendezvous)
			return
		}
	}
	words, at := s.Command, "spec.command[0]"
	if len(words) == 0 && s.Script == nil &&
		slices.Contains([]string{"horovodrun", LaunchMpirun, BPSLaunch}, s.LaunchedBy()) {
		words, at = s.Args, "spec.args[0]" // these start programs; torchrun and dlrover-run read a script by themselves
	}
	r.startable(words, at)
	r.startable(s.Servers.Command, "spec.servers.command[0]")
}

func (r *validation) startable(words []string, at string) {
	if len(words) == 0 || strings.Contains(words[0], "$(") { // what a variable holds is unknown here
		return
	}
	switch first := words[0]; {
	case first == "":
		r.fail(at, "requires", "is empty: name a program")
	case len(words) == 1 && strings.ContainsAny(first, " \t\n"):
		remedy := "write " + structural.FlowList(strings.Fields(first))
		if _, m := launchIn(strings.Fields(first)); m != nil && r.Spec.LaunchedBy() != "" {
			remedy = "write the program and its arguments alone, each as an item of the list: " + r.Spec.LaunchedBy() +
				" is put before them"
		} else if strings.ContainsAny(first, "|&;<>()$\"'`*\\\n{},#") {
			remedy = "give it to one, as [sh, -c, TEXT]"
		}
		r.fail(at, "requires", "is one word, of which no shell makes several: %s", remedy)
	case scriptName().MatchString(first):
		r.fail(at, "requires", "%s is a script and no program on the PATH: write %s %s", first, interpreter(first),
			first)
	}
}

// scriptName is a script without its directory, which is looked for on the PATH.
var scriptName = lazy.Regexp(`^[^/]+\.(py|sh)$`)

func interpreter(script string) string {
	if strings.HasSuffix(script, ".sh") {
		return "sh"
	}
	return "python"
}
