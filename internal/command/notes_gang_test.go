package command

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// TestNotesOfGangPods: a release of a scheduler that leaves pods of a gang pending, or takes those that run away, is
// named wherever a job depends on it, and nowhere else.
func TestNotesOfGangPods(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: mnist, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, train.py], "
	const (
		elastic, whole = "workers: {replicas: 4, min: 3, max: 8}, ", "workers: {replicas: 4}, "

		cycles = "spec.gang.mode: Koordinator 1.6 and before leaves a pod"
		beyond = "spec.gang.minAvailable: Koordinator 1.8 leaves pods beyond it pending"
		alone  = "spec.gang.matchPolicy: under only-waiting a pod that takes a lost one's place waits until 4 wait " +
			"together"
		anew   = "spec.workers.replicas: Kueue stops an admitted job whose number of workers changes"
		since  = "spec.workers.replicas: Kueue before 0.18, or without its feature gate"
		once   = "spec.workers.replicas: Kueue starts the Job with as many workers as the quota has room for"
		excess = "spec.workers.replicas: Kueue deletes pods beyond the number"
		fixed  = "spec.workers.replicas: Kubernetes 1.36 refuses to change the parallelism"
	)
	all := []string{cycles, beyond, alone, anew, since, once, excess, fixed}
	for _, c := range []struct {
		spec string
		want []string
	}{
		{elastic + "gang: {scheduler: koordinator}", []string{cycles, beyond}},
		{elastic + "gang: {scheduler: koordinator, mode: NonStrict}", []string{beyond}},
		{whole + "gang: {scheduler: koordinator}", []string{cycles}},
		{whole + "gang: {scheduler: koordinator, mode: NonStrict}", nil},
		{whole + "gang: {scheduler: koordinator, matchPolicy: once-satisfied}", nil},
		{whole + "gang: {scheduler: koordinator, matchPolicy: only-waiting}", []string{cycles, alone}},
		{whole + "gang: {scheduler: tegen, matchPolicy: only-waiting}", []string{alone}},
		{elastic + "gang: {scheduler: tegen}", nil},
		{elastic + "gang: {scheduler: coscheduling}", nil},
		{elastic + "gang: {scheduler: volcano}", nil},
		{elastic + "gang: {scheduler: kueue, queue: q, minAvailable: 4}", []string{since}},
		{
			elastic + "gang: {scheduler: kueue, queue: q, minAvailable: 4}, " +
				"workload: {annotations: {kueue.x-k8s.io/job-min-parallelism: '3'}}", []string{once},
		},
		{elastic + "target: jobset, gang: {scheduler: kueue, queue: q, minAvailable: 4}", []string{anew}},
		{elastic + "target: pods, gang: {scheduler: kueue, queue: q, minAvailable: 4}", []string{excess}},
		{whole + "gang: {scheduler: kueue, queue: q}", nil},
		{elastic + "kubernetesVersion: '1.36', gang: {scheduler: kubernetes}", []string{fixed}},
		{elastic + "target: pods, kubernetesVersion: '1.36', gang: {scheduler: kubernetes}", nil},
		{elastic + "kubernetesVersion: '1.37', gang: {scheduler: kubernetes}", nil},
		{whole + "kubernetesVersion: '1.36', gang: {scheduler: kubernetes}", nil},
	} {
		_, msg, code := tegen(head+c.spec+"}\n", "vet", "-")
		if code != cli.ExitOK {
			t.Errorf("%s: exit %d, %s", c.spec, code, msg)
		}
		for _, note := range all {
			var wanted bool
			for _, w := range c.want {
				wanted = wanted || w == note
			}
			if got := strings.Contains(msg, "note: "+note); got != wanted {
				t.Errorf("%s: note %q is told: %v, want %v\n%s", c.spec, note, got, wanted, msg)
			}
		}
	}
}
