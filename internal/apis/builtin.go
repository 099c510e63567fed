package apis

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// builtIn lists Kubernetes' own kinds of workloads.
var builtIn = []builtInKind{
	builtInOf(podOf, func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }),
	builtInOf(jobOf, func(j *batchv1.Job) bool { return isTrue(j.Spec.Suspend) }),
	builtInOf(cronJobOf, nil),
	builtInOf(statefulSetOf, nil),
	builtInOf(deploymentOf, nil),
	builtInOf(replicaSetOf, nil),
	builtInOf(daemonSetOf, nil),
}

func podOf(p *corev1.Pod) PodSet {
	s := templateSet("", &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, p.Name)
	s.Replicas = 1
	return s
}

func jobOf(j *batchv1.Job) PodSet {
	s := jobSpecSet("spec.template", &j.Spec, j.Name)
	if isTrue(j.Spec.ManualSelector) {
		s.Selector = j.Spec.Selector
	}
	return s
}

// cronJobOf has pods of Jobs whose names are unknown beforehand.
func cronJobOf(c *batchv1.CronJob) PodSet {
	s := jobSpecSet("spec.jobTemplate.spec.template", &c.Spec.JobTemplate.Spec, "")
	s.Uncounted = true
	return s
}

// jobSpecSet are the pods of a Job. Those of an Indexed one have numbers.
func jobSpecSet(path string, j *batchv1.JobSpec, name string) PodSet {
	s := templateSet(path, &j.Template, name)
	s.Replicas, s.Random, s.ByJobs, s.Labels = orOne(j.Parallelism), 1, true, jobLabels(name)
	if j.Completions != nil {
		s.Replicas, s.Completions = min(s.Replicas, *j.Completions), *j.Completions
	}
	if mode := j.CompletionMode; mode != nil && *mode == batchv1.IndexedCompletion {
		s.Numbered, s.Labels = true, append(s.Labels, indexLabel)
	}
	return s
}

// statefulSetOf has pods whose subdomain the controller overwrites.
func statefulSetOf(o *appsv1.StatefulSet) PodSet {
	s := templateSet("spec.template", &o.Spec.Template, o.Name)
	s.Replicas, s.Numbered, s.Subdomain = orOne(o.Spec.Replicas), true, o.Spec.ServiceName
	if o.Spec.Ordinals != nil {
		s.First = o.Spec.Ordinals.Start
	}
	s.Selector, s.Claims = o.Spec.Selector, o.Spec.VolumeClaimTemplates
	s.Labels = []Label{
		{Key: appsv1.StatefulSetPodNameLabel, Value: o.Name + "-", Numbered: true},
		{Key: appsv1.PodIndexLabel, Numbered: true},
		{Key: appsv1.ControllerRevisionHashLabelKey},
	}
	return s
}

// deploymentOf has pods of a ReplicaSet, whose name ends in a hash.
func deploymentOf(o *appsv1.Deployment) PodSet {
	s := templateSet("spec.template", &o.Spec.Template, o.Name)
	s.Replicas, s.Random, s.Selector = orOne(o.Spec.Replicas), 2, o.Spec.Selector
	s.Labels = []Label{{Key: appsv1.DefaultDeploymentUniqueLabelKey}}
	return s
}

func replicaSetOf(o *appsv1.ReplicaSet) PodSet {
	s := templateSet("spec.template", &o.Spec.Template, o.Name)
	s.Replicas, s.Random, s.Selector = orOne(o.Spec.Replicas), 1, o.Spec.Selector
	return s
}

// daemonSetOf has a pod on each node.
func daemonSetOf(o *appsv1.DaemonSet) PodSet {
	s := templateSet("spec.template", &o.Spec.Template, o.Name)
	s.Random, s.Uncounted, s.Selector = 1, true, o.Spec.Selector
	s.Labels = []Label{{Key: appsv1.ControllerRevisionHashLabelKey}}
	return s
}

// templateSet has no number of pods yet.
func templateSet(path string, t *corev1.PodTemplateSpec, name string) PodSet {
	return PodSet{Path: path, Template: t, Name: name, Host: t.Spec.Hostname, Subdomain: t.Spec.Subdomain}
}

func isTrue(b *bool) bool { return b != nil && *b }

// orOne is a number of replicas where leaving it out means one.
func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
