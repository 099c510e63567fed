package origin

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func TestCheckRevision(t *testing.T) {
	long := commit + commit[:24]
	for text, want := range map[string]string{
		"main@sha1:" + commit: commit, "sha1:" + commit: commit, "sha256:" + long: long,
		"feature/a+b@sha256:" + long: long, "v1.2.3@sha1:" + commit: commit,
	} {
		if err := CheckRevision(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := (Origin{Revision: text}).Commit(); got != want {
			t.Errorf("%s: commit %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "main", commit, "main@" + commit, "main@sha1:", "sha1:" + commit[1:], "sha1:" + commit + "0",
		"@sha1:" + commit,
		"sha256:" + commit, "a b@sha1:" + commit, "sha1:" + strings.ToUpper(commit), "main@sha1:" + commit + "\n",
	} {
		if err := CheckRevision(text); err == nil || !strings.Contains(err.Error(), "must be BRANCH@sha1:COMMIT") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestSource(t *testing.T) {
	for text, want := range map[string]string{
		"https://git.example/team/jobs":                    "https://git.example/team/jobs",
		"https://git.example:8443/team/jobs.git":           "https://git.example:8443/team/jobs.git",
		"https://me:s3cret@git.example/team/jobs.git":      "https://git.example/team/jobs.git",
		"https://s3cret@git.example/team/jobs":             "https://git.example/team/jobs",
		"https://git.example/jobs?token=s3cret#s3cret":     "https://git.example/jobs",
		"ssh://git@git.example/team/jobs.git":              "ssh://git@git.example/team/jobs.git",
		"ssh://git:s3cret@git.example:2222/team/jobs.git":  "ssh://git@git.example:2222/team/jobs.git",
		"git@git.example:team/jobs.git":                    "ssh://git@git.example/team/jobs.git",
		"git://git.example/jobs":                           "git://git.example/jobs",
		"https://git.example/s3cret%2fteam/jobs?":          "https://git.example/s3cret%2fteam/jobs",
		"https://oauth2:s3cret@git.example/jobs?a=s3cret#": "https://git.example/jobs",
	} {
		got, err := withoutCredentials(text)
		if err != nil || got != want {
			t.Errorf("%s: got %q, want %q: %v", text, got, want, err)
		}
		switch err := CheckSource(text); {
		case text == want && err != nil:
			t.Errorf("CheckSource(%s): %v", text, err)
		case text != want && err == nil:
			t.Errorf("CheckSource(%s) takes it", text)
		case err != nil && strings.Contains(err.Error(), "s3cret"):
			t.Errorf("CheckSource(%s) tells the secret: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "/srv/git/jobs", "../jobs", "file:///srv/git/jobs", "https://", "https://git.example", "jobs",
		"https://me:s3cret@git example/jobs", "ext::sh -c s3cret", "https://git.example:s3cret/x",
		"ftp://git.example/jobs",
	} {
		if _, err := withoutCredentials(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v", text, err)
		}
		if err := CheckSource(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("CheckSource(%q): got %v", text, err)
		}
	}
}

// repository is a new one with a tracked file and a tracked folder.
func repository(t *testing.T) (dir, head string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir = t.TempDir()
	for _, v := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"} {
		t.Setenv(v, "a")
	}
	for _, v := range []string{"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(v, "a@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	run(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "job.yaml", "1")
	write(t, dir, "rendered/resnet/worker.yaml", "1")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "Add a job")
	return dir, run(t, dir, "rev-parse", "HEAD")
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRevision: a revision is only told where what is in the directory is that of the commit, or made of it.
func TestRevision(t *testing.T) {
	dir, head := repository(t)
	rendered := filepath.Join(dir, "rendered")
	is := func(t *testing.T, dir, want string) {
		t.Helper()
		if got, err := Revision(t.Context(), dir); err != nil || got != want {
			t.Errorf("got %q, want %q: %v", got, want, err)
		}
	}
	fails := func(t *testing.T, dir, want string) {
		t.Helper()
		if _, err := Revision(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	is(t, rendered, "main@sha1:"+head)

	write(t, dir, "out/resnet/worker.yaml", "1")
	is(t, filepath.Join(dir, "out"), "main@sha1:"+head) // nothing of it is tracked: a build made it
	is(t, rendered, "main@sha1:"+head)

	write(t, dir, "rendered/bert/worker.yaml", "1")
	fails(t, rendered, "it has changes that are not committed (?? rendered/bert/worker.yaml): commit them")
	if err := os.RemoveAll(filepath.Join(rendered, "bert")); err != nil {
		t.Fatal(err)
	}

	write(t, dir, "job.yaml", "2")
	fails(t, rendered, "it has changes that are not committed (M job.yaml)")
	fails(t, filepath.Join(dir, "out"), "it has changes that are not committed (M job.yaml)")
	run(t, dir, "checkout", "-q", "job.yaml")

	run(t, dir, "checkout", "-q", "--detach")
	is(t, rendered, "sha1:"+head)
}

// TestUntracked: from wherever it is asked for, and whatever it is called.
func TestUntracked(t *testing.T) {
	dir, _ := repository(t)
	write(t, dir, ".gitignore", "old/\n")
	for _, name := range []string{"jobs/é \n.yaml", "jobs/b.yml", "old/c.yaml", "notes.txt"} {
		write(t, dir, name, "1")
	}
	files, err := Untracked(t.Context(), filepath.Join(dir, "rendered"))
	want := []string{filepath.Join(dir, "jobs/b.yml"), filepath.Join(dir, "jobs/é \n.yaml")}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("got %q, want %q: %v", files, want, err)
	}
	run(t, dir, "add", ".")
	if files, err = Untracked(t.Context(), dir); err != nil || len(files) > 0 {
		t.Errorf("of what is tracked: %q: %v", files, err)
	}
}

func TestGitErrors(t *testing.T) {
	dir, _ := repository(t)
	if _, err := Source(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "origin") {
		t.Errorf("without a remote: %v", err)
	}
	run(t, dir, "remote", "add", "origin", "https://me:s3cret@git.example/team/jobs.git")
	if got, err := Source(t.Context(), dir); err != nil || got != "https://git.example/team/jobs.git" {
		t.Errorf("got %q: %v", got, err)
	}
	run(t, dir, "remote", "set-url", "origin", "/srv/git/jobs")
	if _, err := Source(t.Context(), dir); err == nil ||
		!strings.Contains(err.Error(), "the URL of its remote 'origin' must be the URL of a repository") {
		t.Errorf("a path: %v", err)
	}

	empty := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(empty))
	if _, err := Revision(t.Context(), empty); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("no repository: %v", err)
	}
	run(t, empty, "init", "-q")
	if _, err := Revision(t.Context(), empty); err == nil {
		t.Error("no commit: no error")
	}
	t.Setenv("PATH", "")
	if _, err := Revision(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "git") {
		t.Errorf("no git: %v", err)
	}
}
