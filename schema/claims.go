package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// ClaimOfAccelerators is what pods call the claim of the devices of resources.deviceClass. refusals.cue reserves it.
const ClaimOfAccelerators = "accelerators"

// unclaimed is a target whose controller or definition loses the claims of pods.
func unclaimed(reason string) lacks {
	return lacks{"resources.deviceClass": reason, "resources.claims": reason}
}

// minor is the number of a minor version, 0 where none is said.
func (s *Spec) minor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(s.KubernetesVersion, "1."))
	if err != nil {
		return 0
	}
	return minor
}

// ClaimsVersion is the newest version of resource.k8s.io that the cluster's release serves (kubernetes/api,
// resource/v1beta1, v1beta2 and v1: lifecycle-gen:introduced).
func (s *Spec) ClaimsVersion() string {
	switch minor := s.minor(); {
	case minor == 0 || minor >= 34:
		return "v1"
	case minor == 33:
		return "v1beta2"
	}
	return "v1beta1"
}

// deviceClaims refuses claims that no API server takes, and accelerators that would be asked for in two ways.
func (r *validation) deviceClaims() {
	const at = "spec.resources.deviceClass"
	res := &r.Spec.Resources
	for i, text := range res.DeviceSelectors {
		if len(text) > 10<<10 { // resource.k8s.io/v1, CELSelectorExpressionMaxLength
			r.fail(fmt.Sprintf("spec.resources.deviceSelectors[%d]", i), "range", "%d bytes: an API server takes "+
				"10240 at most", len(text))
		}
	}
	if res.DeviceClass == "" {
		if len(res.DeviceSelectors) > 0 {
			r.fail("spec.resources.deviceSelectors", "requires", "selects devices of spec.resources.deviceClass, "+
				"which is missing")
		}
		return
	}
	resource := r.Root.Below("spec", "resources", "gpuResource")
	switch {
	case res.GPU == 0 && r.asked.gpu == 0 && !r.Root.Below("spec", "resources", "deviceClass").Merged:
		r.fail(at, "requires", "write how many devices a worker claims, in spec.resources.gpu")
	case res.GPU > 32: // resource.k8s.io/v1, AllocationResultsMaxSize
		r.fail("spec.resources.gpu", "range", "a claim has at most 32 devices, and not %d", res.GPU)
	case r.IsSet("spec.resources.gpuResource") && resource != nil && !resource.Merged:
		r.fail("spec.resources.gpuResource", "one-of", "the accelerators are those of deviceClass %s, and not a "+
			"device plugin's: leave one of the two out", res.DeviceClass)
	}
	for i := range r.Spec.Groups {
		own := fmt.Sprintf("spec.groups[%d].resources.gpuResource", i)
		if r.Spec.Groups[i].Resources.GPU > 0 && !r.IsSet(own) {
			r.fail(own, "requires", "a group claims no devices: write the resource name of its accelerators, such as "+
				"deviceclass.resource.kubernetes.io/%s, by which Kubernetes 1.36 takes them of the same class",
				res.DeviceClass)
		}
	}
}

// claimNotes are what must be set up for a claim to be allocated, where it is not by default.
func (s *Spec) claimNotes() (notes []string) {
	if (s.Resources.DeviceClass == "" || s.Resources.GPU == 0) && len(s.Resources.Claims) == 0 {
		return nil
	}
	field := "spec.resources.deviceClass: "
	if s.Resources.DeviceClass == "" {
		field = "spec.resources.claims: "
	}
	if minor := s.minor(); minor == 32 || minor == 33 {
		notes = append(notes, field+fmt.Sprintf("the feature gate DynamicResourceAllocation and the API "+
			"resource.k8s.io/%s are off by default in %s", s.ClaimsVersion(), s.KubernetesVersion))
	}
	if s.Gang.Is(GangKueue) {
		notes = append(notes, field+"Kueue counts claims since 0.18, and admits no job with a DeviceClass that "+
			"deviceClassMappings of its configuration do not name")
	}
	return notes
}
