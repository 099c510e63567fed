package generators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// claims are the template of the claims by which workers get their accelerators. Its name changes with what is claimed,
// since no API server changes a template.
func claims(job *schema.Job) []runtime.Object {
	if !claimsAccelerators(job) {
		return nil
	}
	return []runtime.Object{apis.New(apis.ClaimTemplateKind(job.Spec.ClaimsVersion()),
		meta(job, acceleratorsTemplate(job), componentWorker), claimTemplate(job))}
}

func claimsAccelerators(job *schema.Job) bool {
	return job.Spec.Resources.DeviceClass != "" && job.Spec.Resources.GPU > 0
}

func acceleratorsTemplate(job *schema.Job) string {
	return job.Metadata.Name + "-" + schema.ClaimOfAccelerators + "-" + contentHash(claimTemplate(job))
}

func claimTemplate(job *schema.Job) (t apis.ClaimTemplate) {
	r := &job.Spec.Resources
	devices := &apis.Devices{DeviceClassName: r.DeviceClass, AllocationMode: "ExactCount", Count: r.GPU}
	for _, text := range r.DeviceSelectors {
		devices.Selectors = append(devices.Selectors, apis.DeviceSelector{CEL: apis.CELSelector{Expression: text}})
	}
	request := apis.DeviceRequest{Name: schema.ClaimOfAccelerators, Exactly: devices}
	if job.Spec.ClaimsVersion() == "v1beta1" {
		request.Exactly, request.Devices = nil, devices
	}
	t.Spec.Devices.Requests = []apis.DeviceRequest{request}
	return t
}

// claim gives a worker its claims, and the program's container what they bring.
func claim(job *schema.Job, pod *corev1.PodSpec) {
	add := func(name, template string) {
		pod.ResourceClaims = append(pod.ResourceClaims,
			corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &template})
		r := &pod.Containers[0].Resources
		r.Claims = append(r.Claims, corev1.ResourceClaim{Name: name})
	}
	if claimsAccelerators(job) {
		add(schema.ClaimOfAccelerators, acceleratorsTemplate(job))
	}
	for _, name := range job.Spec.Resources.Claims {
		add(name, name)
	}
}
