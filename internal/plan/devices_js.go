package plan

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"
)

// A page has no inventory, and so no devices: what would ask for them does not bring kube-scheduler's allocator along,
// and CEL with it, which are megabytes.
type (
	deviceID struct{}
	devices  struct{}
	claimed  struct {
		own   []*resourcev1.ResourceClaim
		notes []string
	}
)

func newDevices() *devices                           { return &devices{} }
func (ds *devices) known() bool                      { return false }
func (ds *devices) add(runtime.Object) (bool, error) { return false, nil }
func (ds *devices) take([]deviceID)                  {}
func (ds *devices) release([]deviceID)               {}
func (c claimed) refuses(*corev1.Node) string        { return "" }

func (ds *devices) allocate(*corev1.Node, []*resourcev1.ResourceClaim) ([]deviceID, bool, error) {
	return nil, false, nil
}

func (ds *devices) room(*corev1.Node, []*resourcev1.ResourceClaim, int64) (int64, []string) {
	return 0, nil
}

func (ds *devices) claimsOf(*corev1.Pod, map[string]*resourcev1.ResourceClaimSpec) claimed {
	return claimed{}
}

func addTemplate(map[string]*resourcev1.ResourceClaimSpec, runtime.Object, kind.GroupVersionKind) error {
	return nil
}
