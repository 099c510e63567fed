package generators_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// sshPod is the first worker of a job as a container that runs here: scripts, hosts and keys lie in directories of this
// machine, and fakes stand in for programs. A fake sshd takes every option and ends at once, where a real one refuses
// what it does not know: TestSSHD has that. A fake ssh-keyscan prints a line for each host that answers, as the real
// one does for a port other than 22, and nothing of what that one says on stderr (keyprint and put_host_port in OpenSSH
// 7.2 to 10.0, ssh-keyscan.c and misc.c); its status, 1 without any answer since 8.0 and 0 before, is read by nobody.
func sshPod(t *testing.T, hosts string, fakes map[string]string) (c corev1.Container, variables []string, home string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // another user must be able to enter
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	objs := objects(horovod(t))
	scripts := find[*corev1.ConfigMap](t, objs, "resnet-ssh").Data
	scripts["hostfile"] = hosts
	put(t, filepath.Join(dir, "scripts"), scripts, 0o755)
	put(t, filepath.Join(dir, "keys"), map[string]string{"id_rsa": "private", "authorized_keys": "public"}, 0o444)
	put(t, filepath.Join(dir, "bin"), fakes, 0o755)
	home = filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o777); err != nil {
		t.Fatal(err)
	}
	c = worker(t, objs)
	c.Command = []string{"sh", filepath.Join(dir, "scripts", "worker.sh")}
	return c, []string{
		"TEGEN_SSH_DIR=" + filepath.Join(dir, "scripts"), "TEGEN_SSH_KEYS=" + filepath.Join(dir, "keys"),
		"TEGEN_SSH_HOME=" + home,
		"TEGEN_HOSTFILE=" + filepath.Join(dir, "scripts", "hostfile"), "JOB_COMPLETION_INDEX=0",
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"),
	}, home
}

