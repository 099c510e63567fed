package meaning

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// program is what a container runs, without how its launcher is told who is there: that is in options.
type program struct {
	text     string            // the words that remain
	launcher string            // torchrun, mpirun, horovodrun, or "" for none that is seen
	options  map[string]string // of the launcher, by their names with hyphens
	all      []string          // options of mpirun that say how, in order
	env      map[string]string // variables that mpirun hands on
	serves   bool              // it is an sshd that processes are started by
}

// launcherNames are those of modules too.
var launcherNames = map[string]string{
	"torchrun": "torchrun", "torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun",
	"torchelastic.distributed.launch": "torchrun", "mpirun": "mpirun", "mpiexec": "mpirun",
	"mpiexec.hydra": "mpirun", "horovodrun": "horovodrun",
}

// torchTells are options by which torchrun is told who meets whom; they may also stand in variables or in an API.
var torchTells = []string{
	"nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts", "node-rank",
	"master-addr", "master-port", "standalone", "local-addr",
}

// mpiTakes are the options of mpirun and horovodrun that take values, with their number.
var mpiTakes = map[string]int{
	"np": 1, "n": 1, "N": 1, "npernode": 1, "ppn": 1, "perhost": 1, "hostfile": 1, "machinefile": 1, "f": 1, "H": 1,
	"host": 1, "hosts": 1, "x": 1, "mca": 2, "pmca": 2, "gmca": 2, "prtemca": 2, "bind-to": 1, "map-by": 1,
	"rank-by": 1, "wdir": 1,
	"genv": 2, "env": 2, "genvlist": 1, "bootstrap": 1, "launcher": 1, "iface": 1, "p": 1, "ssh-port": 1, "prefix": 1,
	"timeout": 1, "output-filename": 1, "min-np": 1, "max-np": 1, "host-discovery-script": 1, "slots-per-host": 1,
	"num-proc": 1, "start-timeout": 1, "network-interface": 1, "network-interfaces": 1, "fusion-threshold-mb": 1,
	"cycle-time-ms": 1, "log-level": 1, "report-state-on-timeout": 0, "tune": 1, "am": 1, "rankfile": 1, "cpu-set": 1,
	"slots": 1, "elastic-timeout": 1, "reset-limit": 1, "blacklist-cooldown-range": 2, "timeline-filename": 1,
	"launcher-exec": 1, "output": 1, "stdin": 1, "path": 1, "wd": 1,
}

var (
	isShell    = regexp.MustCompile(`^(.*/)?(ba|da|z|k)?sh$`)
	python     = regexp.MustCompile(`^(.*/)?python[0-9.]*$`)
	joinedLine = regexp.MustCompile(`\\[ \t]*\n`)
	sshDaemon  = regexp.MustCompile(`(^|[/ \t;&])sshd( |$|;)`)
	braced     = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// readProgram reads a container's command and args.
func readProgram(c node) *program {
	p := &program{options: map[string]string{}, env: map[string]string{}}
	words := append(c.at("command").texts(), c.at("args").texts()...)
	for len(words) > 2 && words[0] == "sh" && strings.HasPrefix(words[1], "/tegen/ssh/") &&
		strings.HasSuffix(words[1], "launcher.sh") {
		words = words[2:]
	}
	if len(words) == 2 && words[0] == "sh" && words[1] == "/tegen/ssh/worker.sh" {
		p.serves = true
		return p
	}
	if !c.at("command").isSet() && len(words) > 0 {
		words = append([]string{"(entrypoint)"}, words...)
	}
	fields, shell := words, -1
	if i := shellText(words); i >= 0 {
		text := strings.NewReplacer(";", " ; ", "\n", " ; ").Replace(joinedLine.ReplaceAllString(words[i], " "))
		inner := strings.Fields(text)
		shell = i
		fields = slices.Concat(words[:i], inner, words[i+1:])
	}
	fields = slices.Clone(fields)
	p.serves = sshDaemon.MatchString(strings.Join(fields, " ")) && !slices.ContainsFunc(fields, isLauncher)
	p.readLauncher(fields, shell)
	return p
}

// shellText is the word that a shell reads, -1 for none.
func shellText(words []string) int {
	if len(words) < 2 || !isShell.MatchString(words[0]) {
		return -1
	}
	for i, word := range words[1:] {
		if strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") && !strings.HasPrefix(word, "--") {
			for j := i + 2; j < len(words); j++ {
				if words[j] != "--" {
					return j
				}
			}
		}
	}
	return -1
}

