// Package tegen is the program tegen with generators of your own.
//
// A generator is a Go function from a job to Kubernetes objects. Write a main package that passes yours to [Main], and
// build it under the name tegen: it is tegen, with one more line in "tegen fn --list". Each command renders the objects
// of your generator with those of tegen's own, and a KRM function selects it by its name. Package
// [github.com/tegen-dev/tegen/generators] describes what a generator reads and returns. This Go API has no promise of
// stability beyond the patch releases of one minor release: pin the version of tegen in go.mod, and test your program
// before you use another. It has no names of images: link ReleasedRendezvous and ReleasedScheduler of internal/names
// with -ldflags -X, as docs/extend.md shows, or name the images in jobs.
package tegen

import (
	"os"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/command"
)

// Main runs the program with tegen's own generators, followed by more, and ends the process. The exit code is 0 for
// success, 1 for wrong input, such as a job that a generator refuses, and 2 for a wrong command line. It is also 2 if a
// generator has no name, no sentence or no function, or the name of another one.
func Main(more ...generators.Generator) { os.Exit(command.Main(more...)) }
