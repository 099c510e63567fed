package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The published schema collections are downloaded file by file at validation
// time. These are derived instead from the OpenAPI document inside the
// k8s.io/kubernetes module, so that a validation needs no network, is checked
// against schemas.sum like any other dependency, and follows exactly one
// Kubernetes release.

// groupVersions are the API groups a golden may use. A kind of any other group
// has no schema, which kubeconform reports: a new group is a decision to record
// here, not something that passes because nobody looks.
var groupVersions = []groupVersion{
	{"", "v1"},
	{"apps", "v1"},
	{"batch", "v1"},
	{"networking.k8s.io", "v1"},
	{"policy", "v1"},
	{"rbac.authorization.k8s.io", "v1"},
	{"resource.k8s.io", "v1"},
	{"scheduling.k8s.io", "v1alpha2"},
	{"storage.k8s.io", "v1"},
}

type groupVersion struct{ group, version string }

func (gv groupVersion) String() string {
	if gv.group == "" {
		return gv.version
	}
	return gv.group + "/" + gv.version
}

// swagger is the part of an OpenAPI v2 document that is read here.
type swagger struct {
	Definitions map[string]map[string]any `json:"definitions"`
}

const (
	refPrefix   = "#/definitions/"
	objectMeta  = refPrefix + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	intOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
	quantity    = "io.k8s.apimachinery.pkg.api.resource.Quantity"
)

// quantityPattern accepts what resource.ParseQuantity accepts; the OpenAPI
// document says only "string", which would let "lots" through.
const quantityPattern = `^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$`

// writeSchemas writes one self-contained, strict schema per kind of the given
// groups into dir, named the way kubeconform looks them up, and returns how
// many it wrote.
func writeSchemas(dir string, openAPI []byte, gvs []groupVersion) (int, error) {
	var doc swagger
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		return 0, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	files := map[string]string{} // file name to the definition it was written from
	found := map[groupVersion]bool{}
	for _, name := range slices.Sorted(maps.Keys(doc.Definitions)) {
		definition := doc.Definitions[name]
		kind, gv, ok := identify(definition)
		if !ok || !slices.Contains(gvs, gv) {
			continue
		}
		schema, err := standalone(doc, name, kind, gv)
		if err != nil {
			return 0, fmt.Errorf("converting %s: %w", name, err)
		}
		data, err := json.Marshal(schema)
		if err != nil {
			return 0, fmt.Errorf("encoding the schema of %s: %w", name, err)
		}
		file := schemaFile(kind, gv)
		if earlier, dup := files[file]; dup {
			return 0, fmt.Errorf("writing %s: both %s and %s map to it", file, earlier, name)
		}
		files[file] = name
		found[gv] = true
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return 0, fmt.Errorf("writing a schema: %w", err)
		}
	}
	for _, gv := range gvs {
		if !found[gv] {
			return 0, fmt.Errorf("looking for kinds of %s: the OpenAPI document has none", gv)
		}
	}
	return len(files), nil
}

// identify tells which kind a definition describes. It answers false for the
// definitions that are no stored object: parts of objects, lists (a golden
// holds plain documents), and the request types that carry every group at once.
func identify(definition map[string]any) (kind string, gv groupVersion, ok bool) {
	gvks, _ := definition["x-kubernetes-group-version-kind"].([]any)
	if len(gvks) != 1 {
		return "", groupVersion{}, false
	}
	properties, _ := definition["properties"].(map[string]any)
	metadata, _ := properties["metadata"].(map[string]any)
	if metadata["$ref"] != objectMeta {
		return "", groupVersion{}, false
	}
	gvk, _ := gvks[0].(map[string]any)
	kind, _ = gvk["kind"].(string)
	gv.group, _ = gvk["group"].(string)
	gv.version, _ = gvk["version"].(string)
	return kind, gv, kind != "" && gv.version != ""
}

// schemaFile names a schema the way kubeconform's default layout does:
// {{ .ResourceKind }}{{ .KindSuffix }}.json, where the suffix holds only the
// first label of the group.
func schemaFile(kind string, gv groupVersion) string {
	parts := []string{kind}
	if gv.group != "" {
		first, _, _ := strings.Cut(gv.group, ".")
		parts = append(parts, first)
	}
	return strings.ToLower(strings.Join(append(parts, gv.version), "-")) + ".json"
}

