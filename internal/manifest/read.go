package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// Read parses a stream of YAML documents as kubectl does. Kinds of this
// package's API groups come back as Go types without TypeMeta, all others as
// *unstructured.Unstructured; a v1 List gives its items; empty documents give
// nothing. A field that a Go type does not have is an error, since reading on
// would lose it. name stands for the stream in errors.
func Read(name string, data []byte) ([]runtime.Object, error) {
	return read(name, data, false)
}

// ReadPrinted is Read for what a cluster printed: it may be newer than the Go
// types, so fields that these do not have are left out.
func ReadPrinted(name string, data []byte) ([]runtime.Object, error) {
	return read(name, data, true)
}

func read(name string, data []byte, lenient bool) ([]runtime.Object, error) {
	var objs []runtime.Object
	for _, doc := range documents(name, data, lenient) {
		text, err := doc.json(doc.StrictJSON)
		if err != nil {
			return nil, err
		}
		if string(text) == "null" {
			continue
		}
		if text[0] != '{' {
			return nil, doc.errorAt(nil, errors.New("reading a document: want a mapping with apiVersion and kind"))
		}
		if objs, err = doc.decode(objs, nil, text); err != nil {
			return nil, err
		}
	}
	return objs, nil
}

// decode appends the object that the JSON text at a path of the document describes,
// or those of a List.
func (d document) decode(objs []runtime.Object, at yamldoc.Path, text []byte) ([]runtime.Object, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &head); err != nil {
		return nil, d.decodeError(at, "a document", text, err)
	}
	if head.APIVersion == "" || head.Kind == "" {
		return nil, d.errorAt(at, errors.New("reading a document: apiVersion or kind is missing"+misspelt(text)))
	}
	h := dochead.Head{APIVersion: head.APIVersion, Kind: head.Kind}
	if key, problem := h.Problem(); problem != "" && !d.lenient {
		return nil, d.errorAt(at.Add(key), fmt.Errorf("reading a document: %s: %s", key, problem))
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return nil, d.errorAt(at.Add("apiVersion"), fmt.Errorf("reading %s: %w", head.Kind, err))
	}
	if isList(head.APIVersion, head.Kind, text) {
		return d.decodeList(objs, at, head.APIVersion, head.Kind, text)
	}
	obj, err := newTyped(gv.WithKind(head.Kind))
	if err != nil {
		return nil, err
	}
	if obj == nil {
		u := &unstructured.Unstructured{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &u.Object); err != nil {
			return nil, d.decodeError(at, head.Kind, text, err)
		}
		return append(objs, u), nil
	}
	if field, err := quantity.CheckJSON(reflect.TypeOf(obj), text); err != nil {
		return nil, d.errorAt(at.Add(field...), fmt.Errorf("reading %s: %s: %w", d.title(head.Kind, text), field, err))
	}
	if d.lenient {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, obj)
	} else {
		var strict []error
		if strict, err = kjson.UnmarshalStrict(text, obj); err == nil && len(strict) > 0 {
			err = strict[0]
		}
	}
	if err != nil && !namesField(text, err) {
		decode := func(text []byte) error {
			_, err := kjson.UnmarshalStrict(text, obj)
			return err
		}
		if field := culprit(text, err, decode); field != nil {
			var wrongType *json.UnmarshalTypeError
			if errors.As(err, &wrongType) {
				err = fmt.Errorf("got %s", yamldoc.GotWord(wrongType.Value))
			}
			err = fmt.Errorf("reading %s: %s: %w", d.title(head.Kind, text), field, err)
			return nil, d.errorAt(at.Add(field...), err)
		}
	}
	if err != nil {
		return nil, d.decodeError(at, d.title(head.Kind, text), text, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return append(objs, obj), nil
}

// misspelt ends the message about an object without apiVersion or kind with the key that was most likely meant.
func misspelt(text []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return ""
	}
	h := dochead.Head{Keys: slices.Sorted(maps.Keys(fields))}
	return h.Hint("apiVersion") + h.Hint("kind")
}

// title is an object's kind, and its name where a file of many objects may have no lines to speak of.
func (d document) title(kind string, text []byte) string {
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if !d.named || json.Unmarshal(text, &object) != nil || object.Metadata.Name == "" {
		return kind
	}
	name := object.Metadata.Name
	if object.Metadata.Namespace != "" {
		name = object.Metadata.Namespace + "/" + name
	}
	return kind + " " + name
}

// isList reports whether a document is a list of objects: a List, or one of a kind such as PodList or ResourceList.
func isList(apiVersion, kind string, text []byte) bool {
	if apiVersion == "v1" && kind == "List" {
		return true
	}
	if !strings.HasSuffix(kind, "List") {
		return false
	}
	var list struct {
		Items *[]json.RawMessage `json:"items"`
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, &list) == nil && list.Items != nil
}

// decodeList decodes the items of a list. The API server prints a list of one kind without the kind of each item.
func (d document) decodeList(objs []runtime.Object, at yamldoc.Path, apiVersion, kind string, text []byte,
) ([]runtime.Object, error) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
		return nil, d.decodeError(at, kind, text, err)
	}
	for i, item := range list.Items {
		item, err := withKind(item, apiVersion, strings.TrimSuffix(kind, "List"))
		if err != nil {
			return nil, d.decodeError(at.Add("items").Index(i), "a document", list.Items[i], err)
		}
		if objs, err = d.decode(objs, at.Add("items").Index(i), item); err != nil {
			return nil, err
		}
	}
	return objs, nil
}

// withKind is an item of a list of one kind with that kind, unless it has one. The kind is empty for a List.
func withKind(item []byte, apiVersion, kind string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if kind == "" || kjson.UnmarshalCaseSensitivePreserveInts(item, &fields) != nil || fields == nil ||
		fields["kind"] != nil || fields["apiVersion"] != nil {
		return item, nil // decode reports what is no mapping
	}
	for key, value := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[key] = text
	}
	return json.Marshal(fields)
}

// newTyped gives nil for kinds that the scheme lacks, and for those that it
// has in every group, like ListOptions, which are no objects to deploy.
func newTyped(gvk schema.GroupVersionKind) (runtime.Object, error) {
	s, err := readScheme()
	if err != nil {
		return nil, err
	}
	if !s.Recognizes(gvk) {
		return nil, nil
	}
	obj, err := s.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", gvk.Kind, err)
	}
	if _, ok := typedGVK(obj); !ok {
		return nil, nil
	}
	return obj, nil
}
