package command

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// TestNotesOfJAX: what initialize() must be given is told where JAX does not find it, and a lost worker's price where
// the job could not pay it.
func TestNotesOfJAX(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
		"spec: {framework: jax, image: 'x:1', command: [python, train.py], "
	const passed, low = `process_id=int(os.environ["JAX_PROCESS_ID"])`, "is too low for"
	const tpu = "resources: {gpu: 4, gpuResource: google.com/tpu, cpu: 1, memory: 1Gi}"
	for _, c := range []struct {
		spec        string
		passed, low bool
	}{
		{"workers: {replicas: 5}", true, false},
		{"workers: {replicas: 6}", true, true},
		{"workers: {replicas: 6}, target: jobset", true, true},
		{"workers: {replicas: 6}, failure: {restartsPerWorker: 1}", true, false},
		{"workers: {replicas: 6}, failure: {restarts: 0}", true, false},
		{"workers: {replicas: 1}", false, false},
		{"workers: {replicas: 1}, failure: {restarts: 1}", false, false},
		{"workers: {replicas: 6}, " + tpu, false, true},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "vet", "-")
		if code != cli.ExitOK || strings.Contains(msg, passed) != c.passed || strings.Contains(msg, low) != c.low {
			t.Errorf("%s: exit %d, %q on standard error: want the variables %v, the restarts %v", c.spec, code, msg,
				c.passed, c.low)
		}
	}
}
