package rule

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var storageRules = []Rule{
	part.Of1(volumes, part.Storage),
	part.Of1(lifetimes, part.Storage),
	part.Of2(oneNode, part.Storage, part.Replicas),
	part.Of1(provisioned, part.Storage),
	part.Of2(claims, part.Storage, claimNames),
	part.Of1(datasets, part.Storage),
	part.Of2(stores, part.Storage, part.Identity),
	part.Of2(checkpoint, part.Checkpoint, checkpointVolume),
	part.Of2(timeToSave, part.Checkpoint, part.GracePeriod),
	part.Of2(saveHook, part.Checkpoint, workerPatch),
	part.Of2(codePlace, part.Code, part.Storage),
	part.Of1(codeKey, part.Code),
	part.Of2(codeReach, part.Code, part.Network),
	part.Of2(storeVolumes, part.Companion, part.Etcd),
	part.Of1(storeDisk, filledDisk),
}

var (
	checkpointVolume = part.OfSpec("checkpoint storage", (*job.Spec).CheckpointVolume)
	claimNames       = part.New("metadata storage", func(j *job.Job) (names []string) {
		for i := range j.Spec.Storage {
			names = append(names, j.Spec.Storage[i].ClaimName(j))
		}
		return names
	})
)

// timeToSave checks that a checkpoint has the time that it takes.
func timeToSave(p *Problems, c *job.Checkpoint, grace metav1.Duration) {
	if c != nil && c.Save != nil && grace.Duration < c.Save.Takes.Duration {
		p.fail("spec.checkpoint.save.takes", "order", "the kubelet kills a pod after gracePeriod, %s, and the "+
			"checkpoint takes %s: leave gracePeriod out, or make it longer", grace.Duration, c.Save.Takes.Duration)
	}
}

// saveHook checks that nothing else is to happen at the end of a pod that saves a checkpoint.
func saveHook(p *Problems, c *job.Checkpoint, worker podPatch) {
	for i, own := range worker.Spec.Containers {
		if c != nil && c.Save != nil && own.Name == job.RoleWorker && own.Lifecycle != nil {
			p.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "one-of",
				"checkpoint.save is a hook of its own: leave one of the two out")
		}
	}
}

// codePlace refuses a directory that is something else's.
func codePlace(p *Problems, c *job.Code, storage []job.Storage) {
	if c == nil {
		return
	}
	const at = "spec.code.mountPath"
	own := strings.TrimSuffix(c.MountPath, "/")
	for i, v := range storage {
		if strings.TrimSuffix(v.MountPath, "/") == own {
			p.fail(at, "duplicate", "%s is where spec.storage[%d] is mounted already", own, i)
		} else if strings.HasPrefix(v.MountPath, own+"/") {
			p.fail(at, "requires", "spec.storage[%d] is mounted below it, at %s, and no directory can be made for it "+
				"among code that is mounted for reading alone: mount one of them elsewhere", i, v.MountPath)
		}
	}
}

// codeKey asks for the key without which no host lets anybody in by ssh.
func codeKey(p *Problems, c *job.Code) {
	if c != nil && c.Git != nil && c.Git.SSH() && c.Git.Secret == "" {
		p.fail("spec.code.git.secret", "requires", "%s is reached by ssh, which needs a key: name a Secret with "+
			"ssh-privatekey and known_hosts, or give the URL for https", c.Git.Repository)
	}
}

// codeReach refuses a repository to which the pods may not connect.
func codeReach(p *Problems, c *job.Code, n *job.Network) {
	if c == nil || c.Git == nil || !n.Policy || !n.Limits() {
		return
	}
	if port := c.Git.Port(); !n.Opens(port) {
		p.fail("spec.network.egress", "requires", "with %s no pod reaches the repository of spec.code.git: add to "+
			"allowTo the addresses of its host, with port %d", n.Egress, port)
	}
}

// stores refuses what a store of data sets has no use for.
func stores(p *Problems, storage []job.Storage, id *job.Identity) {
	for i := range storage {
		if d := storage[i].Dataset; d != nil {
			storeOf(p, d, fmt.Sprintf("spec.storage[%d].dataset", i), id)
		}
	}
}

