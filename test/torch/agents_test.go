//go:build linux

package torch

import (
	"os"
	"path/filepath"
	"testing"
)

// sharedInRoot is where a process in a root folder sees the shared folder.
const sharedInRoot = "/tmp/shared"

// version is one of the torch versions, all from Debian.
type version struct {
	name  string
	suite string // of its root folder; none is this machine
}

var (
	torch113 = version{"1.13", ""}
	torch26  = version{"2.6", "trixie"}
	torch214 = version{"2.14", "sid"}
	versions = []version{torch113, torch26, torch214}
)

// folder is the shared folder as a process of the version sees it.
func (v version) folder() string {
	if v.suite == "" {
		return shared
	}
	return sharedInRoot
}

// root is the version's root folder.
func (v version) root(t *testing.T) string {
	t.Helper()
	roots := os.Getenv("TEGEN_TORCH_ROOTS")
	if roots == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		roots = filepath.Join(cache, "tegen", "torch")
	}
	root := filepath.Join(roots, v.suite)
	if _, err := os.Stat(filepath.Join(root, "usr", "bin", "python3")); err != nil {
		t.Fatalf("no root folder of %s, which make e2e-torch makes: %v", v.suite, err)
	}
	return root
}

// enter turns a root folder and a command into that command in there. What is mounted is seen by the command and what
// it starts, and gone with them. Shell and chroot become the command: its process is the one that was started.
const enter = `set -e
root=$1 shared=$2
shift 2
mount -t tmpfs tmpfs "$root/tmp"
mkdir "$root` + sharedInRoot + `"
mount --bind "$shared" "$root` + sharedInRoot + `"
for d in dev proc sys; do mount --rbind /$d "$root/$d"; done
exec chroot "$root" "$@"`

// spawn starts a command where the version is installed.
func (v version) spawn(t *testing.T, name string, env []string, command ...string) *process {
	t.Helper()
	if v.suite != "" {
		command = append([]string{"unshare", "-m", "sh", "-c", enter, "enter", v.root(t), shared}, command...)
	}
	return spawn(t, name, env, command[0], command[1:]...)
}

// environment is what agents and workers of the version need on one machine.
func (v version) environment() []string {
	env := []string{
		"TEGEN_TORCH_DIR=" + v.folder(),
		"GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1", "LOGLEVEL=INFO",
	}
	if v == torch113 {
		// Without it, Debian's torch 1.13 starts no worker on its Python 3.11.
		return append(env, "PET_REDIRECTS=9:1", "PET_TEE=9:1")
	}
	return append(env,
		// Debian's torch has no libuv, see site/sitecustomize.py.
		"USE_LIBUV=0", "PYTHONPATH="+v.folder()+"/site",
		// The store that agents share with workers outlives a world, and its old addresses hang the next one.
		"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1",
	)
}

// agentEnv is the environment of the run's agent of this name.
func (r *run) agentEnv(name string) []string {
	return append(append(r.version.environment(), "TEGEN_TORCH_RUN="+r.id, "TEGEN_TORCH_NODE="+name), r.env...)
}

// settings are the run's as torchrun's options, without dashes.
func (r *run) settings() [][2]string {
	return [][2]string{
		{"rdzv_backend", r.backend},
		{"rdzv_endpoint", r.endpoint},
		{"rdzv_id", r.id},
		{"rdzv_conf", r.conf},
		{"nnodes", r.nodes},
		{"nproc_per_node", "1"},
		{"max_restarts", "10"},
		{"monitor_interval", "1"},
	}
}

// torchrun is the command without options.
func (r *run) torchrun() []string {
	command := []string{"/usr/bin/python3", "-m", "torch.distributed.run"}
	if r.version != torch113 { // which knows no such option
		command = append(command, "--local_addr=127.0.0.1")
	}
	return command
}

// torch starts an agent of PyTorch.
func (r *run) torch(name string) {
	r.t.Helper()
	command := r.torchrun()
	for _, s := range r.settings() {
		command = append(command, "--"+s[0]+"="+s[1])
	}
	command = append(command, r.version.folder()+"/train.py")
	r.agents[name] = r.version.spawn(r.t, r.id+"-"+name, r.agentEnv(name), command...)
}
