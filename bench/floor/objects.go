package main

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (j *job) objects() []object {
	worker := j.Name + "-worker"
	selector := metav1.LabelSelector{MatchLabels: j.selector()}
	least := intstr.FromInt32(j.Workers.Min)
	running := j.meta(worker, "worker")
	running.Labels["app.kubernetes.io/version"] = j.version()
	return []object{
		{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: j.meta(j.Name, "identity"), Automount: new(bool),
		},
		{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: j.meta(worker, "worker"),
			Spec: corev1.ServiceSpec{
				Selector: j.selector(), ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			},
		},
		{
			TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: j.meta(worker, "worker"),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: selector,
				Ingress: []networkingv1.NetworkPolicyIngressRule{
					{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &selector}}},
				},
				Egress:      []networkingv1.NetworkPolicyEgressRule{{}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			},
		},
		{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: j.meta(worker, "worker"),
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &least, Selector: &selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
		{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: running,
			Spec: j.spec(running.Labels),
		},
	}
}

func (j *job) spec(labels map[string]string) batchv1.JobSpec {
	spec := batchv1.JobSpec{
		Parallelism: &j.Workers.Replicas, Completions: &j.Workers.Replicas, BackoffLimit: new(int32(6)),
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		}}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
				"karpenter.sh/do-not-disrupt":                    "true",
			}},
			Spec: j.pod(),
		},
		TTLSecondsAfterFinished: new(int32(604800)), CompletionMode: new(batchv1.IndexedCompletion),
		Suspend: new(bool), PodReplacementPolicy: new(batchv1.Failed),
	}
	if j.Workers.Min < j.Workers.Replicas {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{
			Rules: []batchv1.SuccessPolicyRule{{SucceededCount: &j.Workers.Min}},
		}
	}
	return spec
}

func (j *job) pod() corev1.PodSpec {
	memory := resource.MustParse("1Gi")
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi"),
	}
	scratch := func(name string, medium corev1.StorageMedium, size *resource.Quantity) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: size},
		}}
	}
	return corev1.PodSpec{
		Volumes: []corev1.Volume{scratch("dshm", corev1.StorageMediumMemory, &memory), scratch("tmp", "", nil)},
		Containers: []corev1.Container{{
			Name: "worker", Image: j.Image, Command: []string{"torchrun"}, Args: j.Args, Env: j.env(),
			Ports:     []corev1.ContainerPort{{Name: "rendezvous", ContainerPort: 29400, Protocol: "TCP"}},
			Resources: corev1.ResourceRequirements{Limits: amounts, Requests: amounts},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "dshm", MountPath: "/dev/shm"}, {Name: "tmp", MountPath: "/tmp"},
			},
			ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{
				Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				ReadOnlyRootFilesystem: new(bool), AllowPrivilegeEscalation: new(bool),
			},
		}},
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(120)),
		ServiceAccountName: j.Name, AutomountServiceAccountToken: new(bool),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: new(int64(65534)), RunAsGroup: new(int64(65534)), RunAsNonRoot: new(true),
			FSGroup: new(int64(65534)), FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Subdomain: j.Name + "-worker", EnableServiceLinks: new(bool),
	}
}
