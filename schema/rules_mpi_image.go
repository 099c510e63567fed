package schema

import "strings"

var imageSSHRules = []rule{
	{(*validation).imageSSH, "framework target ssh mpi"},
	{(*validation).imageKeys, "framework target ssh security"},
	{(*validation).imageLauncher, "framework target ssh.server mpi gang"},
}

// ImageSSH says whether the workers run an sshd that their image has set up, with keys of the MPI operator's.
func (s *Spec) ImageSSH() bool { return s.SSH.Server == SSHImage }

// KeysPath is where the operator mounts these keys.
func (s *Spec) KeysPath() string {
	if s.SSH.KeysPath == "" {
		return rootKeys
	}
	return s.SSH.KeysPath
}

// rootKeys is the operator's default (setDefaults in pkg/apis/kubeflow/v2beta1/default.go).
const rootKeys = "/root/.ssh"

// imageSSH keeps apart what is said of tegen's ssh and of an image's.
func (r *validation) imageSSH() {
	if !r.Spec.HostLaunched() || r.Spec.Target != TargetMPIJob && r.Spec.ImageSSH() {
		return // whose row refuses it
	}
	if !r.Spec.ImageSSH() {
		for _, field := range []string{
			"ssh.keysPath", "ssh.command", "ssh.args", "ssh.restart", "mpi.launcherStart", "mpi.launcherRestart",
			"mpi.launcherWorks",
		} {
			if r.IsSet("spec." + field) {
				r.fail("spec."+field, "requires", "tegen sets up ssh and the launcher that waits for it: set "+
					"ssh.server: image, with mpi.launch: command, for an image that does so itself, or leave it out")
			}
		}
		return
	}
	if r.Spec.Framework != FrameworkMPI {
		return
	}
	if r.Spec.MPI.Launch != LaunchCommand {
		r.fail("spec.ssh.server", "requires", "an sshd of the image's hands on no variables and has a port that is "+
			"unknown here: give mpirun's whole line in spec.command, with -x for each variable, and set mpi.launch: "+
			"command")
	}
	if r.IsSet("spec.ssh.port") {
		r.fail("spec.ssh.port", "requires", "the image's sshd listens where its own configuration says: leave it out, "+
			"or say so in ssh.command")
	}
	if r.IsSet("spec.mpi.startTimeout") {
		r.fail("spec.mpi.startTimeout", "requires", "nothing of tegen's waits for the workers of ssh.server image: "+
			"leave it out, and see mpi.launcherStart")
	}
}

// imageKeys knows who can read the keys. Those at /root/.ssh are 0600, all others 0644 (setupSSHOnPod in pkg/controller
// of the MPI operator), of root; an fsGroup adds rights of a group, and ssh then refuses its own user's key
// (sshkey_perm_ok in OpenSSH's authfile.c).
func (r *validation) imageKeys() {
	s := &r.Spec.Security
	if !r.Spec.ImageSSH() || r.Spec.Framework != FrameworkMPI || r.Spec.Target != TargetMPIJob {
		return
	}
	at, user := r.Spec.KeysPath(), s.RunAsUser
	root := at == "/root" || strings.HasPrefix(at, "/root/")
	switch {
	case root && user.Number != nil && !user.Is(0):
		r.fail("spec.ssh.keysPath", "requires", "the keys at %s are root's, and the pods run as user %d: give the "+
			"directory where the image has the keys of that user, such as /home/mpiuser/.ssh, or set security: "+
			"{runAsUser: image, restricted: false}", at, *user.Number)
	case s.Restricted && (user.Is(0) || root):
		r.fail("spec.security.restricted", "requires", "an sshd that runs as root needs capabilities that these pods "+
			"drop: set restricted: false")
	case at == rootKeys && s.FSGroup.Number != nil:
		r.fail("spec.security.fsGroup", "requires", "its group may read the keys at %s, and ssh refuses a key that "+
			"others can read: set fsGroup: none", at)
	}
}

// imageLauncher knows that a gang is placed as a whole, the launcher with it.
func (r *validation) imageLauncher() {
	if r.Spec.ImageSSH() && r.Spec.MPI.LauncherStart == "ready" && r.Spec.Gang.Active() {
		r.fail("spec.mpi.launcherStart", "requires", "the gang has the launcher among its pods, and would wait for it "+
			"for ever: leave it out")
	}
}
