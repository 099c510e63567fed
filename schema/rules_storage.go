package schema

import (
	"fmt"
	"path"
	"reflect"

	"github.com/tegen-dev/tegen/internal/lazy"
)

var storageRules = []rule{
	{(*validation).volumes, "storage workers.replicas"},
	{(*validation).claims, "storage metadata"},
	{(*validation).datasets, "storage"},
	{(*validation).stores, "storage identity"},
	{(*validation).checkpoint, "checkpoint storage"},
	{(*validation).save, "checkpoint gracePeriod podTemplate"},
}

func (r *validation) volumes() {
	names, mounts := map[string]int{}, map[string]int{}
	for i := range r.Spec.Storage {
		v := &r.Spec.Storage[i]
		at := fmt.Sprintf("spec.storage[%d]", i)
		if first, ok := names[v.Name]; ok {
			r.fail(at+".name", "duplicate", "%q is the name of spec.storage[%d] already", v.Name, first)
		} else {
			names[v.Name] = i
		}
		mount := path.Clean(v.MountPath)
		if first, ok := mounts[mount]; ok {
			r.fail(at+".mountPath", "duplicate", "%s is where spec.storage[%d] is mounted already", mount, first)
		} else {
			mounts[mount] = i
		}
		r.volume(v, at)
	}
}

// claims refuses two volumes that ask for one claim in two ways.
func (r *validation) claims() {
	first := map[string]int{}
	for i := range r.Spec.Storage {
		v := &r.Spec.Storage[i]
		claim := v.ClaimName(r.Job)
		j, ok := first[claim]
		if !ok || claim == "" {
			first[claim] = i
		} else if !reflect.DeepEqual(v.VolumeSource, r.Spec.Storage[j].VolumeSource) {
			r.fail(fmt.Sprintf("spec.storage[%d]", i), "duplicate",
				"asks for the claim %q in another way than spec.storage[%d]: use one source for both, or another claim",
				claim, j)
		} else if other := r.Spec.Storage[j].OnDelete; v.OnDelete != other {
			r.fail(fmt.Sprintf("spec.storage[%d].onDelete", i), "order",
				"the claim %q is that of spec.storage[%d], where it is %s: say the same in both", claim, j, other)
		}
	}
}

// volume checks one source.
func (r *validation) volume(v *Storage, at string) {
	if r.IsSet(at + ".onDelete") {
		switch { // as the author wrote it: an environment may have another source for it
		case r.IsSet(at + ".claim"):
			r.fail(at+".onDelete", "requires", "the claim exists already and stays when the job goes: leave it out")
		case r.IsSet(at + ".emptyDir"):
			r.fail(at+".onDelete", "requires", "an emptyDir goes with its pod: leave it out")
		}
	}
	// an environment of one node may say so
	if d := v.Dynamic; d != nil && d.AccessMode == "ReadWriteOnce" && r.Spec.Workers.Replicas > 1 &&
		r.IsSet(at+".dynamic.accessMode") {
		r.fail(at+".dynamic.accessMode", "requires",
			"ReadWriteOnce serves the pods of one node, and there are %d workers: use ReadWriteMany",
			r.Spec.Workers.Replicas)
	}
	if e := v.EFS; e != nil {
		if e.Provision != nil && (e.AccessPoint != "" || e.Path != "" || e.Volume != "") {
			r.fail(at+".efs.provision", "one-of",
				"the driver makes the access point and the volume: leave out accessPoint, path and volume")
		}
		if p := e.Provision; p != nil &&
			(p.GIDRangeStart > p.GIDRangeEnd || (p.GIDRangeStart == 0) != (p.GIDRangeEnd == 0)) {
			r.fail(at+".efs.provision.gidRangeEnd", "order",
				"gidRangeStart and gidRangeEnd belong together, the start not above the end")
		}
	}
	if f := v.FSx; f != nil {
		static := f.FileSystem != "" && f.DNSName != "" && f.MountName != ""
		none := f.FileSystem == "" && f.DNSName == "" && f.MountName == ""
		switch {
		case f.Provision == nil && !static:
			r.fail(at+".fsx", "requires",
				"needs fileSystem, dnsName and mountName of a file system, or provision for a new one")
		case f.Provision != nil && (!none || f.Volume != ""):
			r.fail(at+".fsx.provision", "one-of",
				"the driver makes the file system: leave out fileSystem, dnsName, mountName and volume")
		}
	}
}

// foreignArchive is an archive of a kind that the fetching image cannot unpack.
var foreignArchive = lazy.Regexp(`(?i)\.(tar\.(xz|zst|lz4?)|txz|tzst|7z|rar|xz|zst)([?#].*)?$`)

func (r *validation) datasets() {
	for i := range r.Spec.Storage {
		v := &r.Spec.Storage[i]
		at := fmt.Sprintf("spec.storage[%d]", i)
		switch {
		case v.Dataset == nil:
		case !v.Shared():
			r.fail(at+".dataset", "requires",
				"an emptyDir is private to each pod: a dataset needs a volume that all workers share")
		case v.Dataset.Unpack && foreignArchive().MatchString(v.Dataset.URL):
			r.fail(at+".dataset.url", "format",
				"cannot be unpacked: give a .zip, .tar, .tar.gz or .tar.bz2, or set unpack: false")
		case v.Dynamic != nil && v.Dynamic.AccessMode == "ReadOnlyMany":
			r.fail(at+".dataset", "requires", "cannot be fetched into a claim with accessMode ReadOnlyMany")
		}
	}
}

func (r *validation) checkpoint() {
	if r.Spec.Checkpoint == nil {
		return
	}
	dir, on := path.Clean(r.Spec.Checkpoint.Path), r.Spec.checkpointVolume()
	switch {
	case on == nil:
		r.fail("spec.checkpoint.path", "requires",
			"%s is on no volume of spec.storage and would be lost with the pod: name a directory below a mountPath",
			dir)
	case !on.Shared():
		r.fail("spec.checkpoint.path", "requires", "%s is on the emptyDir %q, which is lost with the pod", dir, on.Name)
	case on.ReadOnly:
		r.fail("spec.checkpoint.path", "requires", "%s is on the volume %q, which is mounted read-only", dir, on.Name)
	}
}
