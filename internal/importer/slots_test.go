package importer

import "testing"

// TestSlots: where nothing else says it, a worker has its share of the processes that the launcher is told to start.
// What is no whole share says nothing.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		options [][3]string
		want    int64
	}{
		{[][3]string{{"np", "4"}}, 2},
		{[][3]string{{"n", "4"}}, 2},
		{[][3]string{{"num-proc", "4"}}, 2},
		{[][3]string{{"np", "5"}}, 1},
		{[][3]string{{"np", "4"}, {"slots-per-host", "3"}}, 3},
		{[][3]string{{"np", "$NP"}}, 1},
		{nil, 1},
	} {
		d := &draft{job: tree{}, origin: map[string]view{}}
		d.set("spec.workers.replicas", int64(2), view{})
		d.slots(c.options, view{})
		if got, _ := d.get("spec.workers.processes").number(); got != c.want {
			t.Errorf("%q: %d, want %d", c.options, got, c.want)
		}
	}
}
