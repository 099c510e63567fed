package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// claims are the template of the claims by which workers get their accelerators. Its name changes with what is claimed,
// since no API server changes a template.
func claims(j *job.Job) []runtime.Object {
	if !claimsAccelerators(j) {
		return nil
	}
	return []runtime.Object{apis.New(apis.ClaimTemplateKind(j.Spec.ClaimsVersion()),
		meta(j, acceleratorsTemplate(j), componentWorker), claimTemplate(j))}
}

func claimsAccelerators(j *job.Job) bool {
	return j.Spec.Resources.DeviceClass != "" && j.Spec.Resources.GPU > 0
}

func acceleratorsTemplate(j *job.Job) string {
	return j.Metadata.Name + "-" + job.ClaimOfAccelerators + "-" + contentHash(claimTemplate(j))
}

func claimTemplate(j *job.Job) (t apis.ClaimTemplate) {
	r := &j.Spec.Resources
	devices := &apis.Devices{DeviceClassName: r.DeviceClass, AllocationMode: "ExactCount", Count: r.GPU}
	for _, text := range r.DeviceSelectors {
		devices.Selectors = append(devices.Selectors, apis.DeviceSelector{CEL: apis.CELSelector{Expression: text}})
	}
	request := apis.DeviceRequest{Name: job.ClaimOfAccelerators, Exactly: devices}
	if j.Spec.ClaimsVersion() == "v1beta1" {
		request.Exactly, request.Devices = nil, devices
	}
	t.Spec.Devices.Requests = []apis.DeviceRequest{request}
	return t
}

// claim gives a worker its claims, and the program's container what they bring.
func claim(j *job.Job, pod *corev1.PodSpec) {
	add := func(name, template string) {
		pod.ResourceClaims = append(pod.ResourceClaims,
			corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &template})
		r := &pod.Containers[0].Resources
		r.Claims = append(r.Claims, corev1.ResourceClaim{Name: name})
	}
	if claimsAccelerators(j) {
		add(job.ClaimOfAccelerators, acceleratorsTemplate(j))
	}
	for _, name := range j.Spec.Resources.Claims {
		add(name, name)
	}
}