func put(t *testing.T, dir string, files map[string]string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

const twoHosts = "a.svc slots=1\nb.svc slots=1\n"

// TestLauncherWaits: horovodrun starts once every host answers, be that at first or later, and never before.
func TestLauncherWaits(t *testing.T) {
	answer := func(hosts string) string {
		return "#!/bin/sh\ncat >/dev/null\nfor host in " + hosts +
			"; do echo \"[$host]:12345 ssh-ed25519 AAAA\"; done\n"
	}
	fakes := map[string]string{
		"sshd": "#!/bin/sh\n", "ssh": "", "ssh-keygen": "#!/bin/sh\n", "sleep": "#!/bin/sh\n",
		"horovodrun":  "#!/bin/sh\necho \"run $*\"\nexit 7\n",
		"ssh-keyscan": answer("a.svc b.svc"),
	}
	c, variables, home := sshPod(t, twoHosts, fakes)
	out, err := start(t, c, variables...)
	if err == nil || err.Error() != "exit status 7" || !strings.Contains(out, "2 hosts answer after 0 seconds\nrun "+
		"-np 2 -p 12345") {
		t.Errorf("all answer: %v, want horovodrun's own status\n%s", err, out)
	}
	for name, want := range map[string]os.FileMode{"id_rsa": 0o400, "config": 0o600, "environment": 0o600} {
		if info, err := os.Stat(filepath.Join(home, ".ssh", name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, mode %v, want %v", name, err, info.Mode(), want)
		}
	}
	// The processes of a pod have its variables. One of several lines is one, whatever its lines look like, and ssh has
	// no place for it.
	multi := append(slices.Clone(variables), "NOTES=a\nPATH=/tmp/evil\nLD_LIBRARY_PATH=/tmp/evil",
		"PYTHONPATH=/opt/python", "HOROVOD=1")
	_, _ = start(t, c, multi...)
	text, err := os.ReadFile(filepath.Join(home, ".ssh", "environment"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{variables[len(variables)-1], "PYTHONPATH=/opt/python", "HOROVOD=1"} {
		if !slices.Contains(strings.Split(string(text), "\n"), want) {
			t.Errorf("the environment of ssh is\n%swant %s", text, want)
		}
	}
	if strings.Contains(string(text), "evil") || strings.Contains(string(text), "NOTES") {
		t.Errorf("a line of a value became a variable of ssh's:\n%s", text)
	}
	// The container may start again in the same pod.
	if out, err := start(t, c, variables...); err == nil || err.Error() != "exit status 7" {
		t.Errorf("again: %v\n%s", err, out)
	}

	fakes["ssh-keyscan"] = answer("b.svc") + `echo >>"$TEGEN_SSH_HOME/calls"
[ "$(wc -l <"$TEGEN_SSH_HOME/calls")" -le 2 ] || echo "[a.svc]:12345 ssh-ed25519 AAAA"
`
	c, variables, _ = sshPod(t, twoHosts, fakes)
	out, _ = start(t, c, variables...)
	if !regexp.MustCompile(`1 of 2 hosts answer after 0 seconds\n2 hosts answer after \d seconds\nrun -np 2`).
		MatchString(out) {
		t.Errorf("one answers later:\n%s", out)
	}

	fakes["ssh-keyscan"] = answer("b.svc")
	c, variables, _ = sshPod(t, twoHosts, fakes)
	out, err = start(t, c, append(variables, "TEGEN_START_SECONDS=0")...)
	if err == nil || strings.Contains(out, "run ") || !strings.Contains(out, "gave up after 0 seconds: 1 of 2 hosts "+
		"answer on port 12345, and not\n  a.svc\n") {
		t.Errorf("one never answers: %v\n%s", err, out)
	}

	delete(fakes, "ssh-keyscan")
	fakes["env"], fakes["cp"] = "#!/bin/sh\n", "#!/bin/sh\n"
	c, variables, _ = sshPod(t, twoHosts, fakes)
	variables[len(variables)-1], _, _ = strings.Cut(variables[len(variables)-1], ":") // nothing but the fakes
	c.Command[0] = "/bin/sh"
	if out, err := start(t, c, variables...); err == nil || !strings.Contains(out, "ssh-keyscan is missing: the "+
		"image needs openssh-server and openssh-client") {
		t.Errorf("without ssh: %v\n%s", err, out)
	}
}

// TestDiscovery: hosts that answer are printed with their slots; without any the script fails, or horovodrun would read
// an empty line as a host.
func TestDiscovery(t *testing.T) {
	for answers, want := range map[string]string{
		"# a.svc:12345 SSH-2.0\n[a.svc]:12345 ssh-ed25519 AAAA\n[b.svc]:12345 ssh-ed25519 AAAA\n": "a.svc:1\nb.svc:1\n",
		"[b.svc]:12345 ssh-ed25519 AAAA\n": "b.svc:1\n",
		"":                                 "",
	} {
		c, variables, _ := sshPod(t, twoHosts, map[string]string{"ssh-keyscan": "#!/bin/sh\ncat >/dev/null\nprintf '" +
			answers + "'\nexit 1\n"})
		c.Command, c.Args = []string{filepath.Join(filepath.Dir(c.Command[1]), "discover.sh")}, nil
		out, err := start(t, c, variables...)
		if out != want || (err == nil) != (want != "") {
			t.Errorf("%q: %v, printed %q, want %q", answers, err, out, want)
		}
	}
}

// TestWorkingDirectory: a folder like /root, in which a runtime starts a container though its user may not enter it, is
// named at once, on every host.
func TestWorkingDirectory(t *testing.T) {
	for _, index := range []string{"0", "1"} {
		c, variables, home := sshPod(t, twoHosts, map[string]string{
			"sshd":       "#!/bin/sh\n",
			"horovodrun": "#!/bin/sh\necho run\n",
		})
		locked := filepath.Join(home, "locked")
		if err := os.MkdirAll(filepath.Join(locked, "examples"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(locked, 0o755) })
		c.Command = append([]string{"sh", "-c", `chmod 0 .. && exec "$@"`, "sh"}, c.Command...)
		cmd := command(t, c, append(variables, "JOB_COMPLETION_INDEX="+index)...)
		cmd.Dir = filepath.Join(locked, "examples")
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			if err := os.Chown(locked, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		out, err := cmd.CombinedOutput()
		want := "the working directory is " + cmd.Dir + ", which this user cannot enter: start the image in one " +
			"that everybody may read\n"
		if err == nil || string(out) != want {
			t.Errorf("index %s: %v, want a failure\n%s", index, err, out)
		}
	}
}

// TestSSHD runs the real daemon, as a user without rights.
func TestSSHD(t *testing.T) {
	need(t, "ssh", "ssh-keygen", "ssh-keyscan")
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		t.Skip("this machine has no sshd, which the script runs")
	}
	c, variables, home := sshPod(t, "127.0.0.1 slots=1\nlocalhost slots=1\n",
		map[string]string{"horovodrun": "#!/bin/sh\necho \"run by $(id -u)\"\n"})
	c.Env = append(c.Env, corev1.EnvVar{Name: "TEGEN_SSH_PORT", Value: "28222"},
		corev1.EnvVar{Name: "TEGEN_START_SECONDS", Value: "20"})
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, c, variables...)
	cmd.Dir = home
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(home, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // sshd, which a container's end would take along
	if out := read(t, output.Name()); err != nil || !strings.Contains(out, "run by ") ||
		strings.Contains(out, "run by 0\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestKeygen: a pair is made where there is none, and left alone where there is one.
func TestKeygen(t *testing.T) {
	need(t, "ssh-keygen", "base64")
	c := find[*batchv1.Job](t, objects(horovod(t)), "resnet-keygen").Spec.Template.Spec.InitContainers[0]
	home, keys := t.TempDir(), t.TempDir()
	variables := []string{"TEGEN_SSH_HOME=" + home, "TEGEN_SSH_KEYS=" + keys}
	patch := func() (data map[string][]byte) {
		var p struct{ Data map[string][]byte }
		if out, err := start(t, c, variables...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := json.Unmarshal([]byte(read(t, filepath.Join(home, "patch.json"))), &p); err != nil {
			t.Fatal(err)
		}
		return p.Data
	}
	pair := patch()
	if !strings.Contains(string(pair["ssh-privatekey"]), "PRIVATE KEY") ||
		!strings.HasPrefix(string(pair["ssh-publickey"]), "ssh-ed25519 ") || len(pair) != 2 {
		t.Errorf("made %q", pair)
	}
	if left, _ := filepath.Glob(home + "/key*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if err := os.WriteFile(filepath.Join(keys, "ssh-privatekey"), pair["ssh-privatekey"], 0o600); err != nil {
		t.Fatal(err)
	}
	if again := patch(); len(again) != 0 {
		t.Errorf("made another pair: %q", again)
	}
}
