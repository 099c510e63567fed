//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/test/tegen"
)

// tutorial is what the launcher of the torchelastic tutorial's image makes of its environment. It is older than
// torchrun: it reads these names and no PET_ (examples/imagenet/main.py of pytorch/elastic at f8d2b6b).
type tutorial struct{ endpoint, id, least, most string }

func readAsTutorial(env []renderedVariable) tutorial {
	get := func(name, otherwise string) string {
		for _, v := range env {
			if v.Name == name {
				return v.Value
			}
		}
		return otherwise
	}
	size := get("SIZE", "1")
	return tutorial{
		endpoint: get("RDZV_ENDPOINT", "localhost:2379"), id: get("JOB_ID", "torchelastic_imagenet_example"),
		least: get("MIN_SIZE", size), most: get("MAX_SIZE", size),
	}
}

// url is how it names the rendezvous, and what the tutorial prints of it.
func (r tutorial) url() string {
	return "etcd://" + r.endpoint + "/" + r.id + "?min_workers=" + r.least + "&max_workers=" + r.most +
		"&last_call_timeout=5"
}

// TestRenderedTutorial: every worker with the image's own entrypoint gets the rendezvous under the names that it
// reads.
func TestRenderedTutorial(t *testing.T) {
	for fixture, want := range map[string]string{
		"imagenet":      "etcd://etcd:2379/imagenet?min_workers=1&max_workers=3&last_call_timeout=5",
		"classy-vision": "etcd://etcd:2379/classy-vision-2?min_workers=1&max_workers=3&last_call_timeout=5",
		"companion-pods": "etcd://imagenet-companion-rendezvous:2379/imagenet-companion" +
			"?min_workers=1&max_workers=3&last_call_timeout=5",
	} {
		workers := 0
		for _, pod := range renderedPods(t, tegen.Render(t, fixture)) {
			for _, c := range pod.Containers {
				if !strings.HasPrefix(c.Image, "torchelastic/examples:") {
					continue
				}
				workers++
				if got := readAsTutorial(c.Env).url(); got != want {
					t.Errorf("%s: the image meets at %s, want %s", fixture, got, want)
				}
			}
		}
		if workers != 2 {
			t.Errorf("%s: %d workers, want the tutorial's 2", fixture, workers)
		}
	}
}
