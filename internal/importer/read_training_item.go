package importer

import (
	"slices"
	"strings"
)

// trainingNames are what the item that trains is called, alone or at the end of its name.
var trainingNames = []string{"worker", "workers", "node", "nodes", "trainer", "trainers"}

// trainingIndex is the item of a list of pods' templates that trains: by its name, by its launcher, by the most
// accelerators in all of its pods, or the first.
func trainingIndex(items []view) int {
	for _, ends := range []bool{false, true} {
		for _, name := range trainingNames {
			is := func(item view) bool {
				own := strings.ToLower(item.at("name").text())
				return own == name || ends && strings.HasSuffix(own, name)
			}
			if i := slices.IndexFunc(items, is); i >= 0 {
				return i
			}
		}
	}
	launches := func(item view) bool { return newProgram(trainingContainer(podOf(item))).launcher != "" }
	if i := slices.IndexFunc(items, launches); i >= 0 {
		return i
	}
	most := 0
	for i, item := range items {
		if accelerators(item) > accelerators(items[most]) {
			most = i
		}
	}
	return most
}

// podOf is the pod of an item: of a task, or of a Job in it.
func podOf(item view) view {
	if job := item.at("template", "spec", "template"); job.isSet() {
		return job.at("spec")
	}
	return item.at("template", "spec")
}

// accelerators are those of all pods of an item.
func accelerators(item view) int64 {
	c := trainingContainer(podOf(item))
	all, _ := c.at("resources", "limits", gpuOf(c)).number()
	return all * podsOf(item)
}

// podsOf is how many pods an item has.
func podsOf(item view) int64 {
	all := int64(1)
	for _, v := range []view{item.at("replicas"), item.at("template", "spec", "parallelism")} {
		if n, ok := v.number(); ok {
			all *= n
		}
	}
	return all
}

func trainingContainer(pod view) view {
	c := trainingContainerIn(pod.mapping())
	for _, item := range pod.at("containers").items() {
		if c != nil && item.at("name").text() == c["name"] {
			return item
		}
	}
	return pod.at("containers")
}

// containerNames are what targets call the training container.
var containerNames = []string{
	"worker", "pytorch", "mxnet", "node", "elasticjob-worker", "mpi-launcher", "launcher",
	"elastic-trainer-worker", "main", "trainer",
}

// trainingContainerIn is the container of a pod that trains: by its name, by its accelerators, or the first.
func trainingContainerIn(pod tree) tree {
	list, _ := pod["containers"].([]any)
	containers := make([]tree, 0, len(list))
	for _, item := range list {
		if c, ok := item.(tree); ok {
			containers = append(containers, c)
		}
	}
	for _, name := range containerNames {
		if i := slices.IndexFunc(containers, func(c tree) bool { return c["name"] == name }); i >= 0 {
			return containers[i]
		}
	}
	for _, c := range containers {
		if gpuOf(view{value: c}) != "" {
			return c
		}
	}
	if len(containers) == 0 {
		return nil
	}
	return containers[0]
}
