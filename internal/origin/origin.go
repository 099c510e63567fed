// Package origin says where a directory's content comes from: the URL of its repository and the revision in it, in the
// form in which Flux writes both. Text or a directory goes in; what comes out is fit to be published: no URL holds a
// credential, and a revision names a commit that has everything in the directory.
package origin

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// Origin is where what is published was made of.
type Origin struct {
	Source   string // "https://git.example/team/jobs"
	Revision string // "main@sha1:…", or "sha1:…" where no branch is known
}

var revision = lazy.Regexp(`^(?:[^@\s]+@)?(?:sha1:([0-9a-f]{40})|sha256:([0-9a-f]{64}))$`)

// Commit returns the commit that the revision names.
func (o Origin) Commit() string {
	if m := revision().FindStringSubmatch(o.Revision); m != nil {
		return m[1] + m[2]
	}
	return ""
}

// CheckRevision refuses what Flux would not read as a revision.
func CheckRevision(text string) error {
	if revision().MatchString(text) {
		return nil
	}
	return fmt.Errorf("must be BRANCH@sha1:COMMIT or sha1:COMMIT, with all 40 digits of the commit, not %q", text)
}

// CheckSource refuses what is no URL of a repository, or holds what should not be published. No part of the text is in
// the error, since it may be a password.
func CheckSource(text string) error {
	clean, err := withoutCredentials(text)
	switch {
	case err != nil:
		return err
	case clean != text && strings.Contains(text, "://"):
		return errors.New("must hold no user, password, query or fragment: everybody who may pull the artifact can " +
			"read it; write scheme://host/path, or ssh://git@host/path")
	case clean != text:
		return fmt.Errorf("must be a URL: write %s", clean)
	}
	return nil
}

// short is how ssh calls a repository: git@host:path.
var short = lazy.Regexp(`^([A-Za-z0-9._-]+)@([A-Za-z0-9.-]+):([^/].*)$`)

// withoutCredentials returns the URL of a repository without what may be one. The user of ssh stays, since it is part
// of the address: the key is the credential.
func withoutCredentials(text string) (string, error) {
	if m := short().FindStringSubmatch(text); m != nil {
		text = "ssh://" + m[1] + "@" + m[2] + "/" + m[3]
	}
	u, err := url.Parse(text) // whose error has the text in it
	if err != nil || u.Host == "" || u.Path == "" {
		return "", errors.New("must be the URL of a repository, such as https://git.example/team/jobs")
	}
	switch u.Scheme {
	case "ssh":
		if u.User != nil {
			u.User = url.User(u.User.Username())
		}
	case "https", "http", "git":
		u.User = nil
	default:
		return "", fmt.Errorf("must begin with https://, http://, git:// or ssh://, not %s://", u.Scheme)
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = "", false, "", ""
	return u.String(), nil
}
