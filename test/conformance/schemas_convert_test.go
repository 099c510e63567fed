package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteSchemas runs everywhere: it needs no tool and no network.
func TestWriteSchemas(t *testing.T) {
	dir := t.TempDir()
	n, err := writeSchemas(dir, []byte(`{"definitions": {
		"Thing": {
			"type": "object",
			"description": "A thing.",
			"required": ["spec"],
			"properties": {
				"apiVersion": {"type": "string"},
				"kind": {"type": "string"},
				"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
				"spec": {"$ref": "#/definitions/Spec", "description": "What is wanted."}
			},
			"x-kubernetes-group-version-kind": [{"group": "things.example.com", "kind": "Thing", "version": "v1"}]
		},
		"Spec": {
			"type": "object",
			"properties": {
				"port": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
				"count": {"type": "integer", "format": "int32"},
				"labels": {"type": "object", "additionalProperties": {"type": "string"}},
				"anything": {"type": "object"}
			}
		},
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
		"Unused": {"type": "object", "unheard-of": true}
	}}`), []groupVersion{{"things.example.com", "v1"}})
	if err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("wrote %d schemas, want 1", n)
	}
	got, err := os.ReadFile(filepath.Join(dir, "thing-things-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"http://json-schema.org/draft-04/schema#",` +
		`"additionalProperties":false,` +
		`"definitions":{` +
		`"Spec":{"additionalProperties":false,"properties":{` +
		`"anything":{"type":"object"},` +
		`"count":{"maximum":2147483647,"minimum":-2147483648,"type":"integer"},` +
		`"labels":{"additionalProperties":{"type":"string"},"type":"object"},` +
		`"port":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}},"type":"object"},` +
		`"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"additionalProperties":false,` +
		`"properties":{"name":{"type":"string"}},"type":"object"},` +
		`"io.k8s.apimachinery.pkg.util.intstr.IntOrString":{"type":["string","integer"]}},` +
		`"properties":{` +
		`"apiVersion":{"enum":["things.example.com/v1"]},` +
		`"kind":{"enum":["Thing"]},` +
		`"metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},` +
		`"spec":{"$ref":"#/definitions/Spec"}},` +
		`"required":["spec","apiVersion","kind"],"type":"object"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("schema differs (-want +got):\n%s", diff)
	}
}

func TestWriteSchemasRefuses(t *testing.T) {
	const head = `{"definitions": {
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
		"Thing": {
			"properties": {
				"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
				"spec": `
	const tail = `},
			"x-kubernetes-group-version-kind": [{"group": "", "kind": "Thing", "version": "v1"}]
		}}}`
	core := []groupVersion{{"", "v1"}}
	for _, tc := range []struct {
		name, spec string
		gvs        []groupVersion
		want       string
	}{
		{"a keyword it would drop", `{"multipleOf": 2}`, core, `the keyword "multipleOf"`},
		{"a format it would drop", `{"type": "string", "format": "ipv4"}`, core, "the format ipv4"},
		{"a reference to nothing", `{"$ref": "#/definitions/Absent"}`, core, "no such definition"},
		{"a reference elsewhere", `{"$ref": "other.json#/Absent"}`, core, "leaves the document"},
		{"a constraint draft 4 ignores", `{"$ref": "#/definitions/Thing", "required": ["x"]}`, core, "beside it"},
		{
			"a group that is not there", `{"type": "object"}`, append(core, groupVersion{"apps", "v1"}),
			"kinds of apps/v1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := writeSchemas(t.TempDir(), []byte(head+tc.spec+tail), tc.gvs)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}
