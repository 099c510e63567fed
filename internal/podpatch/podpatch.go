// Package podpatch is the escape hatch of a job: fields of the pod template that the schema does not name, as a partial
// PodTemplateSpec in JSON. Validate returns the fields that no pod template has, with paths; Apply merges what Validate
// accepted by Kubernetes' strategic rules (containers by name, volumes by name) and therefore cannot fail. A patch
// holds no null, which would delete: the schema refuses those everywhere.
package podpatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Mistake is one field that cannot be merged.
type Mistake struct {
	Path string // within the template: spec.containers[0].imagePolicy; empty where it is unknown
	Msg  string
}

// mostItems bounds lists such as volumes and ports: Kubernetes' merge takes the square of their length, 11 s for 3,200.
const mostItems = 500

var unknownField = lazy.Regexp(`^unknown field "(.*)"$`)

// Validate returns every unknown field, or the first value of a wrong type. own is what the patch calls the container
// that tegen renders, image the field that has its image, and sidecars are init containers that are rendered too.
func Validate(patch []byte, own, image string, sidecars ...string) []Mistake {
	if at, err := quantity.CheckJSON(reflect.TypeFor[corev1.PodTemplateSpec](), patch); err != nil {
		return []Mistake{{at.String(), err.Error()}}
	}
	template := &corev1.PodTemplateSpec{}
	strict, err := kjson.UnmarshalStrict(patch, template)
	if err != nil {
		return []Mistake{typeMistake(err)}
	}
	var out []Mistake
	for _, e := range strict {
		if m := unknownField().FindStringSubmatch(e.Error()); m != nil {
			out = append(out, Mistake{m[1], "no pod template has this field"})
		} else {
			out = append(out, Mistake{"", e.Error()})
		}
	}
	if len(out) > 0 {
		return out
	}
	var fields any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return []Mistake{typeMistake(err)}
	}
	if out := directives(fields, nil); len(out) > 0 {
		return out
	}
	if path, long := longList(fields, ""); long {
		return []Mistake{{path, fmt.Sprintf("must have at most %d items", mostItems)}}
	}
	if _, err := merge(rendered(own), patch); err != nil {
		return []Mistake{{"", "cannot be merged: " + err.Error()}}
	}
	return reserved(template, own, image, sidecars)
}

// rendered is what a patch is merged into: merging looks for the keys of items, such as a volume's name, only where the
// list has some.
func rendered(own string) *corev1.PodTemplateSpec {
	c := corev1.Container{
		Name: own, Env: []corev1.EnvVar{{Name: "E"}}, Ports: []corev1.ContainerPort{{ContainerPort: 1}},
		VolumeMounts: []corev1.VolumeMount{{MountPath: "/m"}}, VolumeDevices: []corev1.VolumeDevice{{DevicePath: "/d"}},
	}
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{c}, InitContainers: []corev1.Container{c}, Volumes: []corev1.Volume{{Name: "v"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}}, HostAliases: []corev1.HostAlias{{IP: "10.0.0.1"}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{TopologyKey: "t", WhenUnsatisfiable: corev1.DoNotSchedule},
		},
		ResourceClaims:  []corev1.PodResourceClaim{{Name: "r"}},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
	}}
}

// directives are the keys by which Kubernetes' merge deletes or replaces what it would merge: $patch, $retainKeys and
// others that begin with $. No field is named like that, but a mapping of strings takes any key.
func directives(value any, at yamldoc.Path) (out []Mistake) {
	switch x := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if strings.HasPrefix(key, "$") {
				out = append(out, Mistake{
					at.Add(key).String(),
					fmt.Sprintf("key %q is a directive of a patch, which a podTemplate cannot contain: remove it", key),
				})
			}
			out = append(out, directives(x[key], at.Add(key))...)
		}
	case []any:
		for i, item := range x {
			out = append(out, directives(item, at.Index(i))...)
		}
	}
	return out
}

