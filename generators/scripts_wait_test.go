package generators_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

func TestWait(t *testing.T) {
	dir := volume(t)
	c := waiter(t, dir, "url: 'http://example.org/a.bin', deadline: 2h")
	if got := variable(c, "WAIT_SECONDS"); got != "7200" {
		t.Errorf("WAIT_SECONDS is %q, want the dataset's deadline", got)
	}
	marker := c.Command[len(c.Command)-1]
	if want := variable(fetcher(t, dir, "url: 'http://example.org/a.bin', deadline: 2h"),
		"DATASET_MARKER"); marker != want {
		t.Fatalf("waits for %s, and %s is what will be there", marker, want)
	}

	out, err := start(t, c, "WAIT_SECONDS=20")
	if err == nil || !strings.Contains(out, "gave up after 20 seconds: "+marker) {
		t.Errorf("without the marker: %v, %s", err, out)
	}
	if n := strings.Count(out, "slept 5"); n != 4 {
		t.Errorf("slept %d times of 5 seconds, want 4", n)
	}
	if n := strings.Count(out, "waiting for"); n != 1 {
		t.Errorf("%d lines in the first minute, want 1:\n%s", n, out)
	}

	if err := os.MkdirAll(filepath.Dir(marker), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := start(t, c); err != nil || out != "" {
		t.Errorf("with the marker there: %v, want silence:\n%s", err, out)
	}
}

// TestWaitForAll: workers start when the last dataset is there; the time to wait is that of all together.
func TestWaitForAll(t *testing.T) {
	dir := volume(t)
	volumes := fmt.Sprintf("storage: [{name: a, mountPath: %s/a, claim: x, dataset: {url: 'http://x.org/a.zip', "+
		"deadline: 1h}}, "+
		"{name: b, mountPath: %s/b, claim: y, readOnly: true, dataset: {url: 'http://x.org/b.zip', deadline: 30m}}]",
		dir, dir)
	j := load(t, jobText(strings.Replace(volumes, ", readOnly: true", "", 1)))
	c := all[*batchv1.Job](objects(j, "worker"))[0].Spec.Template.Spec.InitContainers[0]
	if got := variable(c, "WAIT_SECONDS"); got != "5400" {
		t.Errorf("WAIT_SECONDS is %q, want 5400", got)
	}
	markers := c.Command[4:]
	if len(markers) != 2 {
		t.Fatalf("waits for %q", markers)
	}
	for i, marker := range markers {
		if out, err := start(t, c, "WAIT_SECONDS=5"); err == nil || !strings.Contains(out, marker) {
			t.Errorf("with %d of 2 there: %v\n%s", i, err, out)
		}
		if err := os.MkdirAll(filepath.Dir(marker), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(marker, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := start(t, c); err != nil {
		t.Errorf("with both there: %v\n%s", err, out)
	}
}

// TestWaitAppears: the marker comes while it waits.
func TestWaitAppears(t *testing.T) {
	dir := volume(t)
	c := waiter(t, dir, "url: 'http://example.org/a.bin'")
	marker := c.Command[len(c.Command)-1]
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = os.MkdirAll(filepath.Dir(marker), 0o755)
		_ = os.WriteFile(marker, nil, 0o644) // without it the script gives up, and the test sees that
	}()
	if out, err := start(t, c, "WAIT_SECONDS=1000000"); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
