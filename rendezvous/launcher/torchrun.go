package launcher

import (
	"errors"

	"github.com/spf13/pflag"
)

// unsupported are torchrun's flags that mean nothing here. Variables that operators set for every launcher are ignored,
// as torchrun ignores them with an elastic rendezvous.
var unsupported = []struct {
	name, short, why string
	isBool           bool // takes no value
	rejectVariable   bool
}{
	{"module", "m", "give the whole command: -- python -m MODULE", true, true},
	{"run-path", "", "give the whole command: -- python SCRIPT", true, true},
	{"start-method", "", "every worker is a process of its own", false, false},
	{"node-rank", "", "ranks come of the rendezvous", false, false},
	{
		"master-addr", "", "rank 0 is wherever the rendezvous puts it; --local-addr says where this machine is reached",
		false, false,
	},
	{"virtual-local-rank", "", "workers see all accelerators of their machine", true, true},
	{"numa-binding", "", "bind workers by numactl in the command", false, true},
	{"logs-specs", "", "it is a Python class", false, true},
	{"event-log-handler", "", "it is a Python class", false, false},
	{"duplicate-stdout-filters", "", "use --tee and a filter of your own", false, true},
	{"duplicate-stderr-filters", "", "use --tee and a filter of your own", false, true},
	{"print-completion", "s", "see tegen-rendezvous completion", false, false},
}

// unsupportedValue is the value of such a flag: setting it is an error.
type unsupportedValue struct {
	why    string
	isBool bool
}

func (v unsupportedValue) Set(string) error {
	return errors.New("this torchrun option is not supported: " + v.why)
}

func (unsupportedValue) String() string { return "" }

func (v unsupportedValue) Type() string {
	if v.isBool {
		return "bool"
	}
	return "string"
}

func addUnsupported(f *pflag.FlagSet) {
	for _, u := range unsupported {
		flag := f.VarPF(unsupportedValue{u.why, u.isBool}, u.name, u.short, "")
		flag.Hidden = true
		if u.isBool {
			flag.NoOptDefVal = "true"
		}
	}
}
