package crds

import (
	"cmp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	unknown = "is not a field of this CRD, so an API server drops it without a word; " +
		"remove it, or install a CRD that has it"
	unknownMeta = "is not a field of metadata, so an API server drops it without a word; remove it"
	statusApart = "is written through a subresource of its own, " +
		"so an API server drops it from what creates the object; remove it"
)

// Check returns the fields of an object of the definition's kind that an API
// server would drop or refuse, sorted by field.
func (d *Definition) Check(u *unstructured.Unstructured) []Finding {
	_, findings := d.Admit(u)
	return findings
}

// Admit is Check, and returns the object as an API server would store it: with
// defaults, without what it drops. It is nil where something was refused.
func (d *Definition) Admit(u *unstructured.Unstructured) (map[string]any, []Finding) {
	e := evaluation{definition: d, object: object(u, d.namespaced)}
	name := u.GroupVersionKind().Version
	v := d.versions[name]
	if v == nil {
		e.refuse(mistake{field: "apiVersion", why: d.notServed(name)})
		return nil, e.findings
	}
	stored := u.DeepCopy().Object
	e.coerce(v, stored)
	if !e.refused { // an API server does not read on either where it cannot decode
		e.validate(v, stored)
	}
	slices.SortFunc(e.findings, Compare)
	e.findings = slices.Compact(e.findings)
	if e.refused {
		stored = nil
	}
	return stored, e.findings
}

// Refuse turns the error of a further validator into a finding.
func (d *Definition) Refuse(u *unstructured.Unstructured, err *field.Error) Finding {
	m := fieldMistake(err)
	return Finding{object(u, d.namespaced), orRoot(m.field), d.File, Refused, m.why}
}

// evaluation is an object held against one definition.
type evaluation struct {
	definition *Definition
	object     string
	findings   []Finding
	refused    bool
}

func (e *evaluation) refuse(m mistake) {
	e.refused = true
	e.add(m.field, Refused, m.why)
}

func (e *evaluation) drop(at, why string) { e.add(at, Dropped, why) }

func (e *evaluation) add(at string, verdict Verdict, why string) {
	e.findings = append(e.findings, Finding{e.object, orRoot(at), e.definition.File, verdict, why})
}

// orRoot names what is a matter of the whole object.
func orRoot(field string) string { return cmp.Or(field, "(root)") }

// coerce makes of the object what an API server decodes, and records what is
// lost on the way.
func (e *evaluation) coerce(v *version, obj map[string]any) {
	meta, found, lost, err := objectmeta.GetObjectMetaWithOptions(obj,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		e.refuse(decodeMistake(err))
		return
	}
	for _, path := range lost {
		e.drop(path, unknownMeta)
	}
	setDefaults(obj, v.schema)
	if !e.definition.keepsUnknown {
		track := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		for _, path := range pruning.PruneWithOptions(obj, v.schema, true, track) {
			e.drop(path, unknown)
		}
		dropNulls(obj, v.schema)
	}
	// Objects within the object, where the schema declares some, have metadata of their own.
	ferr, lost := objectmeta.CoerceWithOptions(nil, obj, v.schema, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if ferr != nil {
		e.refuse(fieldMistake(ferr))
		return
	}
	for _, path := range lost {
		e.drop(path, unknown)
	}
	if found {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			e.refuse(mistake{field: "metadata", why: err.Error()})
		}
	}
	if _, ok := obj["status"]; ok && v.statusApart {
		e.drop("status", statusApart)
		delete(obj, "status")
	}
}

func (e *evaluation) validate(v *version, obj map[string]any) {
	u := &unstructured.Unstructured{Object: obj}
	if e.definition.namespaced && u.GetNamespace() == "" {
		u = u.DeepCopy()
		u.SetNamespace(metav1.NamespaceDefault) // kubectl, and whatever applies a manifest, sets one
	}
	errs := validation.ValidateObjectMetaAccessor(u, e.definition.namespaced, validation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	errs = append(errs, objectmeta.Validate(nil, obj, v.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, obj)...)
	for _, err := range errs {
		e.refuse(fieldMistake(err))
	}
	for _, m := range validateSchema(v.openAPI, obj) {
		e.refuse(m)
	}
}
