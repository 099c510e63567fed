package krm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// keep leaves out what an earlier run of the function made of the same jobs, since kpt hands a function its own output
// of the last time: the objects that are rendered now, and those that the job could have rendered before it changed. Of
// jobs that are not whole, only the same objects go, since another run may make the others. Labels alone prove
// nothing: what has those of a job and cannot be its own passes through, with a note.
func keep(items []*yaml.Node, bundles []render.Bundle, whole bool) (kept []*yaml.Node, notes []string, err error) {
	jobs := map[string]bool{}
	for _, b := range bundles {
		jobs[b.Summary.Namespace+"/"+b.Summary.Name] = true
	}
	labelled := func(n *yaml.Node) bool { of, job := renderedFor(n); return job != "" && jobs[of+"/"+job] }
	if err := twice(items, bundles, labelled); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(items, labelled) {
		return slices.Clone(items), nil, nil
	}
	again := map[string]bool{}
	for _, b := range bundles {
		objects, err := read(b)
		if err != nil {
			return nil, nil, err
		}
		for _, obj := range objects {
			id, err := identityOf(obj)
			if err != nil {
				return nil, nil, err
			}
			again[anyVersion(id)] = true
		}
	}
	for _, n := range items {
		switch {
		case !labelled(n):
		case again[anyVersion(identity(n))]:
			continue
		case whole && canBeRendered(n):
			_, job := renderedFor(n)
			notes = append(notes, fmt.Sprintf("%s: left out: job %s no longer renders it", title(n), job))
			continue
		case !canBeRendered(n):
			_, job := renderedFor(n)
			notes = append(notes, fmt.Sprintf("%s: it has the labels of job %s, which does not render it, and stays "+
				"as it is: remove it if an earlier tegen rendered it, else its labels", title(n), job))
		}
		kept = append(kept, n)
	}
	return kept, notes, nil
}

// twice refuses items that are not of an earlier run and have the name of an object that is rendered: applied, each
// would undo the other.
func twice(items []*yaml.Node, bundles []render.Bundle, labelled func(*yaml.Node) bool) error {
	owners := map[string]*render.Bundle{}
	for i := range bundles {
		for _, id := range bundles[i].IDs() {
			owners[id] = &bundles[i]
		}
	}
	var errs []error
	for _, n := range items {
		b := owners[title(n)]
		if b == nil || isInput(n) || isLocal(n) || labelled(n) {
			continue
		}
		is, err := renders(*b, n)
		if err != nil {
			return err
		}
		if is {
			errs = append(errs, fmt.Errorf("%s: job %s renders an object of this name: rename or remove one of them",
				title(n), b.Summary.Name))
		}
	}
	return errors.Join(errs...)
}

// renders reports whether a bundle has the object that an item is, in whatever version, or a controller makes it.
func renders(b render.Bundle, n *yaml.Node) (bool, error) {
	objects, err := read(b)
	if err != nil {
		return false, err
	}
	ofKind := false
	for _, obj := range objects {
		id, err := identityOf(obj)
		if err != nil {
			return false, err
		}
		if anyVersion(id) == anyVersion(identity(n)) {
			return true, nil
		}
		ofKind = ofKind || strings.HasSuffix(id, strings.TrimPrefix(identity(n), apiVersion(n)))
	}
	return !ofKind && apiVersion(n) == "v1", nil // controllers make Services
}

// anyVersion is an identity with the group in place of the version.
func anyVersion(identity string) string {
	version, rest, _ := strings.Cut(identity, " ")
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	return group + " " + rest
}

// renderedFor is the namespace and name of the job whose labels an object has, "" where they do not name tegen.
func renderedFor(n *yaml.Node) (home, job string) {
	if label(n, names.LabelManagedBy) != names.ManagedBy {
		return "", ""
	}
	if home = namespace(n); home == "" {
		home = label(n, names.LabelNamespace)
	}
	return home, names.JobOf(func(key string) string { return label(n, key) })
}

