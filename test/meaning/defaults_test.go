package meaning

import (
	"strings"
	"testing"
)

// TestDefaults: what an API server, a webhook or a controller puts where nothing is written means the same as writing
// it, and anything else there does not.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: " +
		"Never, containers: [{name: a, image: 'a:1', volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, " +
		"persistentVolumeClaim: {claimName: c ALSO}}]}}}\n"
	const gang = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {tasks: [{name: t, " +
		"template: {spec: {restartPolicy: Never ALSO, containers: [{name: a, image: 'a:1'}]}}}]}\n"
	for name, c := range map[string]struct{ text, same, other string }{
		"a claim for reading":                 {job, ", readOnly: false", ", readOnly: true"},
		"the scheduler of a pod of Volcano's": {gang, ", schedulerName: volcano", ", schedulerName: other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unsaid := strings.Replace(c.text, " ALSO", "", 1)
			if all := Compare(unsaid, strings.Replace(c.text, " ALSO", c.same, 1)); len(all) > 0 {
				t.Errorf("the default differs from nothing: %s", all)
			}
			if len(Compare(unsaid, strings.Replace(c.text, " ALSO", c.other, 1))) == 0 {
				t.Error("another value is the same as none")
			}
		})
	}
}

// TestTwice: the last of two values of a key counts.
func TestTwice(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      "
	const tail = "      containers: [{name: a, image: 'a:1'}]\n"
	const never, failed = "restartPolicy: Never\n", "restartPolicy: OnFailure\n"
	if all := Compare(head+failed+tail+"      "+never, head+never+tail); len(all) > 0 {
		t.Errorf("the last does not count: %s", all)
	}
	if len(Compare(head+failed+tail+"      "+never, head+failed+tail)) == 0 {
		t.Error("the first counts")
	}
}

// TestSeveral: jobs are compared with those of their names, wherever they stand, and what an AppWrapper holds with what
// has its queue.
func TestSeveral(t *testing.T) {
	t.Parallel()
	of := func(name, labels, image string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + ", labels: {" + labels + "}}, spec: " +
			"{template: {spec: {restartPolicy: Never, containers: [{name: a, image: '" + image + "'}]}}}}"
	}
	const queue = "kueue.x-k8s.io/queue-name: team"
	one, two := of("one", "", "a:1"), of("two", "", "b:1")
	if all := Compare(one+"\n---\n"+two, two+"\n---\n"+one); len(all) > 0 {
		t.Errorf("the order counts: %s", all)
	}
	renamed := of("one-worker", "tegen.dev/job: one", "a:1")
	for _, d := range Compare(one+"\n---\n"+two, two+"\n---\n"+renamed) {
		if d.Class() == Real {
			t.Errorf("a job that is rendered under another name is held against another: %s", d)
		}
	}
	wrapper := "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w, labels: {" + queue +
		"}}, spec: {components: [{template: " + one + "}]}}"
	if all := Compare(wrapper, of("one", queue, "a:1")); len(all) > 0 {
		t.Errorf("the wrapper's queue is not the job's: %s", all)
	}
	if len(Compare(wrapper, one)) == 0 {
		t.Error("without the queue of the wrapper nothing is missed")
	}
}
