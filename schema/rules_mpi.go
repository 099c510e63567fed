package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

var mpiRules = []rule{
	{(*validation).mpiLine, "framework mpi command script ssh.server"},
	{(*validation).mpiOptions, "framework mpi"},
	{(*validation).mpiValues, "framework env ssh.server"},
	{(*validation).mpiInterface, "framework target mpi network ssh.server workers.max"},
}

// MPILine says whether the command of a job of framework mpi is a launcher's whole line.
func (s *Spec) MPILine() bool { return s.Framework == FrameworkMPI && s.MPI.Launch == LaunchCommand }

// rankEnv is what mpirun tells each process of itself.
var rankEnv = lazy.Regexp(`^(OMPI_COMM_WORLD_|PMI_|PMIX_RANK$|MPI_LOCAL)`)

// mpiLine needs a line where mpirun is not tegen's, and leaves all of it to that line.
func (r *validation) mpiLine() {
	s := &r.Spec
	if !s.MPILine() {
		return
	}
	if len(s.Command) == 0 && s.Script == nil && !s.ImageSSH() {
		r.fail("spec.mpi.launch", "requires",
			"the command is the launcher, and the image's entrypoint is not run: give a command")
	}
	for _, field := range []string{"spec.mpi.options", "spec.mpi.prefix"} {
		if r.IsSet(field) {
			r.fail(field, "requires", "it is for tegen's mpirun, and launch is command: write it in spec.command")
		}
	}
}

// mpiOptions refuses a first word that is no option.
func (r *validation) mpiOptions() {
	if options := r.Spec.MPI.Options; r.Spec.Framework == FrameworkMPI && len(options) > 0 &&
		!strings.HasPrefix(options[0], "-") {
		r.fail("spec.mpi.options[0]", "format", "%s is no option, and mpirun would take it for the program: it "+
			"belongs into spec.command", options[0])
	}
}

// mpiValues refuses values of several lines: processes get theirs from sshd, which reads a line for each.
func (r *validation) mpiValues() {
	if r.Spec.Framework != FrameworkMPI || r.Spec.ImageSSH() {
		return
	}
	for i, e := range r.Spec.Env {
		if e.Value != nil && strings.Contains(*e.Value, "\n") {
			r.fail(fmt.Sprintf("spec.env[%d].value", i), "format",
				"%s has several lines, and ssh hands on variables of one line alone: put it into a file", e.Name)
		}
	}
}

// mpiInterface needs the interface of hydra on the nodes' network: its proxies call back by the host's name, which is
// then the node's, and which no other pod need resolve.
func (r *validation) mpiInterface() {
	s := &r.Spec
	hydra := slices.Contains([]string{MPIIntel, MPICH}, s.MPI.Implementation)
	if s.Framework == FrameworkMPI && hydra && s.OverSSH() && s.Network.Host && s.Network.Interface == "" {
		r.fail("spec.network.host", "requires",
			"processes of %s call the launcher by the name of its node, which pods need not resolve: set "+
				"spec.network.interface, such as eth0", s.MPI.Implementation)
	}
}
