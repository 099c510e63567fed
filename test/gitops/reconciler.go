package gitops

import (
	"cmp"
	"context"
	"fmt"
)

// Reconciler is Flux or Argo CD.
type Reconciler interface {
	Name() string
	// Follow makes it keep the cluster at what a folder of a repository says.
	Follow(ctx context.Context, app App) error
	// Ask has it look at the repository now.
	Ask(ctx context.Context, app App) error
	// Sync is Ask, and waits until it has done all that it will do about the newest commit.
	Sync(ctx context.Context, app App) (Status, error)
	// Status is what a user sees of it at the moment.
	Status(ctx context.Context, app App) (Status, error)
	// Remove deletes what Follow made, and waits until it is gone with all that it takes along.
	Remove(ctx context.Context, app App) error
	// Requests counts what it asked the API server for since its start.
	Requests() (Requests, error)
	// Memory is the resident memory of its programs, in MiB by name.
	Memory() (map[string]int, error)
}

// App is a folder of a repository that a reconciler follows.
type App struct {
	Name       string // of the Application or the Kustomization
	Source     string // of the GitRepository or OCIRepository of Flux; "" where it has the same name
	Repository *Repository
	Artifact   string // digest, where it follows an artifact in place of the repository
	Path       string // of the folder
	Options    AppOptions
}

// head is what a reconciler calls the newest revision, or how that ends.
func (a App) head() string { return cmp.Or(a.Artifact, a.Repository.Head) }

// AppOptions are what of an Application or Kustomization decides what happens. The zero value is what a newcomer
// writes.
type AppOptions struct {
	ServerSideApply bool           // Argo CD's sync option; Flux does nothing else
	Argo            map[string]any // merged into the Application's spec
	Flux            map[string]any // merged into the Kustomization's spec
}

// Status is what a user sees of an app.
type Status struct {
	Revision string // the commit that was tried last
	Synced   bool   // the cluster is at this commit
	Health   string // in the words of the reconciler
	Message  string
}

func (s Status) String() string {
	return fmt.Sprintf("synced=%v health=%q %s", s.Synced, s.Health, s.Message)
}