func storeOf(p *Problems, d *job.Dataset, at string, id *job.Identity) {
	web := !d.FromS3() && !d.FromHub()
	for field, value := range map[string]string{"endpoint": d.Endpoint, "region": d.Region} {
		if value != "" && !d.FromS3() {
			p.fail(at+"."+field, "requires", "only a bucket has one: leave it out, or give a URL of s3://")
		}
	}
	switch {
	case web && d.Secret != "":
		p.fail(at+".secret", "requires", "curl is given no credentials: leave it out, or fetch from s3:// or hf://")
	case d.FromS3() && d.Secret == "" && id == nil:
		p.fail(at+".url", "requires", "reading from S3 needs credentials: set dataset.secret, or spec.identity: one "+
			"of irsa, podIdentity, nodeRole, serviceAccount")
	}
	if d.Tree() && d.SHA256 != "" {
		p.fail(at+".sha256", "requires", "it is the sum of one file, and these are many: leave it out, and name a "+
			"revision where there is one")
	}
	if !web && d.Unpack && p.IsSet(at+".unpack") {
		p.fail(at+".unpack", "requires", "what is in a bucket or a repository stays as it is: leave it out, or fetch "+
			"the archive by https")
	}
}

// leastVolume is the smallest volume of a store: a companion has two files of its log of 16Mi each, and accepts writes
// while 48Mi are free; an etcd has two files of 64Mi. The database comes on top, and the file system takes a part.
const leastVolume = "256Mi"

// storeVolumes refuses a volume on which a store would start and then accept no write.
func storeVolumes(p *Problems, companion *job.Companion, etcd *job.Etcd) {
	least := resource.MustParse(leastVolume)
	for at, v := range map[string]*job.EtcdStorage{"companion": companion.Storage, "etcd": etcd.Storage} {
		if v != nil && v.Size.Cmp(least) < 0 {
			p.fail("spec.rendezvous."+at+".storage.size", "range", "%s is below the minimum of %s: the store's log "+
				"and database would not fit, and it would refuse writes. Use 1Gi", &v.Size, leastVolume)
		}
	}
}

// disk is the local disk of a store's pod: what the pod needs and for what, and its limit, nil if there is none.
type disk struct {
	role            string
	needs           resource.Quantity
	limit           *resource.Quantity
	what, otherwise string
}

// filledDisk is the disk that the job's store fills.
var filledDisk = part.OfSpec("rendezvous.store rendezvous.backend rendezvous.etcd rendezvous.companion roles.etcd "+
	"roles.companion", func(s *job.Spec) (d disk) {
	switch {
	case s.Rendezvous.Store == job.StoreEtcd && s.Rendezvous.Etcd.Storage == nil:
		d = disk{role: job.RoleEtcd, needs: s.EtcdDisk(), limit: s.Roles.Etcd.Resources.DiskLimit()}
		d.what = "spec.rendezvous.etcd.quota for its database, and " + job.Printed + " for its log"
		d.otherwise = "lower the quota"
	case s.StoresInCompanion():
		d = disk{role: job.RoleCompanion, needs: s.CompanionDisk(), limit: s.Roles.Companion.Resources.DiskLimit()}
		d.what = "its store, two files of up to its memory, and at least 1Gi with its log and what it prints"
		d.otherwise = "set spec.rendezvous.companion.storage"
	}
	return d
})

// storeDisk refuses less local disk than a store fills: its pod would be evicted, and the run of all with it.
func storeDisk(p *Problems, d disk) {
	if d.limit == nil || d.limit.Cmp(d.needs) >= 0 {
		return
	}
	at := "spec.roles." + d.role + ".resources."
	if p.IsSet(at + "limits.ephemeralStorage") {
		at += "limits."
	}
	p.fail(at+"ephemeralStorage", "order", "%s is below %s: %s; give it that much, or %s", d.limit, &d.needs, d.what,
		d.otherwise)
}

// volumes refuses a name or a place of two volumes.
func volumes(p *Problems, storage []job.Storage) {
	names, mounts := map[string]int{}, map[string]int{}
	for i, v := range storage {
		at := fmt.Sprintf("spec.storage[%d]", i)
		if first, ok := names[v.Name]; ok {
			p.fail(at+".name", "duplicate", "%q is the name of spec.storage[%d] already", v.Name, first)
		} else {
			names[v.Name] = i
		}
		mount := path.Clean(v.MountPath)
		if first, ok := mounts[mount]; ok {
			p.fail(at+".mountPath", "duplicate", "%s is where spec.storage[%d] is mounted already", mount, first)
		} else {
			mounts[mount] = i
		}
	}
}

// claims refuses two volumes that ask for one claim in two ways.
func claims(p *Problems, storage []job.Storage, names []string) {
	first := map[string]int{}
	for i, claim := range names {
		j, ok := first[claim]
		if !ok || claim == "" {
			first[claim] = i
		} else if !reflect.DeepEqual(storage[i].VolumeSource, storage[j].VolumeSource) {
			p.fail(fmt.Sprintf("spec.storage[%d]", i), "duplicate",
				"asks for the claim %q in another way than spec.storage[%d]: use one source for both, or another claim",
				claim, j)
		} else if other := storage[j].OnDelete; storage[i].OnDelete != other {
			p.fail(fmt.Sprintf("spec.storage[%d].onDelete", i), "order",
				"the claim %q is that of spec.storage[%d], where it is %s: say the same in both", claim, j, other)
		}
	}
}

