package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestProxies: torchrun starts behind a proxy where the job says so, or an environment speaks of its kind.
func TestProxies(t *testing.T) {
	const (
		image = ", images: {rendezvous: 'r:1'}"
		env   = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: " +
			"{images: {rendezvous: 'r:1'}, rendezvous: {proxy: true, store: external, endpoint: 'e.x:2379'}}}\n"
		alone = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: " +
			"{images: {rendezvous: 'r:1'}, rendezvous: {proxy: true}}}\n"
	)
	for text, want := range map[string]bool{
		"workers: {replicas: 2}" + image + "}\n":                                                                 false,
		"workers: {replicas: 2}, rendezvous: {store: etcd, proxy: true}" + image + "}\n":                         true,
		"workers: {replicas: 2}, rendezvous: {backend: etcd, store: etcd}" + image + "}\n":                       false,
		"workers: {replicas: 2}, rendezvous: {companion: {storage: {size: 1Gi}}}" + image + "}\n":                true,
		"workers: {replicas: 1}, rendezvous: {companion: {storage: {size: 1Gi}}}" + image + "}\n":                true,
		"workers: {replicas: 2}, rendezvous: {companion: {name: meet}}" + image + "}\n":                          false,
		"workers: {replicas: 2}, rendezvous: {companion: {etcd: {endpoints: ['http://e:1']}}}" + image + "}\n":   true,
		"workers: {replicas: 2}, rendezvous: {backend: etcd, companion: {storage: {size: 1Gi}}}" + image + "}\n": false,
		"workers: {replicas: 2}}\n" + env:                                                                        true,
		"workers: {replicas: 2}, rendezvous: {proxy: false}}\n" + env:                                            false,
		"workers: {replicas: 2}, rendezvous: {backend: etcd}}\n" + env:                                           false,
		"workers: {replicas: 1}}\n" + alone:                                                                      false,
		"launcher: none, workers: {replicas: 2}}\n" + alone:                                                      false,
		"target: trainjob, workers: {replicas: 2}}\n" + env:                                                      false,
		"framework: horovod, workers: {replicas: 2}}\n" + env:                                                    false,
		"target: elasticjob, workers: {replicas: 2}, rendezvous: {backend: etcd}}\n" + env:                       false,
		"workers: {replicas: 2}, rendezvous: {store: external, endpoint: 'c.x:29400'}" + image + "}\n":           false,
	} {
		if got := loadOne(t, jobHead+text).Spec.Proxied(); got != want {
			t.Errorf("%s: proxied %t", text, got)
		}
	}
}

// TestProxyNotes: with a proxy no loss of a store costs agents, and a command without torchrun in sight is spoken of.
func TestProxyNotes(t *testing.T) {
	const image = ", images: {rendezvous: 'r:1'}}\n"
	for text, want := range map[string]string{
		"workers: {replicas: 8}" + image:                                                       "waits behind a proxy",
		"workers: {replicas: 8}, launcher: entrypoint, args: [x]" + image:                      "entrypoint into",
		"workers: {replicas: 8}, rendezvous: {store: etcd, proxy: true}" + image:               "",
		"workers: {replicas: 8}, target: pods, rendezvous: {store: etcd, proxy: true}" + image: "",
		"workers: {replicas: 8}, rendezvous: {store: etcd, proxy: true, keepAlive: 9s}" +
			image: "8s of silence",
		"workers: {replicas: 2}, launcher: entrypoint, rendezvous: {store: etcd, proxy: true}" + image: "the command " +
			"shows no torchrun",
	} {
		head := jobHead
		if strings.Contains(text, "args:") {
			head = strings.Replace(head, "command: [python, train.py], ", "", 1)
		}
		notes := strings.Join(slices.DeleteFunc(note.Of(loadOne(t, head+text)), func(note string) bool {
			return !strings.HasPrefix(note, "spec.rendezvous") && !strings.HasPrefix(note, "spec.failure.restarts:")
		}), "\n")
		if want == "" && notes != "" || !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q, want %q", text, notes, want)
		}
	}
}
