package generators

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// proxyDir is where workers find tegen's proxy, which their image, the author's, does not bring.
const proxyDir = "/tegen/bin"

// proxiesDir is where a companion has its side of what proxies and it verify each other by.
const proxiesDir = "/tegen/proxies"

// mutualTLS says whether proxies and the rendered store verify each other by certificates that a Job makes.
func mutualTLS(j *job.Job) bool { return j.Spec.MakesCertificates() }

// certificateSecret has what 'tegen-rendezvous certificates' writes.
func certificateSecret(j *job.Job) string { return roleName(j, componentCompanion) + "-tls" }

// certificateMaker makes certificates for the name that workers dial, and those by which members of an etcd dial each
// other.
func certificateMaker(j *job.Job) keyMaker {
	component, hosts := componentCompanion, []string{companionName(j)}
	if j.Spec.Rendezvous.Store == job.StoreEtcd {
		component, hosts = componentEtcd, append([]string{etcdName(j)}, etcdHosts(j)...)
	}
	return keyMaker{
		component: component, patch: "json",
		// The patch is refused if another pod was first. The same pod would try it again, and a new one finds keys.
		restart: corev1.RestartPolicyNever,
		container: corev1.Container{
			Image: j.Spec.Images.Rendezvous,
			// To which the image's entrypoint is the program.
			Args: []string{"certificates", homeDir, "--existing=" + keysDir, "--host=" + strings.Join(hosts, ",")},
		},
	}
}

// withCertificates has a companion refuse who has no certificate. The keys are mounted by name, so that the pod waits
// until they have been made.
func withCertificates(j *job.Job, t *corev1.PodTemplateSpec) {
	const ca, cert, key = "ca.crt", "server.crt", "server.key"
	volume, c := secretVolume("proxies", certificateSecret(j)), &t.Spec.Containers[0]
	volume.Secret.Items = []corev1.KeyToPath{{Key: ca, Path: ca}, {Key: cert, Path: cert}, {Key: key, Path: key}}
	t.Spec.Volumes = append(t.Spec.Volumes, volume)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
		Name: volume.Name, MountPath: proxiesDir, ReadOnly: true,
	})
	c.Args = append(c.Args, "--tls-cert="+proxiesDir+"/"+cert, "--tls-key="+proxiesDir+"/"+key,
		"--tls-client-ca="+proxiesDir+"/"+ca)
}

// proxyWords start the proxy; the command that starts torchrun comes behind. It finds the store in torch's variables.
func proxyWords(j *job.Job) []string {
	words := []string{proxyDir + "/" + names.Rendezvous, "proxy"}
	if clientSecret(j) != "" {
		words = append(words, "--cacert="+tlsDir+"/ca.crt", "--cert="+tlsDir+"/tls.crt", "--key="+tlsDir+"/tls.key")
	}
	if user := j.Spec.Rendezvous.Conf["user"]; user != "" {
		words = append(words, "--user="+literal(user))
	}
	return append(words, "--")
}

// installProxy puts the program into the pod: its image has no shell and no cp, so the program copies itself.
func installProxy(j *job.Job) corev1.Container {
	return corev1.Container{
		Name:            "install-launcher",
		Image:           j.Spec.Images.Rendezvous,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		// To which the image's entrypoint is the program.
		Args:            []string{"install", proxyDir + "/" + names.Rendezvous},
		Resources:       small(j),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "launcher", MountPath: proxyDir}},
	}
}

// proxyVolume is where it lies, nil where workers start without a proxy.
func proxyVolume(j *job.Job) (*corev1.Volume, *corev1.VolumeMount) {
	if !j.Spec.Proxied() {
		return nil, nil
	}
	v := scratch("launcher", resource.MustParse("256Mi")) // the program with an etcd in it
	return &v, &corev1.VolumeMount{Name: "launcher", MountPath: proxyDir, ReadOnly: true}
}
