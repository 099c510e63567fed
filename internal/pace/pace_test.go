package pace_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/internal/pace"
)

// TestPace: the percent follows what lives, and an overlay's room.
func TestPace(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set")
	}
	defer pace.Run()
	eventually(t, "few bytes live", 400, 800)
	live := make([]byte, 64<<20)
	eventually(t, "64 MiB live", 50, 50)
	pace.Overlay()
	eventually(t, "64 MiB live beside an overlay", 80, 100)
	runtime.KeepAlive(live)
}

// eventually collects until the percent is within bounds: it is set behind a collection.
func eventually(t *testing.T, what string, from, to uint64) {
	t.Helper()
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		metrics.Read(percent)
		got := percent[0].Value.Uint64()
		if got >= from && got <= to {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %d percent, want %d to %d", what, got, from, to)
		}
	}
}

// TestOfEnvironment: a GOGC of the environment holds.
func TestOfEnvironment(t *testing.T) {
	if os.Getenv("GOGC") == "70" {
		percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for range 3 { // it would be set behind a collection
			runtime.GC()
			metrics.Read(percent)
		}
		if got := percent[0].Value.Uint64(); got != 70 {
			t.Errorf("%d percent, want 70", got)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOfEnvironment$", "-test.v")
	cmd.Env = append(os.Environ(), "GOGC=70")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}
