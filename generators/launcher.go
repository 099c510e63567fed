package generators

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// Where workers have tegen's launcher and its proxy: their image is the author's and brings none.
const launcherDir = "/tegen/bin"

// launcherWords start the launcher; what it starts comes behind.
func launcherWords() []string { return []string{launcherDir + "/" + names.Rendezvous, "run"} }

// proxyWords start the proxy; the command that starts torchrun comes behind. It finds the store in torch's variables.
func proxyWords(job *schema.Job) []string {
	words := []string{launcherDir + "/" + names.Rendezvous, "proxy"}
	if clientSecret(job) != "" {
		words = append(words, "--cacert="+tlsDir+"/ca.crt", "--cert="+tlsDir+"/tls.crt", "--key="+tlsDir+"/tls.key")
	}
	if user := job.Spec.Rendezvous.Conf["user"]; user != "" {
		words = append(words, "--user="+literal(user))
	}
	return append(words, "--")
}

// launcherSettings are the launcher's own options, in torchrun's spelling.
func launcherSettings(job *schema.Job) [][2]string {
	grace := seconds(job.Spec.GracePeriod)
	return [][2]string{
		{"monitor_interval", "1"}, // seconds between looks at who else would join; torchrun's own differs by release
		// How long workers may take to end; then the launcher itself, before the kubelet kills it, tells the others.
		{"shutdown_timeout", strconv.FormatInt(max(grace-5, grace/2), 10)},
	}
}

// launcherEnv tells them to the launcher as torchrun's variables, and nothing to others.
func launcherEnv(job *schema.Job) (env []corev1.EnvVar) {
	if !job.Spec.TegenRun() {
		return nil
	}
	for _, s := range launcherSettings(job) {
		env = append(env, corev1.EnvVar{Name: "PET_" + strings.ToUpper(s[0]), Value: s[1]})
	}
	return env
}

// installLauncher puts the launcher into the pod: its image has no shell and no cp, so the program copies itself.
func installLauncher(job *schema.Job) corev1.Container {
	return corev1.Container{
		Name:            "install-launcher",
		Image:           job.Spec.Images.Rendezvous,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		// To which the image's entrypoint is the program.
		Args:            []string{"install", launcherDir + "/" + names.Rendezvous},
		Resources:       small(job),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "launcher", MountPath: launcherDir}},
	}
}

// launcherVolume is where it lies, nil where workers start otherwise.
func launcherVolume(job *schema.Job) (*corev1.Volume, *corev1.VolumeMount) {
	if !job.Spec.BringsTegen() {
		return nil, nil
	}
	v := scratch("launcher", resource.MustParse("256Mi")) // the program with an etcd in it
	return &v, &corev1.VolumeMount{Name: "launcher", MountPath: launcherDir, ReadOnly: true}
}
