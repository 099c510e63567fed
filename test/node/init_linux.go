package node

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// machine is what the first process of a node reads.
type machine struct {
	Dir     string   `json:"dir"`
	Socket  string   `json:"socket"`
	Imports []string `json:"imports"` // archives
	Kubelet []string `json:"kubelet"` // program and arguments; none on a node that only imports
}

// runtimeTimeout is for containerd to listen.
const runtimeTimeout = time.Minute

// NodeInit is the first process of a node: it starts containerd and the kubelet, and collects the processes that others
// leave behind. It ends when one of the two does, and everything on the node with it.
func NodeInit(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("starting a node: %w", err)
	}
	var m machine
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("starting a node: %w", err)
	}
	if err := m.mount(); err != nil {
		return err
	}
	containerd, err := m.start("containerd", "--config", filepath.Join(m.Dir, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := m.awaitSocket(containerd); err != nil {
		return err
	}
	for _, archive := range m.Imports {
		// As 'kind load image-archive' does.
		out, err := exec.Command("ctr", "--address", m.Socket, "--namespace", "k8s.io", "images", "import",
			"--all-platforms", "--digests", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("importing %s: %w: %s", archive, err, out)
		}
	}
	if len(m.Kubelet) == 0 {
		return stop(containerd)
	}
	kubelet, err := m.start(m.Kubelet[0], m.Kubelet[1:]...)
	if err != nil {
		return err
	}
	for {
		pid, status, err := reap()
		if err != nil {
			return fmt.Errorf("waiting for processes of the node: %w", err)
		}
		switch pid {
		case containerd:
			return fmt.Errorf("containerd ended (%d)", status)
		case kubelet:
			return fmt.Errorf("the kubelet ended (%d)", status)
		}
	}
}

// stop ends containerd in its own time, so that its databases are whole.
func stop(containerd int) error {
	if err := syscall.Kill(containerd, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping containerd: %w", err)
	}
	for {
		if pid, _, err := reap(); pid == containerd || err != nil {
			return err
		}
	}
}

// mount gives the node folders of its own where programs insist on fixed places: nothing is written to the host's.
func (m machine) mount() error {
	if err := ownMounts(); err != nil {
		return err
	}
	upper, work := filepath.Join(m.Dir, "lib"), filepath.Join(m.Dir, "lib.work")
	kubelet := filepath.Join(m.Dir, "kubelet")
	for _, dir := range []string{upper, work, kubelet} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("mounting the node's folders: %w", err)
		}
	}
	// The kubelet's own folder must not be on the overlay, which cannot carry the overlays of containers.
	options := "lowerdir=/var/lib,upperdir=" + upper + ",workdir=" + work
	if err := syscall.Mount("overlay", "/var/lib", "overlay", 0, options); err != nil {
		return fmt.Errorf("mounting the node's /var/lib: %w", err)
	}
	if err := os.MkdirAll("/var/lib/kubelet", 0o755); err != nil {
		return fmt.Errorf("mounting the node's folders: %w", err)
	}
	if err := syscall.Mount(kubelet, "/var/lib/kubelet", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the node's /var/lib/kubelet: %w", err)
	}
	for _, dir := range []string{"/run", "/var/log"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting the node's %s: %w", dir, err)
		}
	}
	return nil
}

// start starts a program whose output goes to a log of its own, and returns its process id.
func (m machine) start(program string, args ...string) (int, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", program, err)
	}
	log, err := os.OpenFile(filepath.Join(m.Dir, filepath.Base(program)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", program, err)
	}
	defer log.Close() //nolint:errcheck // the program writes through a descriptor of its own
	pid, err := syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Env:   environment(),
		Files: []uintptr{0, log.Fd(), log.Fd()},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", program, err)
	}
	return pid, nil
}

// environment is ours without what go test and the lab put there: containerd would hand it to shims.
func environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TEGEN_") {
			env = append(env, entry)
		}
	}
	return env
}

// awaitSocket waits until containerd listens, or has ended.
func (m machine) awaitSocket(containerd int) error {
	deadline := time.Now().Add(runtimeTimeout)
	for {
		connection, err := net.Dial("unix", m.Socket)
		if err == nil {
			return connection.Close()
		}
		var status syscall.WaitStatus
		ended, _ := syscall.Wait4(containerd, &status, syscall.WNOHANG, nil)
		if ended == containerd || time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(m.Dir, "containerd.log")) // the folder may be gone when somebody looks
			return fmt.Errorf("waiting for containerd: not ready (ended: %v): %w:\n%s", ended == containerd,
				err, log[max(0, len(log)-2000):])
		}
		time.Sleep(50 * time.Millisecond)
	}
}
