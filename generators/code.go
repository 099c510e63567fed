package generators

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// Where git-sync works: a root in which it keeps the repository and each commit, and a link to the latest.
const (
	codeDir    = "/tegen/code"
	codeRoot   = "git"
	codeLink   = "tree"
	codeKeyDir = "/etc/git-secret"
)

// codeVolumes are the code beside the image, and the key by which it is fetched; the mount is the program's.
func codeVolumes(j *job.Job) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	c := j.Spec.Code
	if c == nil {
		return nil, nil
	}
	mount := corev1.VolumeMount{Name: "code", MountPath: c.MountPath, ReadOnly: true}
	if c.Image != "" {
		source := &corev1.ImageVolumeSource{
			Reference: c.Image, PullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		}
		return []corev1.Volume{{Name: "code", VolumeSource: corev1.VolumeSource{Image: source}}},
			[]corev1.VolumeMount{mount}
	}
	// The kubelet follows the link, which leads to a directory of the same volume, before the container starts.
	mount.SubPath = codeRoot + "/" + codeLink
	volumes = []corev1.Volume{scratchOf("code", c.Git.Size.OrNil())}
	if c.Git.Secret != "" {
		volumes = append(volumes, codeKey(j))
	}
	return volumes, []corev1.VolumeMount{mount}
}

// codeKey is mounted by git-sync alone. Without a group of the pod's own, only a file for everybody reaches its user.
func codeKey(j *job.Job) corev1.Volume {
	v := secretVolume("code-key", j.Spec.Code.Git.Secret)
	if j.Spec.Security.FSGroup.Number == nil {
		v.Secret.DefaultMode = ptr[int32](0o444)
	}
	return v
}

// gitUser is the user of git-sync's image: ssh asks passwd for who runs it, and takes a key that others may read only
// from another owner, which root is of a Secret's files.
const gitUser = 65533

// fetchCode is git-sync, once and with one commit, nil where nothing is fetched. What it is told, it reads from its
// environment, so that no word of the author's reaches a shell; a password it reads from a file.
func fetchCode(j *job.Job) *corev1.Container {
	if j.Spec.Code == nil || j.Spec.Code.Git == nil {
		return nil
	}
	g := j.Spec.Code.Git
	env := []corev1.EnvVar{
		{Name: "GITSYNC_REPO", Value: literal(g.Repository)},
		{Name: "GITSYNC_ROOT", Value: codeDir + "/" + codeRoot},
		{Name: "GITSYNC_LINK", Value: codeLink},
		{Name: "GITSYNC_ONE_TIME", Value: "true"},
		{Name: "GITSYNC_MAX_FAILURES", Value: "5"}, // 10 s apart: what is over then fails no pod
		{Name: "HOME", Value: codeDir},
		{Name: "TMPDIR", Value: codeDir},
	}
	if g.Ref != "" {
		env = append(env, corev1.EnvVar{Name: "GITSYNC_REF", Value: g.Ref})
	}
	mounts := []corev1.VolumeMount{{Name: "code", MountPath: codeDir}}
	if g.Secret != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: "code-key", MountPath: codeKeyDir, ReadOnly: true})
	}
	switch {
	case g.Secret == "":
	case g.SSH():
		env = append(env,
			corev1.EnvVar{Name: "GITSYNC_SSH_KEY_FILE", Value: codeKeyDir + "/" + corev1.SSHAuthPrivateKey},
			corev1.EnvVar{Name: "GITSYNC_SSH_KNOWN_HOSTS_FILE", Value: codeKeyDir + "/known_hosts"})
	default:
		env = append(env,
			corev1.EnvVar{Name: "GITSYNC_USERNAME", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: g.Secret}, Key: corev1.BasicAuthUsernameKey,
				},
			}},
			corev1.EnvVar{Name: "GITSYNC_PASSWORD_FILE", Value: codeKeyDir + "/" + corev1.BasicAuthPasswordKey})
	}
	rights := containerSecurity(true)
	rights.RunAsNonRoot, rights.RunAsUser, rights.RunAsGroup = ptr(true), ptr[int64](gitUser), ptr[int64](gitUser)
	return &corev1.Container{
		Name:            "fetch-code",
		Image:           j.Spec.Images.Git,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		Env:             env,
		Resources:       small(j),
		SecurityContext: rights,
		VolumeMounts:    mounts,
	}
}
