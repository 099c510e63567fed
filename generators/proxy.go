package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// proxyDir is where workers find tegen's proxy, which their image, the author's, does not bring.
const proxyDir = "/tegen/bin"

// proxyWords start the proxy; the command that starts torchrun comes behind. It finds the store in torch's variables.
func proxyWords(job *schema.Job) []string {
	words := []string{proxyDir + "/" + names.Rendezvous, "proxy"}
	if clientSecret(job) != "" {
		words = append(words, "--cacert="+tlsDir+"/ca.crt", "--cert="+tlsDir+"/tls.crt", "--key="+tlsDir+"/tls.key")
	}
	if user := job.Spec.Rendezvous.Conf["user"]; user != "" {
		words = append(words, "--user="+literal(user))
	}
	return append(words, "--")
}

// installProxy puts the program into the pod: its image has no shell and no cp, so the program copies itself.
func installProxy(job *schema.Job) corev1.Container {
	return corev1.Container{
		Name:            "install-launcher",
		Image:           job.Spec.Images.Rendezvous,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		// To which the image's entrypoint is the program.
		Args:            []string{"install", proxyDir + "/" + names.Rendezvous},
		Resources:       small(job),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "launcher", MountPath: proxyDir}},
	}
}

// proxyVolume is where it lies, nil where workers start without a proxy.
func proxyVolume(job *schema.Job) (*corev1.Volume, *corev1.VolumeMount) {
	if !job.Spec.Proxied() {
		return nil, nil
	}
	v := scratch("launcher", resource.MustParse("256Mi")) // the program with an etcd in it
	return &v, &corev1.VolumeMount{Name: "launcher", MountPath: proxyDir, ReadOnly: true}
}
