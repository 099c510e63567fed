package generators

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/schema/job"
)

// sidecars are the author's containers beside the program of a worker. As init containers that start again they are
// Kubernetes' own sidecars: a pod ends when its program has. They come last among these, so that datasets and scripts
// are there, and nothing is held for them meanwhile.
func sidecars(j *job.Job, component string, mounts []corev1.VolumeMount) (out []corev1.Container) {
	if component != componentWorker {
		return nil
	}
	for i := range j.Spec.Sidecars {
		s := &j.Spec.Sidecars[i]
		c := corev1.Container{
			Name:            s.Name,
			Image:           s.Image,
			ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
			RestartPolicy:   ptr(corev1.ContainerRestartPolicyAlways),
			Command:         s.Command,
			Args:            s.Args,
			WorkingDir:      s.WorkingDir,
			EnvFrom:         authorEnvFrom(s.EnvFrom),
			Resources:       asked(&s.Resources),
			VolumeMounts:    sidecarMounts(s.Mounts, mounts),
			SecurityContext: trainingRights(&j.Spec.Security),
		}
		for _, e := range s.Env {
			c.Env = append(c.Env, authorEnv(e))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
			c.Ports = append(c.Ports, listenPort(j, name, s.Ports[name]))
		}
		probe(&c, &job.Probes{Startup: s.Startup})
		out = append(out, c)
	}
	return out
}

// sidecarMounts are volumes of the worker, where it has them itself unless the author says otherwise.
func sidecarMounts(asked []job.Mount, worker []corev1.VolumeMount) (out []corev1.VolumeMount) {
	for _, m := range asked {
		i := slices.IndexFunc(worker, func(w corev1.VolumeMount) bool { return w.Name == m.Volume })
		mount := worker[i] // a rule refuses what is not there
		mount.MountPath = cmp.Or(m.Path, mount.MountPath)
		if m.ReadOnly != nil {
			mount.ReadOnly = *m.ReadOnly
		}
		out = append(out, mount)
	}
	return out
}

// probe gives a container the questions that its author has of it.
func probe(c *corev1.Container, probes *job.Probes) {
	if probes == nil {
		return
	}
	for _, p := range []struct {
		of   *job.Probe
		into **corev1.Probe
	}{
		{probes.Startup, &c.StartupProbe},
		{probes.Liveness, &c.LivenessProbe},
		{probes.Readiness, &c.ReadinessProbe},
	} {
		if p.of != nil {
			*p.into = probeOf(p.of)
		}
	}
}

func probeOf(p *job.Probe) *corev1.Probe {
	out := &corev1.Probe{FailureThreshold: p.Failures}
	switch {
	case p.HTTP != nil:
		out.HTTPGet = &corev1.HTTPGetAction{Path: cmp.Or(p.HTTP.Path, "/"), Port: intstr.FromInt32(p.HTTP.Port)}
	case p.TCP != 0:
		out.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(p.TCP)}
	default:
		out.Exec = &corev1.ExecAction{Command: p.Exec}
	}
	if p.Delay != nil {
		out.InitialDelaySeconds = int32(seconds(*p.Delay))
	}
	if p.Period != nil {
		out.PeriodSeconds = int32(seconds(*p.Period))
	}
	if p.Timeout != nil {
		out.TimeoutSeconds = int32(seconds(*p.Timeout))
	}
	return out
}
