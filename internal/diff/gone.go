package diff

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// runs are the kinds that run pods to their end.
var runs = []string{
	"Job.batch", "Pod", "JobSet.jobset.x-k8s.io", "TrainJob.trainer.kubeflow.org",
	"PyTorchJob.kubeflow.org", "MXJob.kubeflow.org", "MPIJob.kubeflow.org", "Job.batch.volcano.sh",
	"ElasticJob.elastic.iml.github.io", "ElasticJob.elastic.pytorch.org",
}

func (o *object) runsPods() bool { return slices.ContainsFunc(runs, o.is) }

// replaced finds runs that go while others come in their place, and takes them from those that come and go: of the same
// job and part of it; of the same job as another kind or in another namespace; or with the same images.
func (c *comparison) replaced() {
	c.follow(func(o *object) []string {
		if o.is("Pod") {
			return nil
		}
		return []string{o.job, o.Kind, o.group, o.key().namespace, text(o.labels()[names.LabelComponent])}
	})
	c.follow(func(o *object) []string { return []string{o.job} })
	c.follow(func(o *object) []string {
		if o.is("Pod") {
			return nil
		}
		return append([]string{o.Kind, o.group, o.key().namespace, text(o.labels()[names.LabelComponent])},
			images(o.at("spec"))...)
	})
}

// follow takes what goes and what comes for one run that goes on where they have a key in common. Pods of one kind and
// namespace never do: more or fewer of them are a size.
func (c *comparison) follow(key func(*object) []string) {
	id := func(o *object) string {
		if o.job == "" || !o.runsPods() {
			return ""
		}
		return strings.Join(key(o), "\n")
	}
	byID := map[string][]*object{}
	for _, is := range c.come {
		if k := id(is); k != "" {
			byID[k] = append(byID[k], is)
		}
	}
	taken := map[*object]bool{}
	for _, was := range c.gone {
		k := id(was)
		i := slices.IndexFunc(byID[k], func(is *object) bool { return !was.is("Pod") || !is.is("Pod") })
		if k == "" || i < 0 {
			continue
		}
		is := byID[k][i]
		byID[k] = slices.Delete(byID[k], i, i+1)
		taken[was], taken[is] = true, true
		c.replacement(was, is)
	}
	c.gone = slices.DeleteFunc(c.gone, func(o *object) bool { return taken[o] })
	c.come = slices.DeleteFunc(c.come, func(o *object) bool { return taken[o] })
}

// images are the containers below a value, each with its image, in order.
func images(v any) (all []string) {
	switch x := v.(type) {
	case map[string]any:
		if image := text(x["image"]); image != "" {
			all = append(all, text(x["name"])+"="+image)
		}
		for _, value := range x {
			all = append(all, images(value)...)
		}
	case []any:
		for _, value := range x {
			all = append(all, images(value)...)
		}
	}
	slices.Sort(all)
	return all
}

// replacement collects what becomes of a run in whose place another comes under a new name.
func (c *comparison) replacement(was, is *object) {
	v := verdict{
		Overlap, "a new " + is.Kind + " begins while the pods of the old one still have their " +
			"terminationGracePeriodSeconds: both may write one checkpoint",
		"where that matters, suspend the old one in a commit before (docs/checkpoints.md)",
	}
	switch {
	case is.job != was.job:
		v.why = "renamed: a new run begins from nothing, while the pods of the old one still end; the claims of the " +
			"old one stay its own"
		v.remedy = "name the old claim in storage to go on with its data"
	case queued(was):
		v.remedy = "where that matters, set spec.active: false of the old one's Workload before, which suspends it; " +
			"Kueue would undo suspend: true (docs/checkpoints.md)"
	}
	switch {
	case was.finished():
		v.Class, v.remedy = Recreate, ""
		v.why = "the old one has finished and has no pods that run: it goes, and a new run begins"
		if is.job != was.job {
			v.why += " under another name; the claims of the old one stay its own"
		}
	case is.job != was.job:
	case suspended(was):
		v = verdict{Recreate, "the old one is suspended and has no pods: one run ends, the other begins", ""}
	case suspended(is):
		v = verdict{Recreate, "the pods of the old one end; the new one is suspended and begins when it is resumed", ""}
	}
	change := func(path string, old, next any) {
		if old != next {
			c.add(is, Change{Class: v.Class, Path: path, Old: old, New: next, Why: v.why, Remedy: v.remedy})
		}
	}
	change("apiVersion", was.APIVersion, is.APIVersion)
	change("kind", was.Kind, is.Kind)
	change("metadata.namespace", was.key().namespace, is.key().namespace)
	change("metadata.name", was.Name, is.Name)
	for _, f := range fieldsOf(was, is) {
		if f.path.matches("spec") && is.job == was.job && is.Kind == was.Kind && is.group == was.group {
			c.add(is, Change{
				Class: v.Class, Path: f.path.String(), Old: f.old, New: f.new, Why: v.why,
				Remedy: v.remedy,
			})
		}
	}
}

// queued says whether Kueue decides when an object is suspended.
func queued(o *object) bool {
	return text(o.at("metadata", "labels", "kueue.x-k8s.io/queue-name")) != ""
}