// lifetimes refuses onDelete of volumes whose lifetime is not the job's to choose. It reads the sources that the author
// wrote: an environment may have another one for a volume.
func lifetimes(p *Problems, storage []job.Storage) {
	for i := range storage {
		switch at := fmt.Sprintf("spec.storage[%d]", i); {
		case !p.IsSet(at + ".onDelete"):
		case p.IsSet(at + ".claim"):
			p.fail(at+".onDelete", "requires", "the claim exists already and stays when the job goes: leave it out")
		case p.IsSet(at + ".emptyDir"):
			p.fail(at+".onDelete", "requires", "an emptyDir goes with its pod: leave it out")
		}
	}
}

// oneNode refuses a volume that pods of several nodes cannot share. An environment of one node may set it.
func oneNode(p *Problems, storage []job.Storage, replicas int32) {
	for i := range storage {
		at, d := fmt.Sprintf("spec.storage[%d].dynamic.accessMode", i), storage[i].Dynamic
		if d != nil && d.AccessMode == "ReadWriteOnce" && replicas > 1 && p.IsSet(at) {
			p.fail(at, "requires", "ReadWriteOnce serves the pods of one node, and there are %d workers: use "+
				"ReadWriteMany", replicas)
		}
	}
}

// provisioned refuses settings of Amazon's file systems that their drivers choose or reject.
func provisioned(p *Problems, storage []job.Storage) {
	for i := range storage {
		at, e, f := fmt.Sprintf("spec.storage[%d]", i), storage[i].EFS, storage[i].FSx
		if e != nil && e.Provision != nil {
			if e.AccessPoint+e.Path+e.Volume != "" {
				p.fail(at+".efs.provision", "one-of",
					"the driver makes the access point and the volume: leave out accessPoint, path and volume")
			}
			if n := e.Provision; n.GIDRangeStart > n.GIDRangeEnd || (n.GIDRangeStart == 0) != (n.GIDRangeEnd == 0) {
				p.fail(at+".efs.provision.gidRangeEnd", "order",
					"gidRangeStart and gidRangeEnd belong together, the start not above the end")
			}
		}
		switch {
		case f == nil:
		case f.Provision == nil && (f.FileSystem == "" || f.DNSName == "" || f.MountName == ""):
			p.fail(at+".fsx", "requires",
				"needs fileSystem, dnsName and mountName of a file system, or provision for a new one")
		case f.Provision != nil && f.FileSystem+f.DNSName+f.MountName+f.Volume != "":
			p.fail(at+".fsx.provision", "one-of",
				"the driver makes the file system: leave out fileSystem, dnsName, mountName and volume")
		}
	}
}

// foreignArchive is an archive of a kind that the fetching image cannot unpack.
var foreignArchive = lazy.Regexp(`(?i)\.(tar\.(xz|zst|lz4?)|txz|tzst|7z|rar|xz|zst)([?#].*)?$`)

// datasets refuses data that the workers could not read, or that nobody could fetch.
func datasets(p *Problems, storage []job.Storage) {
	for i := range storage {
		v := &storage[i]
		at := fmt.Sprintf("spec.storage[%d]", i)
		switch {
		case v.Dataset == nil:
		case !v.Shared():
			p.fail(at+".dataset", "requires",
				"an emptyDir is private to each pod: a dataset needs a volume that all workers share")
		case v.Dataset.Unpack && foreignArchive().MatchString(v.Dataset.URL):
			p.fail(at+".dataset.url", "format",
				"cannot be unpacked: give a .zip, .tar, .tar.gz or .tar.bz2, or set unpack: false")
		case v.Dynamic != nil && v.Dynamic.AccessMode == "ReadOnlyMany":
			p.fail(at+".dataset", "requires", "cannot be fetched into a claim with accessMode ReadOnlyMany")
		}
	}
}

// checkpoint refuses a directory whose files are lost with the pod, or that takes none.
func checkpoint(p *Problems, c *job.Checkpoint, on *job.Storage) {
	if c == nil {
		return
	}
	switch dir := path.Clean(c.Path); {
	case on == nil:
		p.fail("spec.checkpoint.path", "requires",
			"%s is on no volume of spec.storage and would be lost with the pod: name a directory below a mountPath",
			dir)
	case !on.Shared():
		p.fail("spec.checkpoint.path", "requires", "%s is on the emptyDir %q, which is lost with the pod", dir, on.Name)
	case on.ReadOnly:
		p.fail("spec.checkpoint.path", "requires", "%s is on the volume %q, which is mounted read-only", dir, on.Name)
	}
}
