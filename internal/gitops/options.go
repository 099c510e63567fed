// Package gitops is the way from a tree of rendered jobs to what Argo CD and Flux reconcile it by. In go flags and the
// tree, as a file system; out come the objects of either controller, or every mistake. Each job is an Application or a
// Kustomization of its own, so that what is wrong with one stops no other.
package gitops

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Source is where a controller finds a tree.
type Source struct {
	URL      string
	Revision string // "" for the default
	Path     string // of the tree, with slashes
}

// IsOCI reports that the tree is an artifact in a registry, not a folder in git.
func (s Source) IsOCI() bool { return strings.HasPrefix(s.URL, ociScheme) }

const (
	ociScheme     = "oci://"
	defaultBranch = "main"
	defaultTag    = "latest"
)

// revision is a branch, tag or commit of git, or a tag or digest of an artifact.
func (s Source) revision() string {
	switch {
	case s.Revision != "":
		return s.Revision
	case s.IsOCI():
		return defaultTag
	}
	return defaultBranch
}

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

var (
	gitSchemes = []string{"https", "http", "ssh", "file"}
	scpForm    = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/]`)
	revision   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:+@-]*$`)
	filePath   = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
)

// check returns every mistake in the flags.
func (o Options) check() (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := o.checkURL(); err != nil {
		errs = append(errs, err)
	}
	if o.Revision != "" && (!revision.MatchString(o.Revision) || strings.Contains(o.Revision, "..")) {
		fail("--revision: must be a branch, tag or commit, or a tag or digest of an artifact, not %q", o.Revision)
	}
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
		!filePath.MatchString(name) {
		return fmt.Errorf("must be a path below the root of the repository or artifact, such as rendered/eks, of "+
			"letters, digits, '.', '_', '-' and '/', not %q", name)
	}
	return nil
}

// checkURL refuses passwords: what is rendered here is committed.
func (o Options) checkURL() error {
	const want = "must be the address of a repository, such as https://git.example/team/jobs, or of an artifact, " +
		"such as oci://registry.example/team/jobs"
	if o.URL == "" {
		return errors.New("--repo: is missing, and " + want)
	}
	if scpForm.MatchString(o.URL) {
		at, rest, _ := strings.Cut(o.URL, ":")
		return fmt.Errorf("--repo: must have a scheme, which Flux cannot do without: write ssh://%s/%s", at, rest)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "oci" && !slices.Contains(gitSchemes, u.Scheme) || u.Path == "" ||
		u.Host == "" && u.Scheme != "file" {
		return fmt.Errorf("--repo: %s, not %q", want, o.URL)
	}
	if _, ok := u.User.Password(); ok {
		return errors.New("--repo: must have no password, which would be committed: put it into a Secret that the " +
			"controller reads")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--repo: %s, without '?' and '#', not %q: --revision names a branch or tag", want, o.URL)
	}
	return nil
}
