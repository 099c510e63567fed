// Package gitops runs the real Flux and the real Argo CD beside a control plane for tests, with a git server that both
// pull from, on this machine and without root.
//
// In goes nothing; out comes a Lab: source-controller and kustomize-controller of Flux; all of Argo CD but its web
// server, with redis and the sidecar of a plugin, each with the ServiceAccount and the rights of its own installation;
// git repositories that `git http-backend` serves; a registry; the controllers of JobSets and PyTorchJobs; a storage
// class whose volumes are folders of this machine; and an audit log that tells each controller's requests apart. Nodes
// and pods are played by KWOK.
//
// What always holds: as in package cluster, which builds the programs and stops them.
package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/tegen-dev/tegen/test/cluster"
)

// Lab is a control plane that Flux and Argo CD keep at what git says.
type Lab struct {
	*cluster.Cluster
	Git  *Git
	OCI  *httptest.Server // a registry
	Flux *Flux
	Argo *Argo

	progress io.Writer
}

// Options leave out what a test does not need.
type Options struct {
	NoFlux, NoArgo bool
	Plugin         Plugin // of Argo CD
}

func (o Options) programs() []string {
	programs := []string{cluster.JobSet, cluster.TrainingOperator}
	if !o.NoFlux {
		programs = append(programs, cluster.SourceController, cluster.KustomizeController)
	}
	if !o.NoArgo {
		programs = append(programs, cluster.ArgoCD)
	}
	return programs
}

// Start runs a lab for a test and stops it at the test's Cleanup.
func Start(tb testing.TB, o Options) *Lab {
	tb.Helper()
	if _, err := exec.LookPath(redisServer); err != nil && !o.NoArgo {
		tb.Fatalf("Argo CD keeps its cache in redis: install %s (Debian: apt-get install redis-server): %v",
			redisServer, err)
	}
	ctx := tb.Context()
	if err := cluster.Build(ctx, os.Stderr, o.programs()...); err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		tb.Fatal(err)
	}
	audit := filepath.Join(dir, "audit.log")
	c := cluster.Start(tb, cluster.Options{Args: map[string][]string{"kube-apiserver": {
		"--audit-policy-file=" + policy, "--audit-log-path=" + audit,
	}}})
	l := &Lab{Cluster: c, progress: os.Stderr}
	if err := l.start(ctx, o, dir, audit); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Git.Close)
	l.OCI = httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(l.OCI.Close)
	return l
}

// FluxAt runs Flux and a git server beside a control plane that somebody else runs, such as one with real nodes, until
// this process ends. What they write is in a folder.
func FluxAt(ctx context.Context, dir, kubeconfig string) (*Lab, error) {
	c, err := cluster.At(dir, kubeconfig)
	if err != nil {
		return nil, err
	}
	l := &Lab{Cluster: c, progress: os.Stderr}
	if l.Git, err = serveGit(ctx, filepath.Join(dir, "git")); err != nil {
		return nil, err
	}
	if l.Flux, err = startFlux(ctx, c, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("starting Flux: %w", err), c.Down())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, o Options, dir, audit string) (err error) {
	if l.Git, err = serveGit(ctx, filepath.Join(dir, "git")); err != nil {
		return err
	}
	if err := l.StartStorage(ctx, filepath.Join(dir, "volumes"), l.progress); err != nil {
		return err
	}
	if err := l.StartOperators(ctx, l.progress, cluster.JobSet, cluster.TrainingOperator); err != nil {
		return fmt.Errorf("starting the operators: %w", err)
	}
	if !o.NoFlux {
		if l.Flux, err = startFlux(ctx, l.Cluster, audit); err != nil {
			return fmt.Errorf("starting Flux: %w", err)
		}
	}
	if !o.NoArgo {
		if l.Argo, err = startArgo(ctx, l.Cluster, audit, o.Plugin); err != nil {
			return fmt.Errorf("starting Argo CD: %w", err)
		}
	}
	return nil
}

// Reconcilers are those that run, in the order of docs/gitops.md.
func (l *Lab) Reconcilers() (all []Reconciler) {
	if l.Flux != nil {
		all = append(all, l.Flux)
	}
	if l.Argo != nil {
		all = append(all, l.Argo)
	}
	return all
}

var errNotYet = errors.New("not yet")