func isLauncher(word string) bool { return launcherNames[path.Base(word)] != "" }

// readLauncher takes the options of the one launcher out of the words. Where there are several, nobody can say which is
// meant, and all stay.
func (p *program) readLauncher(fields []string, shell int) {
	var found []int
	for i, word := range fields {
		if isLauncher(word) && (i == 0 || !strings.HasPrefix(fields[i-1], "echo")) {
			found = append(found, i)
		}
	}
	if len(found) == 0 || len(found) > 1 && shell >= 0 {
		p.text = joined(fields)
		return
	}
	at := found[0]
	p.launcher = launcherNames[path.Base(fields[at])]
	from := at
	if strings.Contains(fields[at], ".distributed.") { // python -u -m torch.distributed.run
		for from > 0 && (fields[from-1] == "-m" || fields[from-1] == "-u") {
			from--
		}
		if from > 0 && python.MatchString(fields[from-1]) {
			from--
		}
	}
	rest := p.takeOptions(fields[at+1:])
	p.text = joined(slices.Concat(fields[:from], []string{p.launcher}, rest))
}

// takeOptions takes options up to the first word that is none, and returns what stays.
func (p *program) takeOptions(words []string) (stay []string) {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "--" {
		raw := words[0]
		name, value, inline := strings.Cut(strings.TrimLeft(raw, "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		n := 1
		switch {
		case p.launcher != "torchrun":
			if !inline {
				n += mpiTakes[name]
				value = strings.Join(words[1:min(n, len(words))], " ")
			}
			n = min(n, len(words))
			p.takeMPI(name, value)
			words = words[n:]
			continue
		case !inline && slices.Contains(torchTells, name) && name != "standalone" && len(words) > 1:
			n, value = 2, words[1]
		}
		if slices.Contains(torchTells, name) {
			p.options[name] = unquoted(value)
		} else {
			stay = append(stay, words[:n]...)
		}
		words = words[n:]
	}
	return append(stay, words...)
}

func (p *program) takeMPI(name, value string) {
	value = unquoted(value)
	switch name {
	case "np", "n", "num-proc":
		p.options["np"] = value
	case "npernode", "N", "ppn", "perhost":
		p.options["npernode"] = value
	case "hostfile", "machinefile", "f", "H", "host", "hosts":
		p.options["hosts"] = value
	case "x", "genvlist", "envlist":
		for _, one := range strings.Split(value, ",") {
			key, text, _ := strings.Cut(one, "=")
			p.env[key] = unquoted(text)
		}
	case "genv", "env":
		key, text, _ := strings.Cut(value, " ")
		p.env[key] = text
	default:
		p.all = append(p.all, strings.TrimSpace(name+" "+value))
	}
}

func unquoted(text string) string { return braced.ReplaceAllString(strings.Trim(text, `"'`), "$$$1") }

// joined is the words as one text in which only space may differ.
func joined(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, strings.Fields(w)...)
	}
	return strings.Trim(strings.Join(out, " "), " ;")
}

// torchSays is what torchrun goes by: its option, its variable, what the controller sets, or its own default.
func (p *program) torchSays(c node, controller map[string]string) map[string]string {
	out := map[string]string{"nnodes": "1:1", "nproc-per-node": "1", "rdzv-backend": "static", "max-restarts": "0"}
	for name, value := range controller {
		out[name] = value
	}
	for _, e := range c.at("env").items() {
		if name, ok := strings.CutPrefix(e.at("name").text(), "PET_"); ok {
			out[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = e.at("value").text()
		}
	}
	for name, value := range p.options {
		out[name] = value
	}
	if _, ok := out["standalone"]; ok {
		out["rdzv-backend"], out["rdzv-endpoint"] = "c10d", "localhost"
	}
	return out
}
