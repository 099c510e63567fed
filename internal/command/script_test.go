package command

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this binary stand in for tegen and tegen-fn.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tegen": mainOfTests, "tegen-fn": program})
}

// TestScript runs testdata/script. TEGEN_UPDATE=1 rewrites what the scripts compare with.
func TestScript(t *testing.T) {
	update := os.Getenv("TEGEN_UPDATE") == "1"
	if update && os.Getenv("CI") == "true" {
		t.Fatal("TEGEN_UPDATE is set where CI=true: scripts are updated by people, who read the difference")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"same":     same,
			"registry": registryAt,
		},
	})
}

// exits runs a program that must end with the given code: exits 2 tegen nosuch.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// same compares the modification times of two files.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE OTHER")
	}
	a, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if a.ModTime().Equal(b.ModTime()) == neg {
		ts.Fatalf("%s changed at %v, %s at %v", args[0], a.ModTime(), args[1], b.ModTime())
	}
}

// registryAt starts a registry without TLS, whose address is in $REGISTRY until the script ends.
func registryAt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: registry")
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
}
