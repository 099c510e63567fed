//go:build linux

package torch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sharedInRoot is where a process in a root folder sees the shared folder.
const sharedInRoot = "/tmp/shared"

// version is one of the torch versions, all from Debian. That of sid moves on: what it is today is in the test's
// output.
type version struct {
	name  string
	suite string // of its root folder; none is this machine
}

var (
	torch113 = version{"1.13", ""}
	torch26  = version{"2.6", "trixie"}
	torch214 = version{"2.14", "sid"}
	versions = slices.DeleteFunc([]version{torch113, torch26, torch214}, version.excluded)
)

// excluded says whether TEGEN_TORCH_VERSIONS lists other versions, with commas. By default all are tested.
func (v version) excluded() bool {
	list := os.Getenv("TEGEN_TORCH_VERSIONS")
	return list != "" && !slices.Contains(strings.Split(list, ","), v.name)
}

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
	command = v.inside(t, command)
	return spawn(t, name, env, command[0], command[1:]...)
}

// inside is a command as it runs where the version is installed.
func (v version) inside(t *testing.T, command []string) []string {
	t.Helper()
	if v.suite == "" {
		return command
	}
	return append([]string{"unshare", "-m", "sh", "-c", enter, "enter", v.root(t), shared}, command...)
}

// environment is what workers of the version need on one machine.
func (v version) environment() []string {
	return []string{
		"TEGEN_TORCH_DIR=" + v.folder(), "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1", "LOGLEVEL=INFO",
		"USE_LIBUV=0", "PYTHONPATH=" + v.folder() + "/site", // see site/sitecustomize.py
	}
}

// torchrunEnv is what torchrun needs besides.
func (v version) torchrunEnv() []string {
	if v == torch113 {
		// Without it, Debian's torch 1.13 starts no worker on its Python 3.11.
		return []string{"PET_REDIRECTS=9:1", "PET_TEE=9:1"}
	}
	// By default agents share a store with the workers that outlives a world: its old addresses hang the next one.
	return []string{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"}
}

// program is tegen-rendezvous as a process of the version sees it.
func (v version) program(t *testing.T) string {
	t.Helper()
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	return v.folder() + "/tegen-rendezvous"
}

// settings are the run's as torchrun's options, without dashes.
func (r *run) settings() [][2]string {
	all := [][2]string{
		{"rdzv_backend", r.backend},
		{"rdzv_endpoint", r.endpoint},
		{"rdzv_id", r.id},
		{"rdzv_conf", r.conf},
		{"nnodes", r.nodes},
		{"nproc_per_node", "1"},
		{"max_restarts", "100"},
	}
	if r.monitor != "" {
		all = append(all, [2]string{"monitor_interval", r.monitor})
	}
	return all
}

// options are the settings on a command line.
func (r *run) options() []string {
	var options []string
	for _, s := range r.settings() {
		options = append(options, "--"+s[0]+"="+s[1])
	}
	return options
}

// variables are the settings in the environment.
func (r *run) variables() []string {
	var variables []string
	for _, s := range r.settings() {
		variables = append(variables, "PET_"+strings.ToUpper(s[0])+"="+s[1])
	}
	return variables
}

// kind is what an agent is.
type kind string

const (
	torchrun  kind = "torch"    // PyTorch's, with options alone
	variables kind = "variable" // PyTorch's, with variables alone
	proxied   kind = "proxied"  // PyTorch's, behind a proxy of ours
)

// start starts an agent and returns its name.
func (r *run) start(k kind) string {
	r.t.Helper()
	h := r.nextHost()
	python, train := "/usr/bin/python3", r.version.folder()+"/train.py"
	var env, command []string
	switch k {
	case torchrun, proxied:
		env, command = r.version.torchrunEnv(), []string{python, "-m", "torch.distributed.run"}
		if k == proxied {
			command = append([]string{r.version.program(r.t), "proxy", "--"}, command...)
		}
		if r.version != torch113 { // which lacks the option
			command = append(command, "--local_addr="+h.address)
		}
		command = append(append(command, r.options()...), train)
	case variables:
		env = append(append(r.version.torchrunEnv(), "PET_LOCAL_ADDR=127.0.0.1"), r.variables()...)
		command = []string{python, "-m", "torch.distributed.run", train}
	}
	r.started++
	name := fmt.Sprintf("%s-%d", k, r.started)
	env = append(append(env, r.version.environment()...), "TEGEN_TORCH_RUN="+r.id, "TEGEN_TORCH_NODE="+name)
	env = append(env, r.env...)
	command = h.inside(r.version.inside(r.t, command))
	process := spawn(r.t, r.id+"-"+name, append(env, h.environment()...), command[0], command[1:]...)
	r.agents[name] = &agent{host: h, process: process}
	return name
}
