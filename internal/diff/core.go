package diff

// service is the rule of a Service.
func (p *pair) service(f field) verdict {
	external := func(o *object) bool { return text(o.at("spec", "type")) == "ExternalName" }
	switch {
	case external(p.was) || external(p.is):
		return verdict{Class: InPlace}
	case f.path.in("spec.clusterIP", "spec.clusterIPs[]"):
		if f.new == nil {
			return verdict{InPlace, "the Service keeps the address that it has, and None where it has none", ""}
		}
		return verdict{
			Refused, "the address of a Service is immutable, and so is None",
			"delete the Service first, or give it another name",
		}
	case f.path.matches("spec.selector"):
		return verdict{InPlace, "its name leads to other pods", ""}
	}
	return verdict{Class: InPlace}
}

const (
	keptValues = "pods that run keep the old values in their environment and in what they mount by subPath; " +
		"other files " +
		"follow within a minute or two"
	frozen = "it has immutable: true"
)

// config is the rule of a ConfigMap.
func (p *pair) config(f field) verdict {
	if yes(p.was.at("immutable")) && f.path.in("data", "binaryData", "immutable") {
		return verdict{Refused, frozen, "give it another name, or delete it first"}
	}
	if f.path.in("data", "binaryData") {
		return verdict{InPlace, keptValues, ""}
	}
	return verdict{Class: InPlace}
}

// secret is the rule of a Secret.
func (p *pair) secret(f field) verdict {
	if f.path.matches("type") {
		return verdict{Refused, "the type of a Secret is immutable", "give it another name, or delete it first"}
	}
	return p.config(f)
}

// binding is the rule of a RoleBinding.
func (p *pair) binding(f field) verdict {
	if f.path.matches("roleRef") {
		return verdict{Refused, "what a " + p.is.Kind + " refers to is immutable", "delete it first"}
	}
	return verdict{Class: InPlace}
}

// priorityClass is the rule of a PriorityClass.
func (p *pair) priorityClass(f field) verdict {
	if f.path.in("value", "preemptionPolicy") {
		return verdict{Refused, "the field of a PriorityClass is immutable", "delete it first; pods keep their number"}
	}
	return verdict{Class: InPlace}
}

// wholeSpec is the rule of kinds whose spec never changes.
func (p *pair) wholeSpec(f field) verdict {
	if f.path.matches("spec") {
		return verdict{Refused, "the spec of a " + p.is.Kind + " is immutable", "give it another name, or delete " +
			"it first"}
	}
	return verdict{Class: InPlace}
}
