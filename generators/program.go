package generators

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema"
)

const scriptDir = "/tegen/script"

// program is a worker's command and arguments. Launchers take their settings from variables (torchrun's start with
// PET_), so that nothing needs to be merged into an author's words.
func program(job *schema.Job) (command, args []string) {
	if job.Spec.LaunchedBy() == schema.BPSLaunch {
		command, args = pythonWords(job)
		return append([]string{schema.BPSLaunch}, command...), args
	}
	command, args = authorWords(job)
	switch {
	case !job.Spec.Torchrun() || schema.Launches(command):
	case len(command) == 0:
		command = []string{"torchrun"}
	default:
		// The command is run as it is, python or not. torch 1.13 accepts the option in this spelling only.
		command = append([]string{"torchrun", "--no_python"}, command...)
	}
	if job.Spec.Proxied() {
		command = append(proxyWords(job), command...)
	}
	return command, args
}

// authorWords are the author's command and arguments, and before these the script, where it is named by a field.
func authorWords(job *schema.Job) (command, args []string) {
	command, args = job.Spec.Command, job.Spec.Args
	if s := scriptPath(job); s != "" {
		args = append([]string{s}, args...)
	}
	return command, args
}

// pythonWords are they for a launcher that runs programs: a script alone is Python's.
func pythonWords(job *schema.Job) (command, args []string) {
	command, args = authorWords(job)
	if len(command) == 0 && job.Spec.Script != nil {
		command = []string{"python"}
	}
	return command, args
}

// scriptPath is the first argument that the training script is started by, "" where the author names it.
func scriptPath(job *schema.Job) string {
	s := job.Spec.Script
	switch {
	case s == nil:
		return ""
	case s.Image != "":
		return s.Image
	case s.ConfigMap != nil:
		return scriptDir + "/" + s.ConfigMap.Key
	case s.Fetch == schema.FetchEntrypoint:
		return literal(s.S3)
	}
	return scriptDir + "/" + literal(path.Base(s.S3))
}

// scriptVolume is where a script that is not in the image lies, nil where there is none.
func scriptVolume(job *schema.Job) (*corev1.Volume, *corev1.VolumeMount) {
	s := job.Spec.Script
	mount := &corev1.VolumeMount{Name: "script", MountPath: scriptDir, ReadOnly: true}
	switch {
	case s != nil && s.ConfigMap != nil:
		return &corev1.Volume{
			Name: "script",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.ConfigMap.Name},
			}},
		}, mount
	case fetchesScript(job):
		v := scratch("script", resource.MustParse("64Mi"))
		return &v, mount
	}
	return nil, nil
}

func fetchesScript(job *schema.Job) bool {
	s := job.Spec.Script
	return s != nil && s.S3 != "" && s.Fetch == schema.FetchInitContainer
}

// initContainers wait for datasets and fetch what the image lacks, in this order: credentials are short-lived.
func initContainers(job *schema.Job, component string) []corev1.Container {
	var out []corev1.Container
	if c := waitForDatasets(job); c != nil && !onlyLaunches(job, component) {
		out = append(out, *c)
	}
	if job.Spec.Proxied() && !isGroup(job, component) {
		out = append(out, installProxy(job))
	}
	if c := fetchCode(job); c != nil {
		out = append(out, *c)
	}
	if fetchesScript(job) {
		out = append(out, corev1.Container{
			Name:            "fetch-script",
			Image:           job.Spec.Images.AWS,
			ImagePullPolicy: corev1.PullPolicy(job.Spec.ImagePullPolicy),
			// No shell: the URI is one word.
			Command:         []string{"aws", "s3", "cp", literal(job.Spec.Script.S3), scriptPath(job)},
			Env:             []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}},
			Resources:       small(job),
			SecurityContext: containerSecurity(true),
			VolumeMounts: []corev1.VolumeMount{
				{Name: "script", MountPath: scriptDir},
				{Name: "tmp", MountPath: "/tmp"},
			},
		})
	}
	return out
}
