package schema

import "k8s.io/apimachinery/pkg/api/resource"

// printed is the local disk of what a store prints, and of the log that it writes before its data.
const printed = "1Gi"

// EtcdDisk is the local disk that a member of the rendered etcd needs: for its database with its log and snapshots, or
// only for what it prints.
func (s *Spec) EtcdDisk() resource.Quantity {
	disk, e := resource.MustParse(printed), &s.Rendezvous.Etcd
	if e.Storage == nil {
		disk.Add(e.Quota)
	}
	return disk
}

// CompanionDisk is the local disk that a pod of the companion needs: for its store with its log and snapshots, or only
// for what it prints.
func (s *Spec) CompanionDisk() resource.Quantity {
	disk := resource.MustParse(printed)
	if !s.storesInCompanion() {
		return disk
	}
	// The store's file, of which there are two for as long as one is written anew, and its log; the file's limit is the
	// memory, and at least 512Mi. 14,000 swaps of 43 kB took 168 MiB of disk and 280 MiB of memory at most
	// (rendezvous/bench/README.md).
	twice := s.CompanionMemory()
	if twice.Add(s.CompanionMemory()); disk.Cmp(twice) < 0 {
		return twice
	}
	return disk
}

// storesInCompanion says whether a companion writes a store to the disk of its pod.
func (s *Spec) storesInCompanion() bool {
	z := &s.Rendezvous
	return z.Store == StoreCompanion && z.Backend != BackendC10d && z.Companion.Etcd == nil &&
		z.Companion.Storage == nil
}

// UsualCompanionMemory is the default of roles.companion.resources.memory in defaults.cue.
const UsualCompanionMemory = "512Mi"

// CompanionMemory is the memory that a companion may have; where its author wants no limit, what it asks for or the
// usual one, whichever is more.
func (s *Spec) CompanionMemory() resource.Quantity {
	own := &s.Roles.Companion.Resources
	if limit := own.MemoryLimit(); limit != nil {
		return *limit
	}
	memory := resource.MustParse(UsualCompanionMemory)
	if asked := own.amount(own.Requests, resourceMemory); asked != nil && asked.Cmp(memory) > 0 {
		return *asked
	}
	return memory
}

// leastVolume is the smallest volume of a store: a companion has two files of its log of 16Mi each, and accepts writes
// while 48Mi are free; an etcd has two files of 64Mi. The database comes on top, and the file system takes a part.
const leastVolume = "256Mi"

// storeVolumes refuses a volume on which a store would start and then accept no write.
func (r *validation) storeVolumes() {
	z, least := &r.Spec.Rendezvous, resource.MustParse(leastVolume)
	for at, v := range map[string]*EtcdStorage{"companion": z.Companion.Storage, "etcd": z.Etcd.Storage} {
		if v != nil && v.Size.Cmp(least) < 0 {
			r.fail("spec.rendezvous."+at+".storage.size", "range", "%s is below the minimum of %s: the store's log "+
				"and database would not fit, and it would refuse writes. Use 1Gi", &v.Size, leastVolume)
		}
	}
}

// storeDisks refuses less local disk than a store fills: its pod would be evicted, and the run of all with it.
func (r *validation) storeDisks() {
	s := &r.Spec
	switch {
	case s.Rendezvous.Store == StoreEtcd && s.Rendezvous.Etcd.Storage == nil:
		r.storeDisk(RoleEtcd, s.EtcdDisk(), "spec.rendezvous.etcd.quota for its database, and "+printed+" for its log",
			"lower the quota")
	case s.storesInCompanion():
		r.storeDisk(RoleCompanion, s.CompanionDisk(),
			"its store, two files of up to its memory, and at least 1Gi with its log and what it prints",
			"set spec.rendezvous.companion.storage")
	}
}

func (r *validation) storeDisk(role string, needs resource.Quantity, what, otherwise string) {
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
