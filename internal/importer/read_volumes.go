package importer

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// scriptDir is where tegen mounts a script that is not in the image.
const scriptDir = "/tegen/script"

// volumes reads the mounts of the training container, and with each the volume that it mounts.
func (d *draft) volumes(pod, c view) {
	for _, m := range c.at("volumeMounts").items() {
		volume := pod.at("volumes").item("name", m.at("name").text())
		claim, empty := volume.at("persistentVolumeClaim", "claimName"), volume.at("emptyDir")
		where := path.Clean(m.at("mountPath").text())
		mounted := d.volume[volume.at("name").text()] != ""
		switch {
		case mounted && empty.isSet():
			// another field would be another emptyDir; podTemplate carries the mount
		case where == "/dev/shm" && empty.at("sizeLimit").isSet() && empty.at("medium").text() == "Memory":
			d.set("spec.resources.shm", empty.at("sizeLimit").text(), empty.at("sizeLimit"))
			d.volume[volume.at("name").text()] = "dshm"
		case where == "/tmp" && empty.isSet() && empty.at("medium").text() == "" && d.readTmp(empty):
			d.volume[volume.at("name").text()] = "tmp"
		case where == "/dev/shm" || where == "/tmp":
			// what no field says, podTemplate carries
		case where == scriptDir || strings.HasPrefix(where, "/tegen/"):
			// its program, or certificates: see the framework
		case d.code(pod, m, volume):
		case claim.isSet():
			d.mount(m, volume, d.stream.claim(d, claim))
		case empty.isSet():
			source := tree{}
			if v := empty.at("sizeLimit"); v.isSet() {
				source["size"] = v.text()
			}
			if v := empty.at("medium"); v.text() == "Memory" {
				source["medium"] = "Memory"
			}
			d.mount(m, volume, tree{"emptyDir": source})
		}
	}
	for field, name := range map[string]string{"shm": "dshm", "tmp": "tmp"} {
		if !slices.Contains(slices.Collect(maps.Values(d.volume)), name) {
			d.set("spec.resources."+field, job.None, c)
		}
	}
}

// readTmp reads the bound of /tmp, and says whether a field can: without one it is what the container may have of local
// disk, in each role its own, so that this must be unbounded too.
func (d *draft) readTmp(empty view) bool {
	disk := d.get("spec.resources.ephemeralStorage").text()
	if v := empty.at("sizeLimit"); v.isSet() {
		if v.text() != disk {
			d.set("spec.resources.tmp", v.text(), v)
		}
		return true
	}
	return disk == job.None
}

// mount adds an item of storage.
func (d *draft) mount(m, volume view, source tree) {
	name := d.volumeName(volume)
	d.volume[volume.at("name").text()] = name
	item := tree{"name": name, "mountPath": m.at("mountPath").text()}
	if v := m.at("subPath"); v.isSet() {
		item["subPath"] = v.text()
	}
	if m.at("readOnly").isTrue() {
		item["readOnly"] = true
	}
	for key, value := range source {
		item[key] = value
	}
	if dataset := d.stream.dataset(d, item); dataset != nil {
		item["dataset"] = dataset
	}
	d.add("spec.storage", item, m)
	d.origin["spec.storage["+strconv.Itoa(len(listOf(d.get("spec.storage").value))-1)+"].claim"] = volume
}

var shortName = lazy.Regexp(`^[a-z]([-a-z0-9]{0,10}[a-z0-9])?$`)

// volumeName keeps the pod's name for a volume where the schema allows it. The name means nothing outside of the pod.
func (d *draft) volumeName(volume view) string {
	if d.taken == nil {
		d.taken = map[string]bool{"dshm": true, "tmp": true, "tls": true, "script": true, "code": true}
	}
	name := volume.at("name").text()
	if !shortName().MatchString(name) || d.taken[name] {
		name = "data"
		for d.taken[name] {
			d.numbered++
			name = "data" + strconv.Itoa(d.numbered+1)
		}
	}
	d.taken[name] = true
	return name
}

// isPersistent says whether a directory is on a volume that pods can write and that outlives them.
func (d *draft) isPersistent(dir string) bool {
	dir = path.Clean(dir)
	best, ok := "", false
	for _, v := range d.get("spec.storage").items() {
		mount := path.Clean(v.at("mountPath").text())
		if (dir == mount || strings.HasPrefix(dir, mount+"/")) && len(mount) > len(best) {
			best, ok = mount, !v.at("emptyDir").isSet() && !v.at("readOnly").isTrue()
		}
	}
	return ok
}
