package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMXNet is scenario 8: a scheduler, two servers and two workers that find each other by the variables of ps-lite.
func TestMXNet(t *testing.T) {
	w := begin(t)
	w.takeTurn(t)
	j := w.job(t, "8 MXNet", rendered(t, "mxnet-job-servers", "kind"), "")
	j.apply()

	// What each says: the sum is that of rank + 1 over the workers, which reached each server and got it back. Servers
	// and workers have the ranks of their addresses; a worker's number, which BytePS reads, is its pod's.
	want := []string{
		"cifar-servers-scheduler-0 is scheduler 0 of 2 servers and 2 workers",
		"cifar-servers-server-0 is a server with the sum 3",
		"cifar-servers-server-1 is a server with the sum 3",
		"cifar-servers-worker-0 is a worker with the number 0 and the sum 3 of 2 servers",
		"cifar-servers-worker-1 is a worker with the number 1 and the sum 3 of 2 servers",
	}
	var got []string
	var ranks []int // of workers
	var summed time.Time
	j.await("all roles", patience, func(events []event) bool {
		got, ranks = got[:0], ranks[:0]
		for _, e := range events {
			if e.Event != "mxnet" {
				continue
			}
			var said string
			switch role := e.Fields["role"]; role {
			case "scheduler":
				said = fmt.Sprintf("%v %d of %v servers and %v workers", role, e.Rank, e.Fields["servers"],
					e.Fields["workers"])
			case "server":
				said = fmt.Sprintf("a %v with the sum %v", role, e.Sum)
			default:
				said = fmt.Sprintf("a %v with the number %v and the sum %v of %v servers", role, e.Fields["number"],
					e.Sum, e.Fields["servers"])
				ranks = append(ranks, e.Rank)
			}
			if e.Fields["role"] != "scheduler" && e.at().After(summed) {
				summed = e.at()
			}
			got = append(got, e.Host+" is "+said)
		}
		return len(got) >= len(want)
	})
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the roles say (-want +got):\n%s", diff)
	}
	slices.Sort(ranks)
	if diff := cmp.Diff([]int{0, 1}, ranks); diff != "" {
		t.Errorf("the workers' ranks (-want +got):\n%s", diff)
	}
	j.took("apply to the sum over two workers", j.applied, summed)
	for _, role := range []string{"scheduler", "server", "worker"} {
		j.awaitComplete(j.name+"-"+role, patience)
	}
	j.deleteByLabel(patience)
}
