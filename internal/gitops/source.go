package gitops

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Source is where a controller finds a tree.
type Source struct {
	URL      string // of a repository, or oci:// with what 'tegen publish' was given
	Revision string // "" for main, or for what the URL of an artifact says
	Path     string // of the tree, with slashes
}

const (
	ociScheme     = "oci://"
	sshScheme     = "ssh://"
	defaultBranch = "main"
)

// IsOCI reports that the tree is an artifact in a registry, not a folder in git.
func (s Source) IsOCI() bool { return strings.HasPrefix(s.URL, ociScheme) }

// artifact takes a tag or digest off the address of an artifact. Of tag@digest, as 'tegen publish' prints it, the
// digest is what is read.
func (s Source) artifact() (address, revision string) {
	address, digest, isDigest := strings.Cut(s.URL, "@")
	tag := ""
	if slash := strings.LastIndex(address, "/"); strings.Contains(address[slash+1:], ":") {
		colon := strings.LastIndex(address, ":")
		address, tag = address[:colon], address[colon+1:]
	}
	if isDigest {
		return address, digest
	}
	return address, tag
}

// address is what a controller takes for the URL, which of an artifact is without tag and digest.
func (s Source) address() string {
	if !s.IsOCI() {
		return s.URL
	}
	address, _ := s.artifact()
	return address
}

// revision is a branch, a full reference (refs/...) or a commit of git, or a tag or digest of an artifact.
func (s Source) revision() string {
	switch {
	case s.Revision != "":
		return s.Revision
	case s.IsOCI():
		_, revision := s.artifact()
		return revision
	}
	return defaultBranch
}

var (
	gitSchemes = []string{"https", "http", "ssh", "file"}
	scpForm    = lazy.Regexp(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/]`)
	reference  = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._/+@-]*$`)
	commit     = lazy.Regexp(`^[0-9a-f]{40}$`)
	// ambiguous is what a person means as a tag or as a part of a commit, while Flux would look for such a branch.
	ambiguous = lazy.Regexp(`^(v?[0-9]+([.][0-9]+)+([-+].*)?|v[0-9]+|[0-9a-f]{7,64})$`)

	repository = lazy.Regexp(`^([A-Za-z0-9-]+[.:][A-Za-z0-9.-]*|localhost)(:[0-9]+)?` +
		`(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
	tag    = lazy.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digest = lazy.Regexp(`^sha256:[0-9a-f]{64}$`)
)

var errLogin = errors.New("--repo: must have no password, and no user but with ssh://, which would be committed: put " +
	"them into a Secret that the controller reads")

// Check returns every mistake in --repo and --revision.
func (s Source) Check() []error {
	errs := []error{s.checkURL()}
	if s.IsOCI() && errs[0] == nil {
		errs = append(errs, s.checkArtifact()...)
	} else if !s.IsOCI() {
		errs = append(errs, s.checkReference())
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// checkURL refuses passwords, and users other than those of ssh, for a token is often given as one: what is rendered
// here is committed. It does not print them either.
func (s Source) checkURL() error {
	const want = "must be the address of a repository, such as https://git.example/team/jobs, or of an artifact, " +
		"such as oci://registry.example/team/jobs:eks"
	if s.URL == "" {
		return errors.New("--repo: is missing, and " + want)
	}
	if scpForm().MatchString(s.URL) {
		at, rest, _ := strings.Cut(s.URL, ":")
		return fmt.Errorf("--repo: must have a scheme, which Flux cannot do without: write %s%s/%s", sshScheme, at,
			rest)
	}
	if s.IsOCI() {
		if strings.Contains(strings.SplitN(s.URL, "/", 4)[2], "@") {
			return errLogin
		}
		if !repository().MatchString(strings.TrimPrefix(s.address(), ociScheme)) {
			return fmt.Errorf("--repo: %s, in lower case, not %q", want, s.URL)
		}
		return nil
	}
	u, err := url.Parse(s.URL)
	if err == nil && u.User != nil {
		if _, password := u.User.Password(); password || u.Scheme != "ssh" {
			return errLogin
		}
	}
	if err != nil || !slices.Contains(gitSchemes, u.Scheme) || u.Path == "" || u.Host == "" && u.Scheme != "file" {
		if strings.Contains(s.URL, "@") {
			return fmt.Errorf("--repo: %s, without a user", want)
		}
		return fmt.Errorf("--repo: %s, not %q", want, s.URL)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--repo: %s, without '?' and '#', not %q: --revision names a branch or tag", want, s.URL)
	}
	return nil
}

// checkReference holds what git calls a revision to one meaning in both controllers: Argo CD takes a word for a branch,
// a tag or the start of a commit, Flux for a branch alone.
func (s Source) checkReference() error {
	switch text := s.Revision; {
	case text == "":
	case !reference().MatchString(text) || strings.Contains(text, "..") || text == "HEAD":
		return fmt.Errorf("--revision: must be a branch, refs/tags/TAG or a commit of 40 digits, not %q", text)
	case ambiguous().MatchString(text) && !commit().MatchString(text):
		return fmt.Errorf("--revision: %q may be a tag, a branch or a part of a commit: write refs/tags/%s, "+
			"refs/heads/%s or the commit's 40 digits", text, text, text)
	}
	return nil
}

// checkArtifact wants a tag or digest, said once.
func (s Source) checkArtifact() (errs []error) {
	address, said := s.artifact()
	switch {
	case said != "" && s.Revision != "":
		return []error{fmt.Errorf("--revision: --repo names %s already: write it in one of them", said)}
	case s.revision() == "":
		return []error{fmt.Errorf("--repo: has no tag: write what 'tegen publish' was given, such as %s:eks, or "+
			"--revision eks", address)}
	case !tag().MatchString(s.revision()) && !digest().MatchString(s.revision()):
		return []error{fmt.Errorf("--revision: must be the tag or digest of an artifact, such as eks or sha256:..., "+
			"not %q", s.revision())}
	}
	return nil
}
