package generators

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/job"
)

const scriptDir = "/tegen/script"

// program is a worker's command and arguments. Launchers take their settings from variables (torchrun's start with
// PET_), so that nothing needs to be merged into an author's words.
func program(j *job.Job) (command, args []string) {
	if j.Spec.LaunchedBy() == job.BPSLaunch {
		command, args = pythonWords(j)
		return append([]string{job.BPSLaunch}, command...), args
	}
	command, args = authorWords(j)
	switch {
	case !j.Spec.Torchrun() || job.Launches(command):
	case len(command) == 0:
		command = []string{"torchrun"}
	default:
		// The command is run as it is, python or not. torch 1.13 accepts the option in this spelling only.
		command = append([]string{"torchrun", "--no_python"}, command...)
	}
	if j.Spec.Proxied() {
		command = append(proxyWords(j), command...)
	}
	return command, args
}

// authorWords are the author's command and arguments, and before these the script, where it is named by a field.
func authorWords(j *job.Job) (command, args []string) {
	command, args = j.Spec.Command, j.Spec.Args
	if s := scriptPath(j); s != "" {
		args = append([]string{s}, args...)
	}
	return command, args
}

// pythonWords are they for a launcher that runs programs: a script alone is Python's.
func pythonWords(j *job.Job) (command, args []string) {
	command, args = authorWords(j)
	if len(command) == 0 && j.Spec.Script != nil {
		command = []string{"python"}
	}
	return command, args
}

// scriptPath is the first argument that the training script is started by, "" where the author names it.
func scriptPath(j *job.Job) string {
	s := j.Spec.Script
	switch {
	case s == nil:
		return ""
	case s.Image != "":
		return s.Image
	case s.ConfigMap != nil:
		return scriptDir + "/" + s.ConfigMap.Key
	case s.Fetch == job.FetchEntrypoint:
		return literal(s.S3)
	}
	return scriptDir + "/" + literal(path.Base(s.S3))
}

// scriptVolume is where a script that is not in the image lies, nil where there is none.
func scriptVolume(j *job.Job) (*corev1.Volume, *corev1.VolumeMount) {
	s := j.Spec.Script
	mount := &corev1.VolumeMount{Name: "script", MountPath: scriptDir, ReadOnly: true}
	switch {
	case s != nil && s.ConfigMap != nil:
		return &corev1.Volume{
			Name: "script",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.ConfigMap.Name},
			}},
		}, mount
	case fetchesScript(j):
		v := scratch("script", resource.MustParse("64Mi"))
		return &v, mount
	}
	return nil, nil
}

func fetchesScript(j *job.Job) bool {
	s := j.Spec.Script
	return s != nil && s.S3 != "" && s.Fetch == job.FetchInitContainer
}

// initContainers wait for datasets and fetch what the image lacks, in this order: credentials are short-lived.
func initContainers(j *job.Job, component string) []corev1.Container {
	var out []corev1.Container
	if c := waitForDatasets(j); c != nil && !onlyLaunches(j, component) {
		out = append(out, *c)
	}
	if j.Spec.Proxied() && !isGroup(j, component) {
		out = append(out, installProxy(j))
	}
	if c := fetchCode(j); c != nil {
		out = append(out, *c)
	}
	if fetchesScript(j) {
		out = append(out, corev1.Container{
			Name:            "fetch-script",
			Image:           j.Spec.Images.AWS,
			ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
			// No shell: the URI is one word.
			Command:         []string{"aws", "s3", "cp", literal(j.Spec.Script.S3), scriptPath(j)},
			Env:             []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}},
			Resources:       small(j),
			SecurityContext: containerSecurity(true),
			VolumeMounts: []corev1.VolumeMount{
				{Name: "script", MountPath: scriptDir},
				{Name: "tmp", MountPath: "/tmp"},
			},
		})
	}
	return out
}
