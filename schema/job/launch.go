package job

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Launch is an author's own call of torchrun or dlrover-run, found among the words of command and args. A shell's one
// long word is read as words too: that is how examples start it.
type Launch struct {
	Program string // the launcher's name; "" for the image's entrypoint
	Options []LaunchOption
}

// LaunchOption is one of its options, spelled with underscores and without dashes; torchrun reads both spellings.
type LaunchOption struct {
	Name, Value string
	Path        string // of the word that it stands in
	Written     string // its name as the author spells it
}

// String is the option as the author wrote it.
func (o *LaunchOption) String() string {
	if o.Value == "" {
		return o.Written
	}
	return o.Written + "=" + o.Value
}

// LauncherWord matches a word that starts processes of torch or DLRover: a program, or a module.
var LauncherWord = lazy.Regexp(`^(?:.*/)?(torchrun|dlrover-run)$|` +
	`^(torch\.distributed\.(?:run|launch)|torchelastic\.distributed\.launch|dlrover\.trainer\.torch\.elastic_run)$`)

// bareOptions take no value (torch/distributed/run.py, dlrover/trainer/torch/elastic_run.py).
var bareOptions = []string{
	"standalone", "no_python", "m", "module", "run_path", "auto_config", "auto_tunning", "network_check",
	"exclude_straggler",
	"comm_perf_test", "save_at_breakpoint", "numa_affinity",
}

// Launch returns the author's own call of a launcher, nil where tegen starts it.
func (s *Spec) Launch() *Launch {
	entrypoint := s.Framework == FrameworkTorchelastic && s.Launcher == LauncherEntrypoint
	if s.Framework == FrameworkTorchelastic && !entrypoint && !Launches(s.Command) {
		return nil // what looks like one is an argument of the author's
	}
	words := s.Words()
	// bash -c stands before it at most
	starts := func(w Word) bool { return w.Arg < 2 && LauncherWord().MatchString(w.Text) }
	i := slices.IndexFunc(words, starts)
	switch {
	case i >= 0:
		m := LauncherWord().FindStringSubmatch(words[i].Text)
		if s.Framework == FrameworkTorchelastic && slices.ContainsFunc(words[i+1:], starts) {
			// one of several: a field is not said twice by the options of one of them
			return &Launch{Program: m[1] + m[2]}
		}
		return &Launch{m[1] + m[2], options(words[i+1:])}
	case entrypoint && len(s.Command) == 0:
		return &Launch{"", options(words)}
	}
	return nil
}

// LaunchedBy names the launcher that tegen puts before the author's program, "" where it puts none.
func (s *Spec) LaunchedBy() string {
	switch {
	case s.Torchrun():
		return LauncherTorchrun
	case s.Horovodrun():
		return "horovodrun"
	case s.Framework == FrameworkMPI && !s.MPILine():
		return LaunchMpirun
	case s.Framework == FrameworkDLRover && s.Launch() == nil:
		return "dlrover-run"
	case s.BytePS() && !slices.ContainsFunc(s.Words(), Word.bpslaunch):
		return BPSLaunch
	}
	return ""
}

// bpslaunch says whether a word is that launcher, by one of its names.
func (w Word) bpslaunch() bool {
	return w.Arg < 1 && (path.Base(w.Text) == BPSLaunch || strings.HasSuffix(w.Text, "launcher/launch.py"))
}

// Dlrover says whether the launcher is DLRover's.
func (l *Launch) Dlrover() bool {
	return l.Program == "dlrover-run" || l.Program == "dlrover.trainer.torch.elastic_run"
}

// Option returns an option by name, nil where it is not given.
func (l *Launch) Option(name string) *LaunchOption {
	if l == nil {
		return nil
	}
	if i := slices.IndexFunc(l.Options, func(o LaunchOption) bool { return o.Name == name }); i >= 0 {
		return &l.Options[i]
	}
	return nil
}

// Word is one of command or args.
type Word struct {
	Text, Path string
	Arg        int // its number in args, -1 in command
}

// commentLine is one of a script that stands in a word.
var commentLine = lazy.Regexp(`(?m)^[ \t]*#.*$`)

