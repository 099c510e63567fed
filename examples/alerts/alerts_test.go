package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain makes the test's binary the program itself where a test starts it with arguments.
func TestMain(m *testing.M) {
	if os.Getenv("ALERTS_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// run runs the program with a job on standard input.
func run(t *testing.T, job string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ALERTS_PROGRAM=1")
	cmd.Stdin = strings.NewReader(job)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("overlay/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job := string(text)
	if out, err := run(t, job, "render", "-"); err != nil || !strings.HasSuffix(out, "---\n"+string(want)) {
		t.Errorf("%v: the output does not end with testdata/rule.yaml:\n%s", err, out)
	}
	without := strings.Replace(job, ", podMonitor: true", "", 1)
	if out, err := run(t, without, "render", "-"); err != nil || strings.Contains(out, "PrometheusRule") {
		t.Errorf("without a PodMonitor: %v\n%s", err, out)
	}
	wrong := strings.Replace(job, "after: 15m", "after: soon", 1)
	out, err := run(t, wrong, "render", "-")
	if err == nil || !strings.HasPrefix(out, "<stdin>:1:1: generator alerts: ") ||
		!strings.Contains(out, `"soon" is not`) || strings.Contains(out, "kind:") {
		t.Errorf("a wrong duration: %v\n%s", err, out)
	}
}