// standalone returns the schema of one kind with every definition it reaches
// beside it, so that no reference leaves the file.
func standalone(doc swagger, name, kind string, gv groupVersion) (map[string]any, error) {
	definitions := map[string]any{}
	for todo := []string{name}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if _, done := definitions[next]; done {
			continue
		}
		definition, ok := doc.Definitions[next]
		if !ok {
			return nil, fmt.Errorf("resolving %s: no such definition", next)
		}
		switch next {
		case intOrString:
			// "string" with a format of its own in OpenAPI v2, which cannot say "or".
			definitions[next] = map[string]any{"type": []any{"string", "integer"}}
			continue
		case quantity:
			definitions[next] = map[string]any{"oneOf": []any{
				map[string]any{"type": "string", "pattern": quantityPattern},
				map[string]any{"type": "number"},
			}}
			continue
		}
		strict, refs, err := convert(definition)
		if err != nil {
			return nil, fmt.Errorf("converting %s: %w", next, err)
		}
		definitions[next] = strict
		todo = append(todo, refs...)
	}

	// Nothing refers back to the root, and the apiVersion and kind it carries are
	// known.
	root, ok := definitions[name].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("converting %s: not an object schema", name)
	}
	delete(definitions, name)
	properties, ok := root["properties"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("converting %s: no properties", name)
	}
	properties["kind"] = map[string]any{"enum": []any{kind}}
	properties["apiVersion"] = map[string]any{"enum": []any{gv.String()}}
	required, _ := root["required"].([]any)
	root["required"] = append(slices.Clone(required), "apiVersion", "kind")
	root["definitions"] = definitions
	root["$schema"] = "http://json-schema.org/draft-04/schema#"
	return root, nil
}

// convert copies the validating part of an OpenAPI schema, closes every object
// whose fields are listed, and returns the definitions it refers to. It refuses
// a keyword it does not know, because dropping a constraint in silence would
// make the whole check weaker than it looks.
func convert(in map[string]any) (out map[string]any, refs []string, err error) {
	out = map[string]any{}
	sub := func(key string, value any) (any, error) {
		schema, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("reading %q: got %T, want a schema", key, value)
		}
		converted, more, err := convert(schema)
		if err != nil {
			return nil, fmt.Errorf("under %q: %w", key, err)
		}
		refs = append(refs, more...)
		return converted, nil
	}
	for key, value := range in {
		switch key {
		case "$ref":
			ref, _ := value.(string)
			target, ok := strings.CutPrefix(ref, refPrefix)
			if !ok {
				return nil, nil, fmt.Errorf("following the reference %q: it leaves the document", ref)
			}
			refs = append(refs, target)
			out[key] = ref
		case "properties":
			fields, ok := value.(map[string]any)
			if !ok {
				return nil, nil, fmt.Errorf("reading %q: got %T, want an object", key, value)
			}
			converted := map[string]any{}
			for field, schema := range fields {
				if converted[field], err = sub(field, schema); err != nil {
					return nil, nil, err
				}
			}
			out[key] = converted
		case "items":
			if out[key], err = sub(key, value); err != nil {
				return nil, nil, err
			}
		case "additionalProperties":
			if _, isBool := value.(bool); isBool {
				out[key] = value
				continue
			}
			if out[key], err = sub(key, value); err != nil {
				return nil, nil, err
			}
		case "format":
			switch value {
			case "int32":
				out["minimum"], out["maximum"] = math.MinInt32, math.MaxInt32
			case "int64":
				// Wider than a JSON number is exact; the type alone decides.
			case "byte":
				out["pattern"] = `^[A-Za-z0-9+/]*={0,2}$`
			case "date-time":
				out[key] = value
			case "double":
				// Every JSON number is one.
			default:
				return nil, nil, fmt.Errorf("reading the format %v: its meaning is not known here", value)
			}
		case "type", "required":
			out[key] = value
		case "description", "default":
			// Say nothing about what is valid.
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") {
				return nil, nil, fmt.Errorf("reading the keyword %q: its meaning is not known here", key)
			}
		}
	}
	_, listed := out["properties"]
	_, open := out["additionalProperties"]
	if listed && !open {
		out["additionalProperties"] = false
	}
	if _, isRef := out["$ref"]; isRef && len(out) > 1 {
		return nil, nil, errors.New("converting a reference with constraints beside it: draft 4 would ignore them")
	}
	return out, refs, nil
}
