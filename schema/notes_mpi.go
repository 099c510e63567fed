package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// waits finds words by which a launcher's line waits for its workers.
var waits = lazy.Regexp(`\b(sleep|until|while|wait)\b`)

// openMPIs are variables of Open MPI's own.
var openMPIs = lazy.Regexp(`^(OMPI|PRTE|PMIX)_`)

// imageSSHNotes tell what an image's own sshd and a launcher that is the author's do otherwise than tegen's.
func (s *Spec) imageSSHNotes() (notes []string) {
	if s.Framework != FrameworkMPI || !s.ImageSSH() {
		return nil
	}
	line := strings.Join(slices.Concat(s.Command, s.Args), " ")
	if s.MPI.LauncherStart == LauncherTogether && !s.Gang.Active() && !waits().MatchString(line) {
		notes = append(notes, "spec.mpi.launcherStart: the launcher may start minutes before its workers, "+
			"whose images are pulled, and each mpirun that reaches none counts against failure.restarts: set ready")
	}
	if s.MPI.Implementation != MPIOpen { // hydra hands all on
		return notes
	}
	for _, e := range s.Env {
		if !strings.Contains(line, e.Name) && !openMPIs().MatchString(e.Name) {
			return append(notes, fmt.Sprintf("spec.env: %s is the launcher's: Open MPI hands on to the processes "+
				"what mpirun's -x names, and what starts with OMPI_", e.Name))
		}
	}
	return notes
}