// ofJobs are the kinds of Kubernetes itself that a job is rendered to, by group; ofClusters those among them that are
// in no namespace. Other kinds are in package apis.
var (
	ofJobs = map[string][]string{
		"": {
			"Namespace", "ServiceAccount", "Service", "Pod", "ConfigMap", "Secret", "PersistentVolume",
			"PersistentVolumeClaim",
		},
		"apps":                      {"Deployment", "StatefulSet"},
		"batch":                     {"Job"},
		"networking.k8s.io":         {"NetworkPolicy"},
		"policy":                    {"PodDisruptionBudget"},
		"rbac.authorization.k8s.io": {"Role", "RoleBinding"},
		"storage.k8s.io":            {"StorageClass"},
	}
	ofClusters = []string{"Namespace", "PersistentVolume", "StorageClass"}
)

// canBeRendered reports whether an object with a job's labels is one that the job, with whatever fields, is rendered to
// under a name that tegen chooses. Of ConfigMaps and Secrets these are only the ones of the ssh keys.
func canBeRendered(n *yaml.Node) bool {
	home, job := renderedFor(n)
	group, _, _ := strings.Cut(anyVersion(identity(n)), " ")
	custom := slices.ContainsFunc(apis.Kinds, func(k apis.Kind) bool { return k.Group == group && k.Kind == kind(n) })
	if !custom && !slices.Contains(ofJobs[group], kind(n)) {
		return false
	}
	if (namespace(n) == "") != slices.Contains(ofClusters, kind(n)) {
		return false
	}
	own := job
	switch kind(n) {
	case "PersistentVolumeClaim", "PersistentVolume": // one of the author's may have such a name, and hold data
		if label(n, names.LabelData) != job {
			return false
		}
	}
	switch kind(n) {
	case "Namespace":
		return name(n) == home
	case "PersistentVolume", "StorageClass":
		own = home + "-" + job
	case "ConfigMap", "Secret":
		own = job + "-ssh"
	}
	return name(n) == own || strings.HasPrefix(name(n), own+"-")
}

// read are the objects of a bundle's files. Its job may be released already.
func read(b render.Bundle) (objects []runtime.Object, err error) {
	for _, f := range b.Files {
		more, err := manifest.Read(f.Concern, f.YAML)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// identityOf is identity of what is no item yet.
func identityOf(obj runtime.Object) (string, error) {
	gvk, err := manifest.GVK(obj)
	if err != nil {
		return "", err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("naming a %s: %w", gvk.Kind, err)
	}
	return strings.Join([]string{gvk.GroupVersion().String(), gvk.Kind, m.GetNamespace(), m.GetName()}, " "), nil
}

// title names an item in a message.
func title(n *yaml.Node) string {
	if namespace(n) == "" {
		return kind(n) + " " + name(n)
	}
	return kind(n) + " " + namespace(n) + "/" + name(n)
}

// few is a text of the first of many names.
func few(all []string) string {
	const enough = 3
	if len(all) <= enough {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:enough], ", "), len(all)-enough)
}

// hidden refuses lists that have inputs among their items: kustomize takes a list apart, and a function is handed its
// parts; in one that comes as it is, nothing would render them.
func hidden(items []*yaml.Node) error {
	var errs []error
	for i, n := range items {
		list := yamldoc.Target(yamldoc.Field(n, "items"))
		if list == nil || list.Kind != yaml.SequenceNode || !strings.HasSuffix(kind(n), "List") {
			continue
		}
		for _, item := range list.Content {
			item = yamldoc.Target(item)
			// Items of a list of one kind may leave apiVersion and kind out.
			if kind(item) != "" && apiVersion(item) != "" && headOf(item).Class() != dochead.Foreign {
				errs = append(errs, fmt.Errorf("%s: items: %s is in a List, where it is not rendered: make it an item "+
					"of the ResourceList, as a document of its own", itemName(n, i), title(item)))
			}
		}
	}
	return errors.Join(errs...)
}
