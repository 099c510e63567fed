package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestImageSSHNotes: who leaves ssh to the image hears which variables end in the launcher, and that it may start too
// early; who has said either hears nothing.
func TestImageSSHNotes(t *testing.T) {
	const env = "env: [{name: NCCL_DEBUG, value: INFO}]"
	for spec, want := range map[string]string{
		"mpi: {launch: command}, command: [mpirun, /pi], " + env:                                  "is the launcher's",
		"mpi: {launch: command}, command: [mpirun, -x, NCCL_DEBUG, /pi], " + env:                  "",
		"mpi: {launch: command}, command: [sh, -c, 'mpirun -x NCCL_DEBUG /pi'], " + env:           "",
		"mpi: {launch: command, implementation: intel}, command: [mpirun, /pi], " + env:           "",
		"mpi: {launch: command}, command: [mpirun, /pi], env: [{name: OMPI_MCA_pml, value: ucx}]": "",
		"mpi: {launch: command, launcherStart: together}, command: [mpirun, /pi]":                 "set ready",
		"mpi: {launch: command, launcherStart: together}, command: [sh, -c, 'sleep 9; mpirun x']": "",
		"mpi: {launch: command, launcherStart: ready}, command: [mpirun, /pi]":                    "",
		"mpi: {launch: command, launcherStart: together}, command: [mpirun, /pi], " +
			"gang: {scheduler: volcano}": "",
	} {
		jobs, err := Load([]Source{{Name: "job", Data: []byte("{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, " +
			"metadata: {name: j}, spec: {framework: mpi, target: mpijob, image: 'a/b:1', workers: {replicas: 2}, " +
			"ssh: {server: image, keysPath: /home/mpiuser/.ssh}, " + spec + "}}")}})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		notes := strings.Join(note.ImageSSHNotes(&jobs[0].Spec), "\n")
		if (notes != "") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%s: want a note with %q, not %q", spec, want, notes)
		}
	}
}
