package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// templatePrefix begins the names of templates in the cache folder.
const templatePrefix = "containerd-"

// Template is the root folder of a containerd that has imported the archives, made once and kept beside them: importing
// takes half a minute, and linking what was imported a second.
func Template(ctx context.Context, progress io.Writer, cache string, archives []string) (string, error) {
	version, err := exec.CommandContext(ctx, "containerd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking containerd for its version (test/node/setup.sh installs it): %w", err)
	}
	hash := sha256.New()
	hash.Write(version)
	for _, archive := range archives {
		_, _ = fmt.Fprintln(hash, filepath.Base(archive)) // it names the content
	}
	template := filepath.Join(cache, templatePrefix+hex.EncodeToString(hash.Sum(nil))[:16])
	now := time.Now()
	if err := os.Chtimes(template, now, now); err == nil { // it is there, and in use
		return template, nil
	}
	begin := time.Now()
	// Its sockets want a short path, and the rename the same file system: what is imported is renamed, or copied in
	// full.
	dir, err := os.MkdirTemp(TempDir(), "tegen-template-")
	if err != nil {
		return "", fmt.Errorf("importing images: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder for temporary files
	if err := importInto(ctx, dir, archives); err != nil {
		return "", err
	}
	partial := fmt.Sprintf("%s.%d", template, os.Getpid())
	defer os.RemoveAll(partial) //nolint:errcheck // it is there only where something failed
	if out, err := exec.CommandContext(ctx, "mv", filepath.Join(dir, "containerd"),
		partial).CombinedOutput(); err != nil {
		return "", fmt.Errorf("keeping what was imported: %w: %s", err, out)
	}
	removeUnused(cache)
	if err := os.Rename(partial, template); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keeping what was imported: %w", err)
	}
	_, _ = fmt.Fprintf(progress, "imported %d images in %.1f s\n", len(archives), time.Since(begin).Seconds())
	return template, nil
}

// TempDir is where labs are: TMPDIR, or a folder on a disk, which /tmp is not everywhere.
func TempDir() string { return cmp.Or(os.Getenv("TMPDIR"), "/var/tmp") }

// removeUnused removes templates that no lab has asked for within an hour: one that runs may add nodes yet.
func removeUnused(cache string) {
	const unusedFor = time.Hour
	templates, err := filepath.Glob(filepath.Join(cache, templatePrefix+"*"))
	if err != nil {
		return // they only take room
	}
	for _, template := range templates {
		if info, err := os.Stat(template); err == nil && time.Since(info.ModTime()) > unusedFor {
			_ = os.RemoveAll(template)
		}
	}
}

// importInto runs a node without a kubelet, which ends when it has imported the archives.
func importInto(ctx context.Context, dir string, archives []string) error {
	n := &node{name: "the importing node", index: 1, dir: dir}
	if err := n.writeConfig(""); err != nil {
		return err
	}
	text, err := json.Marshal(machine{Dir: dir, Socket: n.socket(), Imports: archives})
	if err != nil {
		return fmt.Errorf("importing images: %w", err)
	}
	if err := os.WriteFile(n.path("machine.json"), text, 0o600); err != nil {
		return fmt.Errorf("importing images: %w", err)
	}
	var output strings.Builder
	cmd := isolated(exec.CommandContext(ctx, "/proc/self/exe", NodeArg, n.path("machine.json")), syscall.CLONE_NEWNET)
	cmd.Stdout, cmd.Stderr = &output, &output
	started, done := make(chan error, 1), make(chan error, 1)
	go startAndWait(cmd, started, done)
	if err := <-started; err != nil {
		return fmt.Errorf("importing images: %w", err)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("importing images: %w: %s", err, &output)
	}
	return nil
}

// link gives a node what the template holds. Blobs and files of images are never changed and may be the same; databases
// are copied.
func link(template, to string) error {
	if err := exec.Command("cp", "--archive", "--link", template, to).Run(); err != nil { // another file system
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("copying images: %w", err)
		}
		if out, err := exec.Command("cp", "--archive", template, to).CombinedOutput(); err != nil {
			return fmt.Errorf("copying images: %w: %s", err, out)
		}
		return nil
	}
	databases, err := filepath.Glob(filepath.Join(template, "*", "*.db"))
	if err != nil {
		return fmt.Errorf("copying images: %w", err)
	}
	for _, database := range databases {
		own := filepath.Join(to, strings.TrimPrefix(database, template))
		if out, err := exec.Command("cp", "--remove-destination", database, own).CombinedOutput(); err != nil {
			return fmt.Errorf("copying images: %w: %s", err, out)
		}
	}
	return nil
}
