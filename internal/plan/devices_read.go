package plan

import (
	"encoding/json"
	"fmt"
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

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
		o, err := decode[resourcev1.ResourceSlice](obj, gvk)
		if err != nil {
			return true, err
		}
		ds.addSlice(o)
	case "DeviceClass":
		o, err := decode[resourcev1.DeviceClass](obj, gvk)
		if err != nil {
			return true, err
		}
		ds.classes[o.Name] = o
	case "ResourceClaim":
		o, err := decode[resourcev1.ResourceClaim](obj, gvk)
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
	o, err := decode[resourcev1.ResourceClaimTemplate](obj, gvk)
	if err != nil {
		return err
	}
	for i := range o.Spec.Spec.Devices.Requests {
		if r := o.Spec.Spec.Devices.Requests[i].Exactly; r != nil {
			setDefaults(r)
		}
	}
	to[o.Namespace+"/"+o.Name] = &o.Spec.Spec
	return nil
}

// decode makes the type of v1 of an object of whatever version.
func decode[V1 any](obj runtime.Object, gvk kind.GroupVersionKind) (*V1, error) {
	out := new(V1)
	text, err := json.Marshal(obj)
	if err == nil {
		switch gvk.Version {
		case "v1", "v1beta2": // which differ in nothing
			err = json.Unmarshal(text, out)
		case "v1beta1":
			if text, err = fromBeta1(text); err == nil {
				err = json.Unmarshal(text, out)
			}
		default:
			err = fmt.Errorf("the version is not known: have it as %s", resourcev1.SchemeGroupVersion)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", gvk.Kind, gvk.GroupVersion(), err)
	}
	return out, nil
}

// fromBeta1 moves the fields that v1beta1 has elsewhere: those of a device are below basic there, and those of a
// request beside its name.
func fromBeta1(text []byte) ([]byte, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	for _, device := range objectsAt(object, "spec", "devices") {
		basic, _ := device["basic"].(map[string]any)
		delete(device, "basic")
		maps.Copy(device, basic)
	}
	for _, at := range [][]string{{"spec", "devices", "requests"}, {"spec", "spec", "devices", "requests"}} {
		for _, request := range objectsAt(object, at...) {
			if request["deviceClassName"] != nil {
				request["exactly"] = maps.Clone(request)
			}
		}
	}
	return json.Marshal(object)
}

// objectsAt are the objects of a list in an object.
func objectsAt(object map[string]any, path ...string) (all []map[string]any) {
	var value any = object
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	list, _ := value.([]any)
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
