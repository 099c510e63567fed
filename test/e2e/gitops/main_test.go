// Package gitops holds what docs/gitops.md says against the real Flux and the real Argo CD: jobs are rendered by the
// command of this checkout, committed to a git repository, and followed by either. Every case is a row of that page and
// runs for both.
//
// The tests run where TEGEN_GITOPS=1 asks for them, as make e2e-gitops does. Nodes, pods and what ends them are played
// by KWOK, what Kueue would write by the test.
package gitops

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/gitops"
	"github.com/tegen-dev/tegen/test/slice"
)

// atOnce is how many cases run side by side: most of their time they wait for a controller.
const atOnce = 6

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", fmt.Sprint(atOnce)); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestGitOps has one lab for all cases. A single one runs with -run 'TestGitOps/cases/removed/Flux'.
func TestGitOps(t *testing.T) {
	only := os.Getenv("TEGEN_GITOPS")
	if only == "" {
		t.Skip("runs Flux and Argo CD: set TEGEN_GITOPS=1, as make e2e-gitops does, or to flux or argocd for one alone")
	}
	tegen, err := cluster.BuildCommand(t.Context(), os.Stderr, "./cmd/tegen")
	if err != nil {
		t.Fatal(err)
	}
	lab := gitops.Start(t, gitops.Options{
		NoFlux: only == "argocd", NoArgo: only == "flux",
		Plugin: gitops.Plugin{Config: "../../../images", Command: filepath.Dir(tegen)},
	})
	configure(t, lab, tegen)
	if _, err := lab.AddNodes(t.Context(), cluster.NodeOptions{
		Count: 8, GPUs: 8, Other: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Ti")},
	}); err != nil {
		t.Fatal(err)
	}
	t.Run("defaults", func(t *testing.T) { defaults(t, lab, tegen) })
	t.Run("cases", func(t *testing.T) {
		states(t, lab, tegen)
		for i, c := range cases {
			if c.alone {
				continue
			}
			for _, r := range lab.Reconcilers() {
				if c.only != "" && c.only != r.Name() {
					continue
				}
				t.Run(c.row+"/"+r.Name(), func(t *testing.T) {
					slice.Skip(t, i)
					t.Parallel()
					c.run(newPlace(t, lab, r, tegen, c.row))
				})
			}
		}
	})
	for _, c := range cases {
		if !c.alone {
			continue
		}
		for _, r := range lab.Reconcilers() {
			t.Run(c.row+"/"+r.Name(), func(t *testing.T) { c.run(newPlace(t, lab, r, tegen, c.row)) })
		}
	}
}

// configure does what docs/gitops-argocd.md says to do once for each Argo CD.
func configure(t *testing.T, lab *gitops.Lab, tegen string) {
	t.Helper()
	if lab.Argo == nil {
		return
	}
	if _, err := lab.Apply(t.Context(), command(t, tegen, "gitops", "argocd", "config")); err != nil {
		t.Fatal(err)
	}
}

// command is what a program of the checkout prints; the test fails where the program does.
func command(t *testing.T, program string, args ...string) string {
	t.Helper()
	var notes bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, notes.Bytes())
	}
	return string(out)
}
