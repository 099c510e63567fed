package importer

import (
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// claim is the source of a PersistentVolumeClaim's storage. A claim that is not in the input exists already.
func (s *stream) claim(d *draft, name view) tree {
	pvc := s.find("", "PersistentVolumeClaim", d.namespace(), name.text())
	if pvc == nil {
		return tree{"claim": name.text()}
	}
	source := s.claimSource(pvc, name)
	if source["claim"] == nil { // the job renders it
		s.readOnDelete(pvc, source)
	}
	return source
}

// readOnDelete reads whether a claim goes with its job. Where that is not known, the job keeps it.
func (s *stream) readOnDelete(pvc *object, source tree) {
	metadata := pvc.view().at("metadata")
	labels, annotations := metadata.at("labels"), metadata.at("annotations")
	switch {
	case labels.at(names.LabelJob).isSet():
		source["onDelete"] = job.OnDeleteDelete
	case !annotations.at(names.ArgoSyncOptions).isSet() || !annotations.at(names.FluxPrune).isSet():
		s.notes = append(s.notes, pvc.note(Added,
			"annotations by which Argo CD and Flux keep it when the job is gone: onDelete: delete leaves them out"))
	}
}

// claimSource is the source of a claim of the input.
func (s *stream) claimSource(pvc *object, name view) tree {
	v := pvc.view().at("spec")
	size := v.at("resources", "requests", "storage").text()
	if pv := s.volumeOf(pvc); pv != nil {
		if kind, source := pinned(pv); source != nil {
			source["claim"], source["volume"] = name.text(), pv.name
			if size != "" {
				source["size"] = size
			}
			s.reportUnpinned(pvc, pv)
			return tree{kind: source}
		}
		return tree{"claim": name.text()}
	}
	class := v.at("storageClassName").text()
	if sc := s.find("storage.k8s.io", "StorageClass", "", class); sc != nil {
		if kind, source := provisioned(sc); source != nil {
			source["claim"], source["size"] = name.text(), size
			return tree{kind: source}
		}
	}
	modes := v.at("accessModes").texts()
	if len(modes) != 1 || v.at("volumeName").isSet() || !slices.Contains([]string{
		"ReadWriteMany", "ReadWriteOnce",
		"ReadOnlyMany",
	}, modes[0]) {
		return tree{"claim": name.text()}
	}
	source := tree{"claim": name.text(), "size": size, "accessMode": modes[0]}
	if class != "" {
		source["storageClass"] = class
	}
	return tree{"dynamic": source}
}

// reportUnpinned reports a volume that is bound by its class alone.
func (s *stream) reportUnpinned(pvc, pv *object) {
	class := pv.view().at("spec", "storageClassName")
	if class.text() == "" || pv.view().at("spec", "claimRef").isSet() || len(pv.translated) > 0 {
		return
	}
	s.notes = append(s.notes,
		class.note(Error, "any claim of this class may take the volume: tegen binds claim and volume to each other, "+
			"without a class"))
	class.markTranslated()
	pvc.view().at("spec", "storageClassName").markTranslated()
	if sc := s.find("storage.k8s.io", "StorageClass", "", class.text()); sc != nil {
		sc.replaceWith("claim and volume name each other and need no class", nil)
		for _, key := range []string{"provisioner", "volumeBindingMode"} { // which a bound volume does not ask for
			sc.view().at(key).markTranslated()
		}
	}
}

// volumeOf is the PersistentVolume that a claim binds to: one that the claim names, that names the claim, or of its
// class.
func (s *stream) volumeOf(pvc *object) *object {
	spec := pvc.view().at("spec")
	for _, o := range s.objects {
		ref := o.view().at("spec", "claimRef")
		class := o.view().at("spec", "storageClassName")
		switch {
		case !o.is("", "PersistentVolume"):
		case o.name == spec.at("volumeName").text(),
			ref.at("name").text() == pvc.name && sameNamespace(ref.at("namespace").text(), pvc.namespace),
			!ref.isSet() && class.isSet() && class.text() == spec.at("storageClassName").text():
			return o
		}
	}
	return nil
}

// pinned is a PersistentVolume as a source of storage, nil where there is none of its kind.
func pinned(pv *object) (string, tree) {
	v := pv.view().at("spec")
	handle := v.at("csi", "volumeHandle").text()
	switch {
	case v.at("csi", "driver").text() == "efs.csi.aws.com":
		parts := strings.SplitN(handle, ":", 3)
		source := tree{"fileSystem": parts[0]}
		for i, key := range []string{"path", "accessPoint"} {
			if len(parts) > i+1 && parts[i+1] != "" {
				source[key] = parts[i+1]
			}
		}
		return "efs", source
	case v.at("csi", "driver").text() == "fsx.csi.aws.com":
		attributes := v.at("csi", "volumeAttributes")
		return "fsx", tree{
			"fileSystem": handle, "dnsName": attributes.at("dnsname").text(),
			"mountName": attributes.at("mountname").text(),
		}
	case v.at("nfs").isSet():
		return "nfs", tree{"server": v.at("nfs", "server").text(), "path": v.at("nfs", "path").text()}
	case v.at("hostPath").isSet():
		return "hostPath", tree{"path": v.at("hostPath", "path").text()}
	}
	return "", nil
}

// provisioned is a StorageClass of one file system as a source of storage.
func provisioned(class *object) (string, tree) {
	v := class.view().at("parameters")
	switch class.view().at("provisioner").text() {
	case "efs.csi.aws.com":
		provision := tree{}
		for _, key := range []string{"directoryPerms", "basePath"} {
			if p := v.at(key); p.isSet() {
				provision[key] = p.text()
			}
		}
		for _, key := range []string{"gidRangeStart", "gidRangeEnd"} {
			if n, ok := v.at(key).number(); ok {
				provision[key] = n
			}
		}
		if v.at("provisioningMode").text() == "efs-ap" {
			return "efs", tree{"fileSystem": v.at("fileSystemId").text(), "provision": provision}
		}
	case "fsx.csi.aws.com":
		provision := tree{"subnet": v.at("subnetId").text(), "deploymentType": v.at("deploymentType").text()}
		var groups []any
		for _, group := range strings.Split(v.at("securityGroupIds").text(), ",") {
			groups = append(groups, group)
		}
		provision["securityGroups"] = groups
		return "fsx", tree{"provision": provision}
	}
	return "", nil
}

// dataset is what a prefetch Job of tegen's fetches into a volume.
func (s *stream) dataset(d *draft, item tree) tree {
	for _, o := range s.objects {
		c := o.view().at("spec", "template", "spec", "containers").item("name", "fetch")
		url := c.at("env").item("name", "DATASET_URL").at("value")
		mount := c.at("volumeMounts").item("name", item["name"].(string))
		if !o.is("batch", "Job") || !url.isSet() || !mount.isSet() || !sameNamespace(o.namespace, d.namespace()) ||
			!s.fetchesFor(d, o) {
			continue
		}
		env := func(name string) string { return c.at("env").item("name", name).at("value").text() }
		out := tree{"url": unescaped(url.text())}
		for field, name := range map[string]string{"endpoint": "AWS_ENDPOINT_URL", "region": "AWS_REGION"} {
			if value := env(name); value != "" {
				out[field] = unescaped(value)
			}
		}
		for _, key := range []string{"AWS_ACCESS_KEY_ID", "HF_TOKEN"} {
			if ref := c.at("env").item("name", key).at("valueFrom", "secretKeyRef", "name"); ref.isSet() {
				out["secret"] = ref.text()
			}
		}
		if sum := env("DATASET_SHA256"); sum != "" {
			out["sha256"] = sum
		}
		mountPath := path.Clean(mount.at("mountPath").text())
		if below := strings.Trim(strings.TrimPrefix(env("DATASET_DIR"), mountPath), "/"); below != "" {
			out["path"] = below
		}
		if env("DATASET_FORMAT") == "file" {
			out["unpack"] = false
		}
		if n, ok := o.view().at("spec", "activeDeadlineSeconds").number(); ok {
			out["deadline"] = durationText(n)
		}
		image := "fetch"
		if strings.HasPrefix(url.text(), "s3://") {
			image = "aws"
		}
		if !strings.HasPrefix(url.text(), "hf://") { // which the workers' image fetches
			d.set("spec.images."+image, c.at("image").text(), c.at("image"))
		}
		return out
	}
	return nil
}

// unescaped is what the kubelet makes of an argument or a variable without references: two dollar signs are one.
func unescaped(text string) string { return strings.ReplaceAll(text, "$$", "$") }

// fetchesFor says whether a prefetch Job belongs to the draft's job.
func (s *stream) fetchesFor(d *draft, o *object) bool {
	return strings.HasPrefix(o.name, d.name()+"-prefetch-")
}