func withoutComments(text string) string {
	if strings.IndexByte(text, '#') < 0 {
		return text
	}
	return commentLine().ReplaceAllString(text, "")
}

// Words are those of the command and the arguments, with their paths.
func (s *Spec) Words() (all []Word) {
	for i, text := range s.Command {
		at := fmt.Sprintf("spec.command[%d]", i)
		for _, w := range strings.Fields(withoutComments(text)) {
			all = append(all, Word{strings.Trim(w, `"'`), at, -1})
		}
	}
	for i, text := range s.Args {
		at := fmt.Sprintf("spec.args[%d]", i)
		for _, w := range strings.Fields(withoutComments(text)) {
			all = append(all, Word{strings.Trim(w, `"'`), at, i})
		}
	}
	return all
}

// options reads up to the first word that is neither an option nor an option's value: the program.
func options(words []Word) (all []LaunchOption) {
	for i := 0; i < len(words) && strings.HasPrefix(words[i].Text, "-"); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(words[i].Text, "-"), "=")
		written, _, _ := strings.Cut(words[i].Text, "=")
		o := LaunchOption{strings.ReplaceAll(name, "-", "_"), value, words[i].Path, written}
		if !joined && !slices.Contains(bareOptions, o.Name) && i+1 < len(words) {
			i++
			o.Value = words[i].Text
		}
		all = append(all, o)
	}
	return all
}

// HasVariable says whether a worker has a variable: the author's, or one by which tegen tells of the rendezvous.
func (s *Spec) HasVariable(name string) bool {
	return slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == name }) || strings.HasPrefix(name, "PET_") ||
		s.Launcher == LauncherEntrypoint && TutorialEnv[name]
}

// LaunchesAlone reports whether the author's torchrun starts a training of one pod: nothing names the number of nodes,
// or --standalone does.
func (s *Spec) LaunchesAlone() bool {
	l := s.Launch()
	if l.Option("standalone") != nil {
		return true
	}
	named := len(s.EnvFrom) > 0 || slices.ContainsFunc(s.Env, func(e Env) bool { return e.Name == "PET_NNODES" })
	return l != nil && l.Program != "" && !l.Dlrover() && l.Option("nnodes") == nil && !named
}

// StartsHosts says whether a launcher starts processes of all hosts that it is told of, and needs no other beside it.
func StartsHosts(name string) bool {
	return HostLauncher().MatchString(" "+name+" ") || strings.HasPrefix(name, "horovod.runner")
}

// OwnersOf are the frameworks whose launchers these are.
var OwnersOf = map[string]string{
	"bpslaunch": "framework: bytescheduler", "dlrover-run": "framework: dlrover",
	"dlrover.trainer.torch.elastic_run": "framework: dlrover",
	"horovodrun":                        "framework: horovod", "horovod.runner": "framework: horovod",
	"horovod.runner.launch": "framework: horovod", "mpiexec": "framework: mpi", "mpirun": "framework: mpi",
}

// LeaveTo is what to write where a launcher of another framework stands.
func LeaveTo(name string) string {
	return fmt.Sprintf("set %s, and leave %s and its options out", OwnersOf[name], name)
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

// ShellText is the index of what a shell is to run, -1 where the command is none.
func ShellText(words []string) int {
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

// WordPath is where a word of the command and its arguments stands.
func WordPath(command []string, i int) string {
	if i >= len(command) {
		return fmt.Sprintf("spec.args[%d]", i-len(command))
	}
	return fmt.Sprintf("spec.command[%d]", i)
}

// LaunchIn finds a launcher that words start, and the word that it is in. Where no shell reads them, it is the program
// or nothing: separators are another program's.
func LaunchIn(words []string) (at int, match []string) {
	if i := ShellText(words); i >= 0 {
		return i, ownLaunch().FindStringSubmatch(shellCode(words[i]))
	}
	text := strings.Join(words, " ")
	if found := ownLaunch().FindStringIndex(text); found == nil || found[0] > 0 ||
		strings.ContainsRune(";&|()\n", rune(text[0])) {
		return 0, nil
	}
	return 0, ownLaunch().FindStringSubmatch(text)
}
