package generators

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

// Where pods that start processes of others, or let others do so, have what that needs.
const (
	sshDir  = "/tegen/ssh"  // scripts
	keysDir = "/tegen/keys" // the Secret
	homeDir = "/tegen/home" // of the user; writable
)

// sshUser is the name under which runAsUser finds itself in /etc/passwd.
const sshUser = "trainer"

func sshName(j *job.Job) string { return j.Metadata.Name + "-" + componentSSH }

// sshConfigName has the hash of the Job whose hosts the ConfigMap lists, if any: a new version takes no hosts from one
// that runs.
func sshConfigName(j *job.Job, jobName string) string {
	return sshName(j) + strings.TrimPrefix(jobName, workerName(j))
}

// ssh is what a launcher needs to start processes in other pods: scripts, and keys unless somebody else has them.
func ssh(j *job.Job) []runtime.Object {
	if !j.Spec.OverSSH() {
		return nil
	}
	out := []runtime.Object{sshConfig(j)}
	if makesKeys(j) {
		out = append(out, keys(j)...)
	}
	return out
}

// rendersKeys says whether an object is one of these, or of those that make certificates.
func rendersKeys(j *job.Job, kind, name string) bool {
	switch kind {
	case "ConfigMap":
		return j.Spec.OverSSH() && isHashed(j, name, sshName(j))
	case "Secret":
		return makesKeys(j) && name == madeSecret(j)
	}
	return makesKeys(j) && name == keygenName(j)
}

// sshConfig has no key: a Secret's content is nothing that a reconciler may know.
func sshConfig(j *job.Job) *corev1.ConfigMap {
	s := &j.Spec.Security
	data := map[string]string{
		"ssh.sh":      sshScript,
		"worker.sh":   workerScript,
		"launcher.sh": launcherScript,
		"discover.sh": discoverScript,
		"passwd":      passwd(s),
	}
	if j.Spec.Target == job.TargetJob {
		data["hostfile"] = hostfile(j)
	}
	return &corev1.ConfigMap{ObjectMeta: meta(j, sshConfigName(j, sshJobName(j)), componentSSH), Data: data}
}

// passwd has the pods' user with a home where its keys lie: root too, beside the one who makes the keys then.
func passwd(s *job.Security) string {
	user, home := *s.RunAsUser.Number, "/root"
	if user == 0 {
		user, home = nobody, homeDir
	}
	return fmt.Sprintf("root:x:0:0:root:%s:/bin/sh\n%s:x:%d:%d::%s:/bin/sh\n", home, sshUser, user, groupOf(s),
		homeDir) + "sshd:x:74:74::/:/bin/false\n" // root's sshd becomes it; before 7.6 all look for it
}

// groupOf is the group of the user: one of the image's own, which ssh does not ask for, is none of the others'.
func groupOf(s *job.Security) int64 {
	if s.RunAsGroup.Number == nil {
		return nobody
	}
	return *s.RunAsGroup.Number
}

// hostfile is a line a host, as horovodrun and mpirun read it. Of an elastic job it has all that may ever be: those
// that are there are found by asking.
func hostfile(j *job.Job) string {
	var b strings.Builder
	line := "%s slots=%d\n"
	if s := &j.Spec; s.Framework == job.FrameworkMPI && s.MPI.Implementation != job.MPIOpen {
		line = "%s:%d\n" // hydra's
	}
	for _, host := range sshHosts(j, sshJobName(j)) {
		fmt.Fprintf(&b, line, host, j.Spec.Slots())
	}
	return b.String()
}

// hostfilePath is where the pods of the launcher find it.
func hostfilePath(j *job.Job) string {
	if j.Spec.Target == job.TargetMPIJob {
		return "/etc/mpi/hostfile" // the operator's, from its ConfigMap <job>-config
	}
	return sshDir + "/hostfile"
}

func sshEnv(j *job.Job) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "TEGEN_SSH_DIR", Value: sshDir},
		{Name: "TEGEN_SSH_KEYS", Value: keysDir},
		{Name: "TEGEN_SSH_HOME", Value: homeDir},
		{Name: "TEGEN_SSH_PORT", Value: strconv.Itoa(int(j.Spec.SSH.Port))},
	}
}

// launchEnv is what the launcher waits for.
func launchEnv(j *job.Job) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "TEGEN_HOSTFILE", Value: hostfilePath(j)},
		{Name: "TEGEN_QUORUM", Value: strconv.Itoa(int(j.Spec.Workers.Min))},
		{Name: "TEGEN_SLOTS", Value: strconv.FormatInt(j.Spec.Slots(), 10)},
		{Name: "TEGEN_START_SECONDS", Value: strconv.FormatInt(seconds(j.Spec.StartTimeout()), 10)},
	}
}

// sshPort is where sshd listens.
func sshPort(j *job.Job) corev1.ContainerPort { return listenPort(j, "ssh", j.Spec.SSH.Port) }

// listenPort is a port that all workers have. On their nodes' network it is the node's, too: the API server would set
// it, and it keeps two workers off one node.
func listenPort(j *job.Job, name string, number int32) corev1.ContainerPort {
	p := corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
	if j.Spec.Network.Host {
		p.HostPort = number
	}
	return p
}

// sshReady says that sshd listens: the Service of an MPIJob names pods only then.
func sshReady() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("ssh")}},
		PeriodSeconds: 5,
	}
}

// sshVolume is the ConfigMap of the Job of that name.
func sshVolume(j *job.Job, jobName string) corev1.Volume {
	return corev1.Volume{Name: "ssh", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: sshConfigName(j, jobName)},
		DefaultMode:          ptr[int32](0o555), // horovodrun runs one of the scripts
	}}}
}

// passwdMount gives the user a line, whatever the image has: ssh, sshd and ssh-keygen serve nobody without.
var passwdMount = corev1.VolumeMount{Name: "ssh", MountPath: "/etc/passwd", SubPath: "passwd", ReadOnly: true}

// withSSH gives a pod of the Job of that name the files of ssh. The keys are mounted by name, so that a pod waits until
// they have been made.
func withSSH(j *job.Job, jobName string, t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.Volumes = append(t.Spec.Volumes, sshVolume(j, jobName), scratch("ssh-home", resource.MustParse("16Mi")))
	c := &t.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "ssh", MountPath: sshDir, ReadOnly: true},
		passwdMount,
		corev1.VolumeMount{Name: "ssh-home", MountPath: homeDir})
	if j.Spec.Target == job.TargetMPIJob { // whose operator mounts its own keys at sshAuthMountPath
		return t
	}
	keys := secretVolume("ssh-keys", keySecret(j))
	keys.Secret.Items = []corev1.KeyToPath{
		{Key: privateKey, Path: "id_rsa"}, // the MPI operator's names, whatever the kind of key
		{Key: publicKey, Path: "authorized_keys"},
	}
	t.Spec.Volumes = append(t.Spec.Volumes, keys)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "ssh-keys", MountPath: keysDir, ReadOnly: true})
	return t
}
