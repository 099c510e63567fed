package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// vcJob imports a Volcano Job of tasks, each "name replicas program" with more behind "|", and of more of its spec.
func vcJob(t *testing.T, spec string, tasks ...string) importer.Result {
	t.Helper()
	text := "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec:\n  " + spec + "\n  tasks:\n"
	for _, task := range tasks {
		task, more, _ := strings.Cut(task, "|")
		words := strings.Fields(task)
		text += "  - {name: " + words[0] + ", replicas: " + words[1] + ", " + more +
			"template: {spec: {restartPolicy: Never, containers: [{name: " + words[0] +
			", image: 'a/b:1', command: [sh, -c, '" + strings.Join(words[2:], " ") + "']}]}}}\n"
	}
	return importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
}

// holds says whether an import has each of some pieces, and none that begins with "-".
func holds(t *testing.T, out importer.Result, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		gone, not := strings.CutPrefix(piece, "-")
		if strings.Contains(string(out.YAML), gone) == not || out.Invalid {
			t.Errorf("want %q in\n%s%s", piece, out.YAML, lines(out.Notes))
		}
	}
}

// TestVolcanoTaskNames: the files, variables and arguments by which Volcano tells of tasks follow the groups' names.
func TestVolcanoTaskNames(t *testing.T) {
	t.Parallel()
	const plugins = "plugins: {svc: [], mpi: [--master=run-it, --worker=ssh-worker, --port=2222], ssh: [], " +
		"hcclrank: []}"
	holds(t, vcJob(t, plugins, "run-it 1 mpirun --hostfile /etc/volcano/ssh_worker.host -np $VC_SSH_WORKER_NUM a",
		"ssh-worker 4 serve"), "/etc/volcano/worker.host -np $VC_WORKER_NUM a", "ssh: []",
		"mpi:\n      - --port=2222\n      - --master=run-it\n", "---worker", "hcclrank: []")
	holds(t, vcJob(t, "plugins: {tensorflow: [--worker=tf-worker, --ps=server]}", "server 2 a", "tf-worker 4 b"),
		"tensorflow:\n      - --ps=server-0\n")
	holds(t, vcJob(t, "plugins: {ray: []}", "head 1 a", "worker 4 b"), "ray: []")
	out := vcJob(t, "plugins: {ssh: [--ssh-private-key=abc]}", "serve 4 serve")
	holds(t, out, "-abc", "ssh: []")
	if !strings.Contains(lines(out.Notes), "a key in a manifest is known to all who read it") {
		t.Errorf("nothing tells of the key:\n%s", lines(out.Notes))
	}
}

// TestVolcanoFailures: what a policy does, and how many pods are placed together, where some tasks wait for others.
func TestVolcanoFailures(t *testing.T) {
	t.Parallel()
	lost := "policies: [{event: PodEvicted, action: RestartJob}]"
	holds(t, vcJob(t, lost, "worker 2 a"), "restartAll: 2\n    restartAllOn: eviction\n", "-restarts:")
	holds(t, vcJob(t, "maxRetry: 5\n  "+lost, "worker 2 a"), "restartAll: 4\n    restartAllOn: eviction\n")
	holds(t, vcJob(t, "policies: [{events: [PodEvicted, PodFailed], action: RestartJob}]", "worker 2 a"),
		"restartAll: 2\n", "-restartAllOn")
	const waits = "dependsOn: {name: [worker]}, policies: [{event: TaskCompleted, action: CompleteJob}], "
	const decides = "success:\n    groups:\n    - main\n"
	holds(t, vcJob(t, "minAvailable: 3", "main 1 a|"+waits, "worker 10 b"), decides, "minAvailable: 3\n",
		"restartsPerWorker: 0\n")
	out := vcJob(t, "minAvailable: 3", "main 1 a|dependsOn: {name: [worker]}, ", "worker 10 b")
	holds(t, out, "minAvailable: 3\n", "restarts: 0\n")
	if !strings.Contains(lines(out.Notes), "a TrainingJob with an order fails") {
		t.Errorf("nothing tells what becomes of pods that failed:\n%s", lines(out.Notes))
	}
	holds(t, vcJob(t, "minAvailable: 3", "main 1 a", "worker 10 b"), "minAvailable: 2\n")
}
