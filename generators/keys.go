package generators

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// The keys of a Secret with a pair for ssh: those of type kubernetes.io/ssh-auth, and the MPI operator's.
const (
	privateKey = corev1.SSHAuthPrivateKey
	publicKey  = "ssh-publickey"
)

// makesKeys says whether keys are made in the cluster.
func makesKeys(j *job.Job) bool { return j.Spec.MakesKeys() }

// keySecret is the Secret with the keys for ssh.
func keySecret(j *job.Job) string {
	if s := j.Spec.SSH.Secret; s != "" {
		return s
	}
	return sshName(j)
}

// madeSecret is the Secret with the keys that are made in the cluster: a job has them of one kind.
func madeSecret(j *job.Job) string {
	if mutualTLS(j) {
		return certificateSecret(j)
	}
	return sshName(j)
}

// keyMaker is what makes the keys of a job.
type keyMaker struct {
	component string
	container corev1.Container // its image, words and variables, and what it mounts beside keys and home
	volumes   []corev1.Volume
	prefix    string // of the names of its volumes
	patch     string // type of its patch
	restart   corev1.RestartPolicy
}

// keyMakerOf makes the pair for ssh with the training image, which has ssh-keygen.
func keyMakerOf(j *job.Job) keyMaker {
	if mutualTLS(j) {
		return certificateMaker(j)
	}
	return keyMaker{
		component: componentSSH, prefix: "ssh-", patch: "merge", restart: corev1.RestartPolicyOnFailure,
		container: corev1.Container{
			Image:   j.Spec.Image,
			Command: []string{"sh", "-c", keygenScript},
			Env: []corev1.EnvVar{
				{Name: "TEGEN_SSH_KEYS", Value: keysDir},
				{Name: "TEGEN_SSH_HOME", Value: homeDir},
				{Name: "TEGEN_SSH_COMMENT", Value: j.Metadata.Namespace + "/" + j.Metadata.Name},
			},
			VolumeMounts: []corev1.VolumeMount{passwdMount},
		},
		// Of the worker's ConfigMap, so that the Job's hash changes with that one's.
		volumes: []corev1.Volume{sshVolume(j, sshJobName(j))},
	}
}

func keygenName(j *job.Job) string { return j.Metadata.Name + "-" + componentKeygen }

// keys are a Secret that nobody has written down, and a Job that fills it once. It is rendered without data and without
// a type that asks for data: what is applied again owns no key of it and changes none.
func keys(j *job.Job) []runtime.Object {
	maker := keyMakerOf(j)
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: keygenName(j), Namespace: j.Metadata.Namespace}
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: meta(j, madeSecret(j), maker.component)},
		&corev1.ServiceAccount{
			ObjectMeta:                   meta(j, keygenName(j), componentKeygen),
			AutomountServiceAccountToken: ptr(false), // the one pod says so itself
		},
		&rbacv1.Role{
			ObjectMeta: meta(j, keygenName(j), componentKeygen),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{madeSecret(j)},
				Verbs: []string{"get", "patch"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(j, keygenName(j), componentKeygen),
			Subjects:   []rbacv1.Subject{subject},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: keygenName(j)},
		},
		keygen(j, maker),
	}
}

func keygen(tj *job.Job, maker keyMaker) *batchv1.Job {
	j := hashed(tj, keygenName(tj), func(name string) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: versionedMeta(tj, name, componentKeygen),
			Spec: batchv1.JobSpec{
				BackoffLimit:            ptr[int32](6),
				TTLSecondsAfterFinished: expiry(tj),
				Template:                keygenTemplate(tj, maker),
			},
		}
	})
	// In a queue it could wait for the quota of workers that wait for it. The store is in none, so its Job is not
	// either. The Job for ssh is: Kueue may manage jobs without a queue, and would never start it.
	if !mutualTLS(tj) {
		maps.Copy(j.Labels, queueLabels(tj))
	}
	expect(tj, &j.ObjectMeta, j.Spec.Template.Spec)
	return j
}

// keygenTemplate makes keys with one image and stores them with another one, which has kubectl: neither needs what the
// other has, and no shell ever sees a name of the author's.
func keygenTemplate(j *job.Job, maker keyMaker) corev1.PodTemplateSpec {
	pod := podSpec(j, &j.Spec.Roles.Helper)
	pod.ServiceAccountName = keygenName(j)
	pod.AutomountServiceAccountToken = ptr(true) // kubectl's
	pod.RestartPolicy = maker.restart
	present := secretVolume(maker.prefix+"keys", madeSecret(j))
	present.Secret.Optional = ptr(true)
	home := scratch(maker.prefix+"home", resource.MustParse("1Mi"))
	home.EmptyDir.Medium = corev1.StorageMediumMemory // a private key touches no disk
	pod.Volumes = append(maker.volumes, present, home, scratch("tmp", resource.MustParse("64Mi")))
	mount := corev1.VolumeMount{Name: home.Name, MountPath: homeDir}
	makes := maker.container
	makes.Name = job.ContainerGenerate
	makes.ImagePullPolicy = corev1.PullPolicy(j.Spec.ImagePullPolicy)
	makes.Resources = helping(j)
	makes.SecurityContext = containerSecurity(true)
	makes.VolumeMounts = append([]corev1.VolumeMount{
		mount, {Name: present.Name, MountPath: keysDir, ReadOnly: true},
	}, makes.VolumeMounts...)
	pod.InitContainers = []corev1.Container{makes}
	mount.ReadOnly = true
	pod.Containers = []corev1.Container{{
		Name:            job.ContainerStore,
		Image:           j.Spec.Images.Kubectl,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		Command: []string{
			"kubectl", "patch", "secret", madeSecret(j), "--namespace=" + j.Metadata.Namespace,
			"--type=" + maker.patch, "--patch-file=" + homeDir + "/patch.json",
		},
		Env:             []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}}, // where it keeps what the API server can do
		Resources:       helping(j),
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{mount, {Name: "tmp", MountPath: "/tmp"}},
	}}
	return patched(j, job.RoleHelper,
		corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels(j, componentKeygen)}, Spec: pod})
}
