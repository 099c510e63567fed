//go:build !js

package plan

import (
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/api/v1beta1"
	"k8s.io/dynamic-resource-allocation/api/v1beta2"

	"github.com/tegen-dev/tegen/internal/manifest"
)

// add enters an object of resource.k8s.io, of any version since Kubernetes 1.32, and says whether it is one that
// counts.
func (ds *devices) add(obj runtime.Object) (bool, error) {
	gvk, err := manifest.GVK(obj)
	if err != nil || gvk.Group != resourcev1.GroupName {
		return false, nil
	}
	switch gvk.Kind {
	case "ResourceSlice":
		o, err := decode(obj, gvk, v1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice,
			v1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice)
		if err != nil {
			return true, err
		}
		ds.addSlice(o)
	case "DeviceClass":
		o, err := decode(obj, gvk, v1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass,
			v1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass)
		if err != nil {
			return true, err
		}
		ds.classes[o.Name] = o
	case "ResourceClaim":
		o, err := decode(obj, gvk, v1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim,
			v1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim)
		if err != nil {
			return true, err
		}
		ds.addClaim(o)
	case "ResourceClaimTemplate":
		return true, addTemplate(ds.templates, obj, gvk)
	default:
		return false, nil
	}
	return true, nil
}

// addTemplate enters the claims that a template makes, with the API server's defaults.
func addTemplate(to map[string]*resourcev1.ResourceClaimSpec, obj runtime.Object, gvk kind.GroupVersionKind) error {
	o, err := decode(obj, gvk, v1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate,
		v1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	if err != nil {
		return err
	}
	for i := range o.Spec.Spec.Devices.Requests {
		r := o.Spec.Spec.Devices.Requests[i].Exactly
		if r == nil {
			continue
		}
		if r.AllocationMode == "" {
			r.AllocationMode = resourcev1.DeviceAllocationModeExactCount
		}
		if r.AllocationMode == resourcev1.DeviceAllocationModeExactCount && r.Count == 0 {
			r.Count = 1
		}
	}
	to[o.Namespace+"/"+o.Name] = &o.Spec.Spec
	return nil
}

// decode makes the type of v1 of an object of whatever version.
func decode[V1, Beta1, Beta2 any](
	obj runtime.Object, gvk kind.GroupVersionKind, beta1 converter[Beta1, V1], beta2 converter[Beta2, V1],
) (*V1, error) {
	out := new(V1)
	text, err := json.Marshal(obj)
	if err == nil {
		switch gvk.Version {
		case resourcev1.SchemeGroupVersion.Version:
			err = json.Unmarshal(text, out)
		case resourcev1beta2.SchemeGroupVersion.Version:
			err = converted(text, out, beta2)
		case resourcev1beta1.SchemeGroupVersion.Version:
			err = converted(text, out, beta1)
		default:
			err = fmt.Errorf("the version is not known: have it as %s", resourcev1.SchemeGroupVersion)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", gvk.Kind, gvk.GroupVersion(), err)
	}
	return out, nil
}

// converter is a conversion as Kubernetes generates it.
type converter[Old, New any] func(*Old, *New, conversion.Scope) error

func converted[Old, New any](text []byte, out *New, convert converter[Old, New]) error {
	old := new(Old)
	if err := json.Unmarshal(text, old); err != nil {
		return err
	}
	return convert(old, out, nil)
}
