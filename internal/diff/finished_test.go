package diff

import (
	"strings"
	"testing"
)

// TestFinished: a run that is over has no pods that a new one could meet, and none that suspending would delete.
func TestFinished(t *testing.T) {
	live := strings.Replace(liveJob, `{active: 1, startTime: "2026-01-01T00:00:00Z"}`, "STATUS", 1)
	another := strings.NewReplacer("name: a,", "name: a-2,", "a:1", "a:2").Replace(desiredJob)
	renamed := strings.NewReplacer("name: a,", "name: b,", "job: a", "job: b").Replace(desiredJob)
	suspended := strings.Replace(desiredJob, "spec:\n", "spec:\n  suspend: true\n", 1)
	for _, c := range []struct {
		status, is string
		want       Class
	}{
		{"{conditions: [{type: Complete, status: 'True'}]}", another, Recreate},
		{"{conditions: [{type: Failed, status: 'True'}]}", another, Recreate},
		{"{conditions: [{type: Complete, status: 'True'}]}", renamed, Recreate},
		{"{conditions: [{type: Complete, status: 'True'}]}", suspended, InPlace},
		{"{conditions: [{type: Complete, status: 'False'}], active: 1}", another, Overlap},
		{"{conditions: [{type: FailureTarget, status: 'True'}], active: 1}", another, Overlap},
		{"{conditions: x}", another, Overlap},
		{"{active: 1}", suspended, Restart},
	} {
		if r := compare(t, strings.Replace(live, "STATUS", c.status, 1), c.is); r.Worst != c.want {
			t.Errorf("%s: %q, want %q: %+v", c.status, r.Worst, c.want, r.Jobs)
		}
	}
}

// TestDefaults: what one side alone writes and the API server sets anyway is no change, and nothing else is left out.
func TestDefaults(t *testing.T) {
	spec := func(more string) string { return strings.Replace(desiredJob, "spec: {", "spec: {"+more+", ", 1) }
	container := func(more string) string {
		return strings.Replace(desiredJob, "{name: w,", "{name: w, "+more+",", 1)
	}
	for is, want := range map[string]Class{
		spec("dnsPolicy: ClusterFirst, hostNetwork: false, hostPID: false"):                       "",
		spec("terminationGracePeriodSeconds: 30, securityContext: {}"):                            "",
		spec("dnsPolicy: Default"):                                                                Refused,
		spec("hostNetwork: true"):                                                                 Refused,
		spec("shareProcessNamespace: false"):                                                      Refused,
		spec("terminationGracePeriodSeconds: 0"):                                                  Refused,
		container("terminationMessagePath: /dev/termination-log, tty: false, resources: {}"):      "",
		container("terminationMessagePath: /dev/x"):                                               Refused,
		container("env: [{name: A, value: ''}]"):                                                  Refused,
		strings.Replace(desiredJob, "spec:\n", "spec:\n  suspend: false\n  backoffLimit: 6\n", 1): "",
		strings.Replace(desiredJob, "spec:\n", "spec:\n  backoffLimit: 5\n", 1):                   InPlace,
	} {
		for _, pair := range [][2]string{{desiredJob, is}, {is, desiredJob}} {
			if r := compare(t, pair[0], pair[1]); r.Worst != want {
				t.Errorf("%q, want %q: %s to %s", r.Worst, want, pair[0], pair[1])
			}
		}
	}
	if r := compare(t, container("env: [{name: A}]"), container("env: [{name: A, value: ''}]")); r.Worst != "" {
		t.Errorf("an empty value: %+v", r.Jobs)
	}
	set := func(kind string) string {
		return strings.NewReplacer("batch/v1", "example.com/v1", "kind: Job", "kind: "+kind).Replace(desiredJob)
	}
	other := strings.Replace(set("Other"), "spec: {", "spec: {dnsPolicy: ClusterFirst, ", 1)
	if r := compare(t, set("Other"), other); r.Worst != Unknown {
		t.Errorf("another kind has no such default: %+v", r.Jobs)
	}
}
