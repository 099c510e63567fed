package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMXNet is scenario 8: a scheduler, a server and two workers that find each other by the variables of ps-lite.
func TestMXNet(t *testing.T) {
	w := begin(t)
	w.takeTurn(t)
	j := w.job(t, "8 MXNet", golden("mxnet-job-minimal", "kind"), "")
	j.apply()

	// What each says: the sum is that of rank + 1 over the workers, which reached the server and got it back.
	want := []string{
		"cifar-mx-scheduler-0 is scheduler 0 of 1 servers and 2 workers",
		"cifar-mx-server-0 is server 0 with the sum 3",
		"cifar-mx-worker-0 is worker 0 with the sum 3",
		"cifar-mx-worker-1 is worker 1 with the sum 3",
	}
	var got []string
	var summed time.Time
	j.await("all roles", patience, func(events []event) bool {
		got = got[:0]
		for _, e := range events {
			if e.Event != "mxnet" {
				continue
			}
			said := fmt.Sprintf("%s is %v %d", e.Host, e.Fields["role"], e.Rank)
			if e.Fields["role"] == "scheduler" {
				said += fmt.Sprintf(" of %v servers and %v workers", e.Fields["servers"], e.Fields["workers"])
			} else {
				said += fmt.Sprintf(" with the sum %v", e.Sum)
				if e.at().After(summed) {
					summed = e.at()
				}
			}
			got = append(got, said)
		}
		return len(got) >= len(want)
	})
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the roles say (-want +got):\n%s", diff)
	}
	j.took("apply to the sum over two workers", j.applied, summed)
	for _, role := range []string{"scheduler", "server", "worker"} {
		j.awaitComplete(j.name+"-"+role, patience)
	}
	j.deleteByLabel(patience)
}
