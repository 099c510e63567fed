package schema

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
	path        string // of the word that it stands in
	written     string // its name as the author spells it
}

// String is the option as the author wrote it.
func (o *LaunchOption) String() string {
	if o.Value == "" {
		return o.written
	}
	return o.written + "=" + o.Value
}

var launcherWord = lazy.Regexp(`^(?:.*/)?(torchrun|dlrover-run)$|` +
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
	words := s.words()
	// bash -c stands before it at most
	starts := func(w word) bool { return w.arg < 2 && launcherWord().MatchString(w.text) }
	i := slices.IndexFunc(words, starts)
	switch {
	case i >= 0:
		m := launcherWord().FindStringSubmatch(words[i].text)
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
	case s.BytePS() && !slices.ContainsFunc(s.words(), word.bpslaunch):
		return BPSLaunch
	}
	return ""
}

// bpslaunch says whether a word is that launcher, by one of its names.
func (w word) bpslaunch() bool {
	return w.arg < 1 && (path.Base(w.text) == BPSLaunch || strings.HasSuffix(w.text, "launcher/launch.py"))
}

// dlrover says whether the launcher is DLRover's.
func (l *Launch) dlrover() bool {
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

// word is one of command or args.
type word struct {
	text, path string
	arg        int // its number in args, -1 in command
}

// commentLine is one of a script that stands in a word.
var commentLine = lazy.Regexp(`(?m)^[ \t]*#.*$`)

func withoutComments(text string) string {
	if strings.IndexByte(text, '#') < 0 {
		return text
	}
	return commentLine().ReplaceAllString(text, "")
}

func (s *Spec) words() (all []word) {
	for i, text := range s.Command {
		at := fmt.Sprintf("spec.command[%d]", i)
		for _, w := range strings.Fields(withoutComments(text)) {
			all = append(all, word{strings.Trim(w, `"'`), at, -1})
		}
	}
	for i, text := range s.Args {
		at := fmt.Sprintf("spec.args[%d]", i)
		for _, w := range strings.Fields(withoutComments(text)) {
			all = append(all, word{strings.Trim(w, `"'`), at, i})
		}
	}
	return all
}

// options reads up to the first word that is neither an option nor an option's value: the program.
func options(words []word) (all []LaunchOption) {
	for i := 0; i < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(words[i].text, "-"), "=")
		written, _, _ := strings.Cut(words[i].text, "=")
		o := LaunchOption{strings.ReplaceAll(name, "-", "_"), value, words[i].path, written}
		if !joined && !slices.Contains(bareOptions, o.Name) && i+1 < len(words) {
			i++
			o.Value = words[i].text
		}
		all = append(all, o)
	}
	return all
}
