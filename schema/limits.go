package schema

import (
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/environment"
)

// Limits of one call of Load. Within them every command takes less than 512 MB of memory and 10 s of CPU for 8 MiB of
// input, beside what the file system takes for files with -o. 5,000 small jobs take plan 256 MB.
const (
	maxJobs   = 5_000
	maxMerged = 100 << 20 // bytes of the Environment, counted for each job that it is merged into
)

// tooMuch reports more jobs than a call can take, or too large an Environment for them.
func tooMuch(jobs []*structural.Node, env *environment.Environment) Errors {
	if len(jobs) > maxJobs {
		return Errors{jobs[maxJobs].Errorf("", "size",
			"%d jobs exceed the limit of %d: split the file, or pass fewer files at a time", len(jobs), maxJobs)}
	}
	if env != nil && len(jobs)*len(env.Written) > maxMerged {
		return Errors{env.Root.Errorf("spec", "size",
			"an Environment of %d bytes, merged into %d jobs, exceeds the limit of %d MiB in all: shorten it, or pass "+
				"fewer jobs at a time", len(env.Written), len(jobs), maxMerged>>20)}
	}
	return nil
}
