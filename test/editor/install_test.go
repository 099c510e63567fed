package editor

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

var (
	once    sync.Once
	modules string // of the pinned server, where it is installed
	skipped string // why it is not
	failed  string
)

// install returns the folder node_modules with the pinned language server, which npm installs once for all checkouts.
func install(t *testing.T) string {
	t.Helper()
	once.Do(func() { fetch(t) })
	if failed != "" {
		t.Fatal(failed)
	}
	if skipped != "" {
		t.Skip(skipped)
	}
	return modules
}

// unreachable is how npm says that there is no way to its registry.
var unreachable = regexp.MustCompile(`code (E?NOTFOUND|ENOTCACHED|EAI_AGAIN|ECONN[A-Z]+|E[A-Z]*TIMEDOUT|` +
	`ERR_SOCKET_TIMEOUT|E(NET|HOST)UNREACH|E(40[347]|50[0-9])|[A-Z_]*CERT[A-Z_]*)\b`)

func fetch(t *testing.T) {
	t.Helper()
	const missing = "no editor is asked: the language server that the tests ask is a package of npm, and "
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			skipped = missing + "there is no " + program + " on this machine"
			return
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		skipped = missing + "there is no folder for it: " + err.Error()
		return
	}
	hash := sha256.New()
	names := []string{"package.json", "package-lock.json", ".npmrc"}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(text)
	}
	root := filepath.Join(cache, "tegen", "editor", hex.EncodeToString(hash.Sum(nil)[:8]))
	modules = filepath.Join(root, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(root), "new-") //nolint:usetesting // renamed within one file system
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--fetch-retries=1", "--fetch-timeout=30000")
	cmd.Dir = fresh
	switch out, err := cmd.CombinedOutput(); {
	case err != nil && unreachable.Match(out):
		skipped = missing + "npm gets it from no registry here: " + string(unreachable.Find(out))
	case err != nil:
		failed = "npm ci: " + err.Error() + "\n" + string(out)
	default:
		// Another run may have been faster; both have the same.
		if err := os.Rename(fresh, root); err != nil {
			if _, gone := os.Stat(modules); gone != nil {
				failed = err.Error()
			}
		}
	}
}
