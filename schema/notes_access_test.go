package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestOpenStoreNotes: a store that only a NetworkPolicy keeps others from is noted where the job has none.
func TestOpenStoreNotes(t *testing.T) {
	const host = "network: {host: true}, "
	const off, image = "network: {policy: false}, ", "images: {rendezvous: 'a/tegen-rendezvous:1'}, "
	for spec, want := range map[string]string{
		off:                                 "worker 0 on port 29400",
		off + "rendezvous: {port: 12345}, ": "worker 0 on port 12345",
		off + image:                         "the companion on port 29400",
		off + image + "rendezvous: {backend: etcd}, ":            "the companion on port 2379",
		off + "rendezvous: {backend: etcd-v2, store: etcd}, ":    "the etcd on port 2379",
		off + image + "rendezvous: {proxy: true, store: etcd}, ": "",
		off + "target: pytorchjob, ":                             "worker 0 on port 29400",
		host:                                                     "worker 0 on port 29400",
		"":                                                       "",
		off + "rendezvous: {backend: etcd-v2, store: etcd, etcd: {tls: {secret: s}}}, ": "",
		off + image + "rendezvous: {companion: {storage: {size: 1Gi}}}, ":               "",
		off + "rendezvous: {backend: etcd, store: external, endpoint: 'etcd:2379'}, ":   "",
		off + "launcher: none, ":     "",
		off + "framework: horovod, ": "",
		// allowFrom may open the port.
		"network: {allowFrom: [{namespace: x, ports: [6006, 29400]}]}, ": "spec.network.allowFrom[0].ports: port 29400",
		"network: {allowFrom: [{namespace: y, ports: [6006]}, {cidr: 10.0.0.0/8, ports: [1234]}]}, " +
			"rendezvous: {port: 1234}, ": "spec.network.allowFrom[1].ports: port 1234",
		"network: {allowFrom: [{namespace: x, ports: [29400]}]}, rendezvous: {port: 1234}, ": "",
		// It opens ports of the workers alone.
		"network: {allowFrom: [{namespace: x, ports: [29400]}]}, " + image:         "",
		"network: {allowFrom: [{namespace: x, ports: [29400]}]}, launcher: none, ": "",

		// On the network of the node are the stores of torch's processes, and of proxies.
		host + image: "the training processes",
		host + image + "rendezvous: {companion: {storage: {size: 1Gi}}}, ":                "127.0.0.1 of its node",
		host + image + "rendezvous: {proxy: true, store: etcd}, ":                         "127.0.0.1 of its node",
		host + image + "rendezvous: {proxy: true, store: external, endpoint: 'e:2379'}, ": "127.0.0.1 of its node",
		host + "rendezvous: {backend: etcd, store: external, endpoint: 'e:2379'}, ":       "the training processes",
		host + "rendezvous: {backend: etcd-v2, store: etcd}, images: {etcdV2: a:3.5}, ":   "the training processes",
		host + "launcher: none, ": "",
	} {
		var notes []string
		for _, note := range note.Of(loadOne(t, jobHead+spec+"workers: {replicas: 2}}\n")) {
			if strings.HasPrefix(note, "spec.network") {
				notes = append(notes, note)
			}
		}
		got := strings.Join(notes, "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) ||
			want != "" && !strings.Contains(got, "code execution") {
			t.Errorf("%s: notes %q, want %q", spec, got, want)
		}
	}
}
