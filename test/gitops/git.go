package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Branch is where commits go.
const Branch = "main"

// Git serves bare repositories over HTTP, by git's own http-backend.
type Git struct {
	dir     string
	server  *httptest.Server
	private sync.Map // passwords by the names of repositories that ask for one
}

func serveGit(ctx context.Context, dir string) (*Git, error) {
	libexec, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("asking git where its programs are: %w", err)
	}
	bare := filepath.Join(dir, "bare")
	if err := os.MkdirAll(bare, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of repositories: %w", err)
	}
	g := &Git{dir: dir}
	g.server = httptest.NewServer(g.guard(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env:  append(GitEnv(), "GIT_PROJECT_ROOT="+bare, "GIT_HTTP_EXPORT_ALL=1"),
	}))
	return g, nil
}

// Protect has a repository ask whoever reads it for a password; the user may be any.
func (g *Git) Protect(r *Repository, password string) { g.private.Store(r.Name, password) }

func (g *Git) guard(served http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
		_, given, _ := r.BasicAuth()
		if password, isPrivate := g.private.Load(name); isPrivate && given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "this repository asks for a password", http.StatusUnauthorized)
			return
		}
		served.ServeHTTP(w, r)
	})
}

// Close ends the server.
func (g *Git) Close() { g.server.Close() }

// GitEnv keeps a person's own settings of git out.
func GitEnv() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=tegen", "GIT_AUTHOR_EMAIL=tegen@example.com",
		"GIT_COMMITTER_NAME=tegen", "GIT_COMMITTER_EMAIL=tegen@example.com",
	}
}

// Repository is a clone of a served repository, in which a test commits.
type Repository struct {
	Name string
	URL  string // as a controller pulls it
	Dir  string // of the clone
	Head string // the last commit
}

// Create makes an empty repository and a clone of it.
func (g *Git) Create(ctx context.Context, name string) (*Repository, error) {
	bare := filepath.Join(g.dir, "bare", name+".git")
	r := &Repository{Name: name, URL: g.server.URL + "/" + name + ".git", Dir: filepath.Join(g.dir, "clones", name)}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + Branch, bare},
		{"clone", "--quiet", bare, r.Dir},
	} {
		if _, err := git(ctx, args...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Commit commits all that is in the clone and pushes it.
func (r *Repository) Commit(ctx context.Context, message string) error {
	for _, args := range [][]string{
		{"add", "--all"}, {"commit", "--quiet", "--allow-empty", "-m", message}, {"push", "--quiet", "origin", Branch},
	} {
		if _, err := git(ctx, append([]string{"-C", r.Dir}, args...)...); err != nil {
			return err
		}
	}
	head, err := git(ctx, "-C", r.Dir, "rev-parse", "HEAD")
	r.Head = strings.TrimSpace(head)
	return err
}

func git(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), GitEnv()...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "),
			errors.Join(err, errors.New(strings.TrimSpace(errs.String()))))
	}
	return out.String(), nil
}
