package intake

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// scriptDir is where tegen mounts a script that is not in the image.
const scriptDir = "/tegen/script"

// volumes reads the mounts of the training container, and with each the volume that it mounts.
func (d *draft) volumes(pod, c view) {
	for _, m := range c.at("volumeMounts").items() {
		volume := pod.at("volumes").item("name", m.at("name").text())
		claim, empty := volume.at("persistentVolumeClaim", "claimName"), volume.at("emptyDir")
		where := path.Clean(m.at("mountPath").text())
		switch {
		case where == "/dev/shm" && empty.given():
			d.shm(empty, c)
			d.volume[volume.at("name").text()] = "dshm"
		case where == "/tmp" && empty.given():
			d.volume[volume.at("name").text()] = "tmp"
		case where == "/dev/shm" || where == "/tmp":
			// tegen mounts its own; what is asked for instead, podTemplate carries
		case where == scriptDir || strings.HasPrefix(where, "/tegen/"):
			// its program, or certificates: see the framework
		case claim.given():
			d.mount(m, volume, d.stream.claim(d, claim))
		case empty.given():
			source := tree{}
			if v := empty.at("sizeLimit"); v.given() {
				source["size"] = v.text()
			}
			if v := empty.at("medium"); v.text() == "Memory" {
				source["medium"] = "Memory"
			}
			d.mount(m, volume, tree{"emptyDir": source})
		}
	}
}

// shm is bounded by the container's memory where nobody bounds it, since it counts against that.
func (d *draft) shm(empty, c view) {
	v := empty.at("sizeLimit")
	if !v.given() {
		v = c.at("resources", "limits", "memory")
	}
	d.set("spec.resources.shm", v.text(), v)
}

// What schema/defaults.cue gives a worker.
var (
	usualMemory = resource.MustParse("4Gi")
	usualDisk   = resource.MustParse("10Gi")
)

// room raises what a worker may take where the input bounds it nowhere, and what its volumes take is above the default,
// so that a sound job stays one: memory for those in memory and the program beside them, or ephemeral storage.
func (d *draft) room(c view) {
	memory, disk := quantity(d.get("spec.resources.shm")), resource.Quantity{}
	for _, v := range d.get("spec.storage").items() {
		if size := quantity(v.at("emptyDir", "size")); v.at("emptyDir", "medium").given() {
			memory.Add(size)
		} else {
			disk.Add(size)
		}
	}
	if !d.get("spec.resources.memory").given() && memory.Cmp(usualMemory) > 0 {
		memory.Add(usualMemory)
		d.set("spec.resources.memory", memory.String(), c.at("volumeMounts"))
	}
	if !d.get("spec.resources.ephemeralStorage").given() && disk.Cmp(usualDisk) > 0 {
		d.set("spec.resources.ephemeralStorage", disk.String(), c.at("volumeMounts"))
	}
}

// quantity is none where a text is no amount, which is told elsewhere.
func quantity(v view) resource.Quantity {
	q, err := resource.ParseQuantity(v.text())
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// mount adds an item of storage.
func (d *draft) mount(m, volume view, source tree) {
	name := d.volumeName(volume)
	d.volume[volume.at("name").text()] = name
	item := tree{"name": name, "mountPath": m.at("mountPath").text()}
	if v := m.at("subPath"); v.given() {
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
	d.origin["spec.storage["+strconv.Itoa(len(d.get("spec.storage").items())-1)+"].claim"] = volume
}

var shortName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,10}[a-z0-9])?$`)

// volumeName keeps the pod's name for a volume where the schema can; it is known to nobody outside of the pod.
func (d *draft) volumeName(volume view) string {
	taken := map[string]bool{"dshm": true, "tmp": true, "tls": true, "script": true}
	for _, v := range d.get("spec.storage").items() {
		taken[v.at("name").text()] = true
	}
	name := volume.at("name").text()
	if shortName.MatchString(name) && !taken[name] {
		return name
	}
	name = "data"
	for i := 2; taken[name]; i++ {
		name = "data" + strconv.Itoa(i)
	}
	return name
}

// outlives says whether a directory is on a volume that pods can write and that outlives them.
func (d *draft) outlives(dir string) bool {
	dir = path.Clean(dir)
	best, ok := "", false
	for _, v := range d.get("spec.storage").items() {
		mount := path.Clean(v.at("mountPath").text())
		if (dir == mount || strings.HasPrefix(dir, mount+"/")) && len(mount) > len(best) {
			best, ok = mount, !v.at("emptyDir").given() && !v.at("readOnly").isTrue()
		}
	}
	return ok
}