// longList is the path of the first list that has more items than are merged; one of plain values is not merged.
func longList(value any, path string) (string, bool) {
	switch x := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if at, long := longList(x[key], strings.TrimPrefix(path+"."+key, ".")); long {
				return at, true
			}
		}
	case []any:
		if len(x) > mostItems && slices.ContainsFunc(x, isMapping) {
			return path, true
		}
		for i, item := range x {
			if at, long := longList(item, fmt.Sprintf("%s[%d]", path, i)); long {
				return at, true
			}
		}
	}
	return "", false
}

func isMapping(value any) bool {
	_, is := value.(map[string]any)
	return is
}

// reserved finds what in a patch would break what tegen renders, or escape its checks.
func reserved(t *corev1.PodTemplateSpec, own, image string, sidecars []string) (out []Mistake) {
	for path, set := range map[string]bool{
		"spec.restartPolicy":  t.Spec.RestartPolicy != "",
		"spec.subdomain":      t.Spec.Subdomain != "",
		"spec.hostname":       t.Spec.Hostname != "",
		"spec.serviceAccount": t.Spec.DeprecatedServiceAccount != "", // the old name of serviceAccountName
	} {
		if set {
			out = append(out, Mistake{path, "is set by tegen"})
		}
	}
	for list, containers := range map[string][]corev1.Container{
		"containers":     t.Spec.Containers,
		"initContainers": t.Spec.InitContainers,
	} {
		for i, c := range containers {
			at := fmt.Sprintf("spec.%s[%d]", list, i)
			ours := list == "containers" && c.Name == own
			tag := c.Image[strings.LastIndex(c.Image, "/")+1:]
			switch {
			case ours && slices.ContainsFunc(c.Env, tegens):
				e := slices.IndexFunc(c.Env, tegens)
				out = append(out, Mistake{fmt.Sprintf("%s.env[%d].name", at, e), c.Env[e].Name + " is set by tegen"})
			case ours && c.Image != "":
				out = append(out, Mistake{at + ".image", fmt.Sprintf("the %s's image stands in %s", own, image)})
			case ours:
			case list == "initContainers" && slices.Contains(sidecars, c.Name):
				if c.Image != "" {
					out = append(out, Mistake{
						at + ".image", fmt.Sprintf("the image of sidecar %q is in spec.sidecars", c.Name),
					})
				}
			case c.Image == "":
				out = append(out, Mistake{
					at + ".image",
					fmt.Sprintf("required field is missing: %q is a container of its own; tegen's is called %q here",
						c.Name, own),
				})
			case !strings.ContainsAny(tag, ":@") || strings.HasSuffix(tag, ":latest"):
				out = append(out, Mistake{
					at + ".image",
					fmt.Sprintf("must be an image with a tag other than latest, or a digest, not %q", c.Image),
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b Mistake) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// tegens reports whether the rendezvous or the launcher depends on a variable.
func tegens(e corev1.EnvVar) bool {
	return strings.HasPrefix(e.Name, "PET_") || strings.HasPrefix(e.Name, "TEGEN_")
}

func typeMistake(err error) Mistake {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return Mistake{t.Field, fmt.Sprintf("must be %s, not %s", kindWord(t.Type.Kind()), valueWord(t.Value))}
	}
	return Mistake{"", err.Error()}
}

func kindWord(k reflect.Kind) string {
	switch k {
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	}
	return "an integer"
}

// valueWord names what encoding/json found: "number 1.5" and the like.
func valueWord(value string) string {
	first, _, _ := strings.Cut(value, " ")
	switch first {
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "bool":
		return "a boolean"
	}
	return "a " + first
}

// Apply returns the template with the patch merged into it.
func Apply(template corev1.PodTemplateSpec, patch []byte) corev1.PodTemplateSpec {
	if len(patch) == 0 {
		return template
	}
	merged, err := merge(&template, patch)
	if err != nil { // Validate merged this patch already
		panic(fmt.Errorf("merging podTemplate: %w", err))
	}
	return *merged
}

func merge(template *corev1.PodTemplateSpec, patch []byte) (*corev1.PodTemplateSpec, error) {
	original, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, err
	}
	out := &corev1.PodTemplateSpec{}
	return out, json.Unmarshal(merged, out)
}
