package intake

import (
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/schema"
)

const koordinator = "gang.scheduling.koordinator.sh/"

// isGangKey says whether a label or annotation is a gang scheduler's.
func isGangKey(key string) bool {
	for _, prefix := range []string{koordinator} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// gang reads what makes the pods of a template a gang.
func (d *draft) gang(t view) {
	annotations := t.at("metadata", "annotations")
	if name := annotations.at(koordinator + "name"); name.given() {
		d.koordinator(annotations, name)
	}
}

// koordinator reads the annotations of a Koordinator gang.
func (d *draft) koordinator(annotations, name view) {
	key := func(name string) view { return annotations.at(koordinator + name) }
	d.set("spec.gang.scheduler", schema.GangKoordinator, name)
	d.gangName(name)
	if n, err := strconv.ParseInt(key("min-available").text(), 10, 64); err == nil {
		d.set("spec.gang.minAvailable", n, key("min-available"))
	}
	d.set("spec.gang.mode", key("mode").text(), key("mode"))
	d.set("spec.gang.matchPolicy", key("match-policy").text(), key("match-policy"))
	if wait, err := time.ParseDuration(key("waiting-time").text()); err == nil {
		d.set("spec.gang.waitTimeout", span(int64(wait.Seconds())), key("waiting-time"))
	}
	if d.get("spec.placement.scheduler").text() == "koord-scheduler" {
		delete(d.get("spec.placement").mapping(), "scheduler")
	}
}

func (d *draft) gangName(name view) {
	if name.text() != d.name() {
		d.set("spec.gang.name", name.text(), name)
	}
}
