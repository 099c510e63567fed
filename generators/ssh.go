package generators

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema"
)

// Where pods that start processes of others, or let others do so, have what that needs.
const (
	sshDir  = "/tegen/ssh"  // scripts
	keysDir = "/tegen/keys" // the Secret
	homeDir = "/tegen/home" // of the user; writable
)

// sshUser is the name under which runAsUser finds itself in /etc/passwd.
const sshUser = "trainer"

func sshName(job *schema.Job) string { return job.Metadata.Name + "-" + componentSSH }

// sshConfigName has the hash of the Job whose hosts the ConfigMap lists, if any: a new version takes no hosts from one
// that runs.
func sshConfigName(job *schema.Job, jobName string) string {
	return sshName(job) + strings.TrimPrefix(jobName, workerName(job))
}

// ssh is what a launcher needs to start processes in other pods: scripts, and keys unless somebody else has them.
func ssh(job *schema.Job) []runtime.Object {
	if !job.Spec.OverSSH() {
		return nil
	}
	out := []runtime.Object{sshConfig(job)}
	if makesKeys(job) {
		out = append(out, keys(job)...)
	}
	return out
}

// rendersKeys says whether an object is one of these, or of those that make certificates.
func rendersKeys(job *schema.Job, kind, name string) bool {
	switch kind {
	case "ConfigMap":
		return job.Spec.OverSSH() && isHashed(job, name, sshName(job))
	case "Secret":
		return makesKeys(job) && name == madeSecret(job)
	}
	return makesKeys(job) && name == keygenName(job)
}

// sshConfig has no key: a Secret's content is nothing that a reconciler may know.
func sshConfig(job *schema.Job) *corev1.ConfigMap {
	s := &job.Spec.Security
	data := map[string]string{
		"ssh.sh":      sshScript,
		"worker.sh":   workerScript,
		"launcher.sh": launcherScript,
		"discover.sh": discoverScript,
		"passwd":      passwd(s),
	}
	if job.Spec.Target == schema.TargetJob {
		data["hostfile"] = hostfile(job)
	}
	return &corev1.ConfigMap{ObjectMeta: meta(job, sshConfigName(job, sshJobName(job)), componentSSH), Data: data}
}

// passwd has the pods' user with a home where its keys lie: root too, beside the one who makes the keys then.
func passwd(s *schema.Security) string {
	user, home := *s.RunAsUser.Number, "/root"
	if user == 0 {
		user, home = nobody, homeDir
	}
	return fmt.Sprintf("root:x:0:0:root:%s:/bin/sh\n%s:x:%d:%d::%s:/bin/sh\n", home, sshUser, user, groupOf(s),
		homeDir) + "sshd:x:74:74::/:/bin/false\n" // root's sshd becomes it; before 7.6 all look for it
}

// groupOf is the group of the user: one of the image's own, which ssh does not ask for, is none of the others'.
func groupOf(s *schema.Security) int64 {
	if s.RunAsGroup.Number == nil {
		return nobody
	}
	return *s.RunAsGroup.Number
}

// hostfile is a line a host, as horovodrun and mpirun read it. Of an elastic job it has all that may ever be: those
// that are there are found by asking.
func hostfile(job *schema.Job) string {
	var b strings.Builder
	line := "%s slots=%d\n"
	if s := &job.Spec; s.Framework == schema.FrameworkMPI && s.MPI.Implementation != schema.MPIOpen {
		line = "%s:%d\n" // hydra's
	}
	for _, host := range sshHosts(job, sshJobName(job)) {
		fmt.Fprintf(&b, line, host, job.Spec.Slots())
	}
	return b.String()
}

// hostfilePath is where the pods of the launcher find it.
func hostfilePath(job *schema.Job) string {
	if job.Spec.Target == schema.TargetMPIJob {
		return "/etc/mpi/hostfile" // the operator's, from its ConfigMap <job>-config
	}
	return sshDir + "/hostfile"
}

func sshEnv(job *schema.Job) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "TEGEN_SSH_DIR", Value: sshDir},
		{Name: "TEGEN_SSH_KEYS", Value: keysDir},
		{Name: "TEGEN_SSH_HOME", Value: homeDir},
		{Name: "TEGEN_SSH_PORT", Value: strconv.Itoa(int(job.Spec.SSH.Port))},
	}
}

// launchEnv is what the launcher waits for.
func launchEnv(job *schema.Job) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "TEGEN_HOSTFILE", Value: hostfilePath(job)},
		{Name: "TEGEN_QUORUM", Value: strconv.Itoa(int(job.Spec.Workers.Min))},
		{Name: "TEGEN_SLOTS", Value: strconv.FormatInt(job.Spec.Slots(), 10)},
		{Name: "TEGEN_START_SECONDS", Value: strconv.FormatInt(seconds(job.Spec.StartTimeout()), 10)},
	}
}

// sshPort is where sshd listens.
func sshPort(job *schema.Job) corev1.ContainerPort { return listenPort(job, "ssh", job.Spec.SSH.Port) }

// listenPort is a port that all workers have. On their nodes' network it is the node's, too: the API server would set
// it, and it keeps two workers off one node.
func listenPort(job *schema.Job, name string, number int32) corev1.ContainerPort {
	p := corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
	if job.Spec.Network.Host {
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
func sshVolume(job *schema.Job, jobName string) corev1.Volume {
	return corev1.Volume{Name: "ssh", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: sshConfigName(job, jobName)},
		DefaultMode:          ptr[int32](0o555), // horovodrun runs one of the scripts
	}}}
}

// passwdMount gives the user a line, whatever the image has: ssh, sshd and ssh-keygen serve nobody without.
var passwdMount = corev1.VolumeMount{Name: "ssh", MountPath: "/etc/passwd", SubPath: "passwd", ReadOnly: true}

// withSSH gives a pod of the Job of that name the files of ssh. The keys are mounted by name, so that a pod waits until
// they have been made.
func withSSH(job *schema.Job, jobName string, t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.Volumes = append(t.Spec.Volumes, sshVolume(job, jobName), scratch("ssh-home", resource.MustParse("16Mi")))
	c := &t.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "ssh", MountPath: sshDir, ReadOnly: true},
		passwdMount,
		corev1.VolumeMount{Name: "ssh-home", MountPath: homeDir})
	if job.Spec.Target == schema.TargetMPIJob { // whose operator mounts its own keys at sshAuthMountPath
		return t
	}
	keys := secretVolume("ssh-keys", keySecret(job))
	keys.Secret.Items = []corev1.KeyToPath{
		{Key: privateKey, Path: "id_rsa"}, // the MPI operator's names, whatever the kind of key
		{Key: publicKey, Path: "authorized_keys"},
	}
	t.Spec.Volumes = append(t.Spec.Volumes, keys)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "ssh-keys", MountPath: keysDir, ReadOnly: true})
	return t
}
