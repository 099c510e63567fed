// Package gitops is the way from a tree of rendered jobs to what Argo CD and Flux reconcile it by. In go flags and the
// tree, as a file system; out come the objects of either controller, or every mistake. Each job is an Application or a
// Kustomization of its own, so that what is wrong with one stops no other.
package gitops

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// OnRemoval is what becomes of a job's objects when its Application or Kustomization is deleted.
type OnRemoval string

const (
	// Keep leaves them, as they are and running.
	Keep OnRemoval = "keep"
	// Delete deletes them, but what is annotated to stay, such as claims.
	Delete OnRemoval = "delete"
)

// Options are the flags that both controllers share.
type Options struct {
	Source
	Name      string // starts the names of the objects
	Namespace string // of the objects
	OnRemoval OnRemoval
}

// maxName leaves room for a dash and a job's name of 40 letters in a label's 63.
const maxName = 22

var filePath = lazy.Regexp(`^[A-Za-z0-9._/-]+$`)

// check returns every mistake in the flags.
func (o Options) check() (errs []error) {
	errs = o.Check()
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if wrong := validation.IsDNS1123Label(o.Name); len(wrong) > 0 || len(o.Name) > maxName {
		fail("--name: must be a name of lower case letters, digits and '-', of %d characters at most, since the job's "+
			"name follows in the names of objects, not %q: write --name training", maxName, o.Name)
	}
	if wrong := validation.IsDNS1123Label(o.Namespace); len(wrong) > 0 {
		fail("--namespace: must be a name of lower case letters, digits and '-', of 63 characters at most, not %q",
			o.Namespace)
	}
	if err := CheckPath(o.Path); err != nil {
		fail("--path: %w", err)
	}
	if o.OnRemoval != Keep && o.OnRemoval != Delete {
		fail("--on-removal: must be %s or %s, not %q: what becomes of a job's objects when its Application or "+
			"Kustomization is deleted", Keep, Delete, o.OnRemoval)
	}
	return errs
}

// CheckPath refuses what leads out of a repository or artifact, and what a generator of Argo CD takes for a pattern.
func CheckPath(name string) error {
	if name != path.Clean(name) || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") ||
		!filePath().MatchString(name) {
		return fmt.Errorf("must be a path below the root of the repository or artifact, such as rendered/eks, of "+
			"letters, digits, '.', '_', '-' and '/', not %q", name)
	}
	return nil
}
