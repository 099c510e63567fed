package importer

import "slices"

// needed are fields that are written without a value only where somebody is to fill one in.
var needed = []string{
	"image", "replicas", "parallelism", "completions", "numNodes", "minReplicas", "maxReplicas", "minAvailable",
	"nprocPerNode", "nProcPerNode", "numProcPerNode", "slotsPerWorker",
}

// reportBlanks reports fields of the workload without a value that would change the job: Kubernetes takes an amount for
// 0 then, refuses an empty text, and takes its own default for other fields. Any other field without a value counts as
// absent.
func (d *draft) reportBlanks() {
	for _, o := range d.workload {
		if !o.synthetic {
			d.reportBlank(o.view(), "")
		}
	}
}

func (d *draft) reportBlank(v view, above string) {
	for _, key := range sortedKeys(v.mapping()) {
		child := v.at(key)
		amount := above == "limits" || above == "requests" || slices.Contains(needed, key)
		switch {
		case child.isSet() && (child.value != "" || !amount):
			d.reportBlank(child, key)
		case amount:
			d.note(child, Error, "has no value: put one there, or take the line out")
			d.incomplete = true
		case texts[above]:
			d.note(child, Error, "has no value: an empty text was taken")
		}
	}
	for _, item := range v.items() {
		if !item.isSet() && texts[above] {
			d.note(item, Error, "has no value: an empty text was taken")
		}
		d.reportBlank(item, above)
	}
}
