package rule

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// save checks that a checkpoint has the time that it takes, and that nothing else is to happen at a pod's end.
func (r *Validation) save() {
	c := r.Spec.Checkpoint
	if c == nil || c.Save == nil {
		return
	}
	if takes, grace := c.Save.Takes.Duration, r.Spec.GracePeriod.Duration; grace < takes {
		r.fail("spec.checkpoint.save.takes", "order", "the kubelet kills a pod after gracePeriod, %s, and the "+
			"checkpoint takes %s: leave gracePeriod out, or make it longer", grace, takes)
	}
	for i, p := range r.patch().Spec.Containers {
		if p.Name == job.RoleWorker && p.Lifecycle != nil {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "one-of",
				"checkpoint.save is a hook of its own: leave one of the two out")
		}
	}
}

var codeRules = []oldRule{
	{(*Validation).codePlace, "code storage"},
	{(*Validation).codeKey, "code"},
	{(*Validation).codeReach, "code network"},
}

// codePlace refuses a directory that is something else's.
func (r *Validation) codePlace() {
	if r.Spec.Code == nil {
		return
	}
	const at = "spec.code.mountPath"
	own := strings.TrimSuffix(r.Spec.Code.MountPath, "/")
	for i, v := range r.Spec.Storage {
		if strings.TrimSuffix(v.MountPath, "/") == own {
			r.fail(at, "duplicate", "%s is where spec.storage[%d] is mounted already", own, i)
		} else if strings.HasPrefix(v.MountPath, own+"/") {
			r.fail(at, "requires", "spec.storage[%d] is mounted below it, at %s, and no directory can be made for it "+
				"among code that is mounted for reading alone: mount one of them elsewhere", i, v.MountPath)
		}
	}
}

// codeKey asks for the key without which no host lets anybody in by ssh.
func (r *Validation) codeKey() {
	if c := r.Spec.Code; c != nil && c.Git != nil && c.Git.SSH() && c.Git.Secret == "" {
		r.fail("spec.code.git.secret", "requires", "%s is reached by ssh, which needs a key: name a Secret with "+
			"ssh-privatekey and known_hosts, or give the URL for https", c.Git.Repository)
	}
}

// codeReach refuses a repository to which the pods may not connect.
func (r *Validation) codeReach() {
	n, c := &r.Spec.Network, r.Spec.Code
	if c == nil || c.Git == nil || !n.Policy || !n.Limits() {
		return
	}
	port := c.Git.Port()
	if !n.Opens(port) {
		r.fail("spec.network.egress", "requires", "with %s no pod reaches the repository of spec.code.git: add to "+
			"allowTo the addresses of its host, with port %d", n.Egress, port)
	}
}

// stores refuses what a store has no use for.
func (r *Validation) stores() {
	for i := range r.Spec.Storage {
		if d := r.Spec.Storage[i].Dataset; d != nil {
			r.storeOf(d, fmt.Sprintf("spec.storage[%d].dataset", i))
		}
	}
}

func (r *Validation) storeOf(d *job.Dataset, at string) {
	web := !d.FromS3() && !d.FromHub()
	for field, value := range map[string]string{"endpoint": d.Endpoint, "region": d.Region} {
		if value != "" && !d.FromS3() {
			r.fail(at+"."+field, "requires", "only a bucket has one: leave it out, or give a URL of s3://")
		}
	}
	switch {
	case web && d.Secret != "":
		r.fail(at+".secret", "requires", "curl is given no credentials: leave it out, or fetch from s3:// or hf://")
	case d.FromS3() && d.Secret == "" && r.Spec.Identity == nil:
		r.fail(at+".url", "requires", "reading from S3 needs credentials: set dataset.secret, or spec.identity: one "+
			"of irsa, podIdentity, nodeRole, serviceAccount")
	}
	if d.Tree() && d.SHA256 != "" {
		r.fail(at+".sha256", "requires", "it is the sum of one file, and these are many: leave it out, and name a "+
			"revision where there is one")
	}
	if !web && d.Unpack && r.IsSet(at+".unpack") {
		r.fail(at+".unpack", "requires", "what is in a bucket or a repository stays as it is: leave it out, or fetch "+
			"the archive by https")
	}
}

// leastVolume is the smallest volume of a store: a companion has two files of its log of 16Mi each, and accepts writes
// while 48Mi are free; an etcd has two files of 64Mi. The database comes on top, and the file system takes a part.
const leastVolume = "256Mi"

// storeVolumes refuses a volume on which a store would start and then accept no write.
func (r *Validation) storeVolumes() {
	z, least := &r.Spec.Rendezvous, resource.MustParse(leastVolume)
	for at, v := range map[string]*job.EtcdStorage{"companion": z.Companion.Storage, "etcd": z.Etcd.Storage} {
		if v != nil && v.Size.Cmp(least) < 0 {
			r.fail("spec.rendezvous."+at+".storage.size", "range", "%s is below the minimum of %s: the store's log "+
				"and database would not fit, and it would refuse writes. Use 1Gi", &v.Size, leastVolume)
		}
	}
}

// storeDisks refuses less local disk than a store fills: its pod would be evicted, and the run of all with it.
func (r *Validation) storeDisks() {
	s := &r.Spec
	switch {
	case s.Rendezvous.Store == job.StoreEtcd && s.Rendezvous.Etcd.Storage == nil:
		r.storeDisk(job.RoleEtcd, s.EtcdDisk(),
			"spec.rendezvous.etcd.quota for its database, and "+job.Printed+" for its log", "lower the quota")
	case s.StoresInCompanion():
		r.storeDisk(job.RoleCompanion, s.CompanionDisk(),
			"its store, two files of up to its memory, and at least 1Gi with its log and what it prints",
			"set spec.rendezvous.companion.storage")
	}
}

func (r *Validation) storeDisk(role string, needs resource.Quantity, what, otherwise string) {
	own := r.Spec.Role(role).Resources
	limit := own.DiskLimit()
	if limit == nil || limit.Cmp(needs) >= 0 {
		return
	}
	at := "spec.roles." + role + ".resources."
	if r.IsSet(at + "limits.ephemeralStorage") {
		at += "limits."
	}
	r.fail(at+"ephemeralStorage", "order", "%s is below %s: %s; give it that much, or %s", limit, &needs, what,
		otherwise)
}

var storageRules = []oldRule{
	{(*Validation).volumes, "storage workers.replicas"},
	{(*Validation).claims, "storage metadata"},
	{(*Validation).datasets, "storage"},
	{(*Validation).stores, "storage identity"},
	{(*Validation).checkpoint, "checkpoint storage"},
	{(*Validation).save, "checkpoint gracePeriod podTemplate"},
}

func (r *Validation) volumes() {
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
func (r *Validation) claims() {
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
func (r *Validation) volume(v *job.Storage, at string) {
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

func (r *Validation) datasets() {
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

func (r *Validation) checkpoint() {
	if r.Spec.Checkpoint == nil {
		return
	}
	dir, on := path.Clean(r.Spec.Checkpoint.Path), r.Spec.CheckpointVolume()
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
