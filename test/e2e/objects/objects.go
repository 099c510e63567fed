// Package objects reads manifests as they are printed: every document with its text.
package objects

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/names"
)

// Object is one document of a file.
type Object struct {
	*unstructured.Unstructured
	File string
	Text []byte // as it stands in the file
}

// Read splits a stream of YAML documents and leaves their texts as they are. One without a kind or a name is an error,
// and so is a stream without any.
func Read(file string, text []byte) ([]*Object, error) {
	var all []*Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		o := &Object{&unstructured.Unstructured{}, file, document}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if o.GetName() == "" || o.GetKind() == "" {
			return nil, fmt.Errorf("reading %s: an object without kind or name:\n%s", file, document)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading %s: no object in it", file)
	}
	return all, nil
}

func (o *Object) String() string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.File + ": " + o.GroupVersionKind().GroupKind().String() + " " + name
}

// IsNamespace says whether the object is one.
func (o *Object) IsNamespace() bool { return o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" }

// Expects are the names of what the object leaves to the cluster to have of a kind.
func (o *Object) Expects(kind string) []string {
	var expected []string
	for entry := range strings.SplitSeq(o.GetAnnotations()[names.Expects], ",") {
		if of, name, ok := strings.Cut(entry, "/"); ok && of == kind {
			expected = append(expected, name)
		}
	}
	return expected
}