// removed collects what becomes of an object that the new state does not have.
func (c *comparison) removed(o *object) {
	v := c.removal(o)
	c.add(o, Change{Class: v.Class, Why: v.why, Remedy: v.remedy})
}

func (c *comparison) removal(o *object) verdict {
	holdsData := o.is("PersistentVolumeClaim") || o.is("PersistentVolume") || o.is("Namespace") ||
		o.is("CustomResourceDefinition.apiextensions.k8s.io")
	if kept, by := keeps(o); kept && holdsData {
		return verdict{
			Removed, "git lets it go, and it stays in the cluster: its annotations say so to Argo CD and Flux",
			"delete it by hand to be rid of the data",
		}
	} else if holdsData && by != "" {
		v := c.dataGoes(o)
		if v.Class == Data {
			v.why += "; only " + by + " is told to keep it"
		}
		return v
	}
	switch {
	case holdsData:
		return c.dataGoes(o)
	case o.is("StatefulSet.apps"):
		if text(o.at("spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")) == "Delete" {
			return verdict{
				Data, "its claims are deleted with it: whenDeleted is Delete",
				"set persistentVolumeClaimRetentionPolicy.whenDeleted: Retain first",
			}
		}
		return verdict{Removed, "its pods end; the claims of its template stay", ""}
	case o.runsPods() && o.finished():
		return verdict{Removed, "it has finished: what is left of its pods, and their logs, is deleted", ""}
	case o.runsPods() && suspended(o):
		return verdict{Removed, "it is suspended and has no pods that run", ""}
	case o.runsPods():
		return verdict{Removed, "its run ends: its pods are deleted", ""}
	}
	return verdict{Class: Removed}
}

const keepIt = "keep it: annotate it Prune=false,Delete=false for Argo CD and prune: disabled for Flux in a " +
	"commit before"

// dataGoes is the verdict on the deletion of what holds data.
func (c *comparison) dataGoes(o *object) verdict {
	switch o.Kind {
	case "Namespace":
		return verdict{Data, "everything in the namespace is deleted, claims too", keepIt}
	case "CustomResourceDefinition":
		return verdict{Data, "every object of its kind in the cluster is deleted", keepIt}
	case "PersistentVolume":
		if text(o.at("spec", "persistentVolumeReclaimPolicy")) == "Delete" {
			return verdict{Data, "its reclaim policy is Delete: the storage behind it is deleted", "set Retain first"}
		}
		return verdict{Removed, "the storage behind it stays: its reclaim policy is Retain", ""}
	}
	policy, from := c.reclaimed(o)
	switch policy {
	case "Retain":
		return verdict{
			Removed, "the claim is deleted, its volume stays: " + from + " has the reclaim policy Retain",
			"a new claim finds the data only if the volume is made free for it",
		}
	case "":
		return verdict{Data, "the claim is deleted, and its volume with all files, unless that has the reclaim " +
			"policy Retain", keepIt}
	}
	return verdict{Data, "the claim is deleted, and its volume with all files: " + from + " has the reclaim policy " +
		policy, keepIt}
}

// reclaimed is the reclaim policy of a claim's volume and what says it, "" where nothing does.
func (c *comparison) reclaimed(claim *object) (policy, from string) {
	o := c.volumes()[claim.key()]
	if o == nil {
		o = c.old.find("PersistentVolume", "", text(claim.at("spec", "volumeName")))
	}
	if o != nil {
		if policy = text(o.at("spec", "persistentVolumeReclaimPolicy")); policy == "" {
			policy = "Retain" // the default of one that no class made
		}
		return policy, o.String()
	}
	class := c.old.find("StorageClass.storage.k8s.io", "", text(claim.at("spec", "storageClassName")))
	if class == nil {
		return "", ""
	}
	if policy = text(class.at("reclaimPolicy")); policy == "" {
		policy = "Delete"
	}
	return policy, class.String()
}

// volumes are those of the old state by the claim that they are bound to.
func (c *comparison) volumes() map[key]*object {
	if c.bound == nil {
		c.bound = map[key]*object{}
		for _, k := range c.old.keys() {
			o := c.old.objects[k]
			ref := mapping(o.at("spec", "claimRef"))
			claim := keyOf(text(ref["namespace"]), "", "PersistentVolumeClaim", text(ref["name"]))
			if o.is("PersistentVolume") && ref != nil && c.bound[claim] == nil {
				c.bound[claim] = o
			}
		}
	}
	return c.bound
}

// keeps says whether both reconcilers leave an object that git has no more, or which one does.
func keeps(o *object) (both bool, one string) {
	argo, flux := true, false
	for _, k := range names.Keeps() {
		value := text(o.annotations()[k[0]])
		if k[0] == names.FluxPrune {
			flux = strings.EqualFold(value, k[1])
		} else if !slices.ContainsFunc(strings.Split(value, ","), func(s string) bool {
			return strings.TrimSpace(s) == k[1]
		}) {
			argo = false
		}
	}
	switch {
	case argo && flux:
		return true, ""
	case argo:
		return false, "Argo CD"
	case flux:
		return false, "Flux"
	}
	return false, ""
}
