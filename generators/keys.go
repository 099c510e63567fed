package generators

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// The keys of a Secret with a pair for ssh: those of type kubernetes.io/ssh-auth, and the MPI operator's.
const (
	privateKey = corev1.SSHAuthPrivateKey
	publicKey  = "ssh-publickey"
)

// makesKeys says whether a pair of keys is made in the cluster.
func makesKeys(job *schema.Job) bool {
	return job.Spec.MakesKeys()
}

// keySecret is the Secret with the keys.
func keySecret(job *schema.Job) string {
	if s := job.Spec.SSH.Secret; s != "" {
		return s
	}
	return sshName(job)
}

func keygenName(job *schema.Job) string { return job.Metadata.Name + "-" + componentKeygen }

// keys are a Secret that nobody has written down, and a Job that fills it once. It is rendered without data and without
// the type ssh-auth, which asks for data: what is applied again owns no key of it and changes none.
func keys(job *schema.Job) []runtime.Object {
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: keygenName(job), Namespace: job.Metadata.Namespace}
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: meta(job, sshName(job), componentSSH)},
		&corev1.ServiceAccount{
			ObjectMeta:                   meta(job, keygenName(job), componentKeygen),
			AutomountServiceAccountToken: ptr(false), // the one pod says so itself
		},
		&rbacv1.Role{
			ObjectMeta: meta(job, keygenName(job), componentKeygen),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{sshName(job)},
				Verbs: []string{"get", "patch"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(job, keygenName(job), componentKeygen),
			Subjects:   []rbacv1.Subject{subject},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: keygenName(job)},
		},
		keygen(job),
	}
}

func keygen(job *schema.Job) *batchv1.Job {
	worker := sshJobName(job) // whose ConfigMap it mounts, so that its hash changes with that one's
	j := hashed(job, keygenName(job), func(name string) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: versionedMeta(job, name, componentKeygen),
			Spec: batchv1.JobSpec{
				BackoffLimit:            ptr[int32](6),
				TTLSecondsAfterFinished: expiry(job),
				Template:                keygenTemplate(job, worker),
			},
		}
	})
	maps.Copy(j.Labels, queueLabels(job))
	expect(job, &j.ObjectMeta, j.Spec.Template.Spec)
	return j
}

// keygenTemplate makes the pair with the training image, which has ssh-keygen, and stores it with an image that has
// kubectl: neither needs what the other has, and no shell ever sees a name of the author's.
func keygenTemplate(job *schema.Job, worker string) corev1.PodTemplateSpec {
	pod := podSpec(job, &job.Spec.Roles.Helper)
	pod.ServiceAccountName = keygenName(job)
	pod.AutomountServiceAccountToken = ptr(true) // kubectl's
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	present := secretVolume("ssh-keys", sshName(job))
	present.Secret.Optional = ptr(true)
	home := scratch("ssh-home", resource.MustParse("1Mi"))
	home.EmptyDir.Medium = corev1.StorageMediumMemory // a private key touches no disk
	pod.Volumes = []corev1.Volume{sshVolume(job, worker), present, home, scratch("tmp", resource.MustParse("64Mi"))}
	mount := corev1.VolumeMount{Name: "ssh-home", MountPath: homeDir}
	pod.InitContainers = []corev1.Container{{
		Name:            schema.ContainerGenerate,
		Image:           job.Spec.Image,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		Command:         []string{"sh", "-c", keygenScript},
		Env: []corev1.EnvVar{
			{Name: "TEGEN_SSH_KEYS", Value: keysDir},
			{Name: "TEGEN_SSH_HOME", Value: homeDir},
			{Name: "TEGEN_SSH_COMMENT", Value: job.Metadata.Namespace + "/" + job.Metadata.Name},
		},
		Resources:       helping(job),
		SecurityContext: containerSecurity(true),
		VolumeMounts: []corev1.VolumeMount{
			mount,
			{Name: "ssh-keys", MountPath: keysDir, ReadOnly: true},
			passwdMount,
		},
	}}
	mount.ReadOnly = true
	pod.Containers = []corev1.Container{{
		Name:            schema.ContainerStore,
		Image:           job.Spec.Images.Kubectl,
		ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
		Command: []string{
			"kubectl", "patch", "secret", sshName(job), "--namespace=" + job.Metadata.Namespace,
			"--type=merge", "--patch-file=" + homeDir + "/patch.json",
		},
		Env:             []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}}, // where it keeps what the API server can do
		Resources:       helping(job),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{mount, {Name: "tmp", MountPath: "/tmp"}},
	}}
	return patched(job, schema.RoleHelper,
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels(job, componentKeygen)}, Spec: pod})
}
