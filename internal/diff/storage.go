package diff

import "github.com/tegen-dev/tegen/internal/quantity"

const (
	claimFields = "a claim is immutable but for its size, which only grows, and its attributes class"
	newClaim    = "make a claim of another name and copy the data: deleting this one deletes what it holds"
)

// claim is the rule of a PersistentVolumeClaim (kubernetes 1.36, ValidatePersistentVolumeClaimUpdate, and the admission
// plugin PersistentVolumeClaimResize).
func (p *pair) claim(f field) verdict {
	switch {
	case f.path.matches("spec.resources.requests.storage"):
		return p.size(f)
	case f.path.matches("spec.volumeAttributesClassName"):
		return verdict{InPlace, "the driver changes the volume; refused while the claim is not bound", ""}
	case f.path.matches("spec.volumeName") && f.old == nil:
		return verdict{InPlace, "a claim that is not bound may name its volume", ""}
	}
	return verdict{Refused, claimFields, newClaim}
}

func (p *pair) size(f field) verdict {
	was, err := quantity.Parse(word(f.old))
	is, wrong := quantity.Parse(word(f.new))
	switch {
	case err != nil || wrong != nil || is.Cmp(was) < 0:
		return verdict{Refused, "a claim never shrinks", "leave the size, or make a claim of another name"}
	case text(p.was.status["phase"]) == "Pending":
		return verdict{Refused, "a claim that is not bound cannot grow", "delete the claim: it holds nothing yet"}
	}
	name := text(p.was.at("spec", "storageClassName"))
	class := p.old.find("StorageClass.storage.k8s.io", "", name)
	if class == nil {
		class = p.next.find("StorageClass.storage.k8s.io", "", name)
	}
	switch {
	case name == "":
		return verdict{Refused, "the claim names no class (or leaves it to the default): only a class with " +
			"allowVolumeExpansion: true lets it grow", newClaim}
	case class == nil:
		return verdict{InPlace, "the volume grows where StorageClass " + name + " has allowVolumeExpansion: true and " +
			"the claim is bound; elsewhere it is refused", "look: kubectl get storageclass " + name}
	case !yes(class.at("allowVolumeExpansion")):
		return verdict{
			Refused, "StorageClass " + name + " has no allowVolumeExpansion: true",
			"set it there first, where the driver can do it",
		}
	}
	return verdict{InPlace, "the volume grows; refused while the claim is not bound", ""}
}

// volume is the rule of a PersistentVolume.
func (p *pair) volume(f field) verdict {
	switch {
	case f.path.in("spec.accessModes", "spec.capacity", "spec.mountOptions", "spec.claimRef", "spec.storageClassName",
		"spec.volumeAttributesClassName"):
		return verdict{Class: InPlace}
	case f.path.matches("spec.persistentVolumeReclaimPolicy"):
		if text(f.new) == "Delete" {
			return verdict{InPlace, "from now on the volume's data goes with its claim", "leave Retain to keep it"}
		}
		return verdict{InPlace, "from now on the volume's data stays without its claim", ""}
	case f.path.matches("spec.nodeAffinity") && p.was.at("spec", "nodeAffinity") == nil:
		return verdict{Class: InPlace}
	}
	return verdict{
		Refused, "where a PersistentVolume leads to is immutable",
		"make a volume of another name; with Retain the data stays where it is",
	}
}

// storageClass is the rule of a StorageClass.
func (p *pair) storageClass(f field) verdict {
	if f.path.in("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode") {
		return verdict{
			Refused, "the field of a StorageClass is immutable",
			"delete the class first: no claim that is there needs it",
		}
	}
	return verdict{Class: InPlace}
}
