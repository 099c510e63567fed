package schema

import (
	"strings"
	"testing"
)

// TestOpenStoreNotes: a store that only a NetworkPolicy keeps others from is noted where the job has none.
func TestOpenStoreNotes(t *testing.T) {
	const off, image = "network: {policy: false}, ", "images: {rendezvous: 'a/tegen-rendezvous:1'}, "
	for spec, want := range map[string]string{
		off:                                 "worker 0 on port 29400",
		off + "rendezvous: {port: 12345}, ": "worker 0 on port 12345",
		off + image:                         "the companion on port 29400",
		off + image + "rendezvous: {backend: etcd}, ":              "the companion on port 2379",
		off + "rendezvous: {backend: etcd-v2, store: etcd}, ":      "the etcd on port 2379",
		off + image + "rendezvous: {proxy: true, store: etcd}, ":   "the etcd on port 2379",
		off + "target: pytorchjob, ":                               "worker 0 on port 29400",
		"network: {host: true}, ":                                  "worker 0 on port 29400",
		"":                                                         "",
		"network: {allowFrom: [{namespace: x, ports: [29400]}]}, ": "29400 is the port of the rendezvous, worker 0",
		"network: {allowFrom: [{namespace: x, ports: [8080]}]}, ":  "",
		"network: {allowFrom: [{namespace: x, ports: [29400]}]}, " + image +
			"rendezvous: {companion: {storage: {size: 1Gi}}}, ": "",
		off + "rendezvous: {backend: etcd-v2, store: etcd, etcd: {tls: {secret: s}}}, ": "",
		off + image + "rendezvous: {companion: {storage: {size: 1Gi}}}, ":               "",
		off + "rendezvous: {backend: etcd, store: external, endpoint: 'etcd:2379'}, ":   "",
		off + "launcher: none, ":          "",
		off + "framework: horovod, ":      "",
		"network: {host: true}, " + image: "",
		"network: {host: true}, " + image + "rendezvous: {companion: {storage: {size: 1Gi}}}, ":         "on 127.0.0.1",
		"network: {host: true}, rendezvous: {backend: etcd-v2, store: etcd}, images: {etcdV2: a:3.5}, ": "",
	} {
		var notes []string
		for _, note := range loadOne(t, jobHead+spec+"workers: {replicas: 2}}\n").Notes() {
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

// TestSharedStores: no two namespaces share a store that whoever reaches it may write to; jobs of one do.
func TestSharedStores(t *testing.T) {
	const password = "  env: [{name: TEGEN_RENDEZVOUS_PASSWORD, secret: {name: s, key: k}}]\n"
	const etcd, user = "backend: etcd, store: external, ", "proxy: true, store: external, conf: {user: NAME}, "
	with := func(name, namespace, rendezvous, endpoint string) string {
		return "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name + ", namespace: " +
			namespace + "}\nspec:\n  image: a/b:1\n  command: [python, t.py]\n  workers: {replicas: 2}\n" +
			"  images: {rendezvous: 'a/tegen-rendezvous:1'}\n" +
			password +
			"  rendezvous: {" + strings.TrimSuffix(strings.ReplaceAll(rendezvous, "NAME", name)+"endpoint: '"+endpoint+
			"'", "endpoint: ''") + "}\n"
	}
	before := func(address, more string) string {
		return "proxy: true, store: companion, companion: {etcd: {endpoints: ['http://" + address + "']" + more + "}}, "
	}
	const shared = "tegen-rendezvous.tegen-rendezvous.svc"
	for _, c := range []struct {
		namespace, first, second string
		rendezvous               string
		want                     bool
	}{
		{"other", shared + ":2379", shared + ":2379", etcd, true},
		{"other", shared + ":2379", shared + ".cluster.local:2379", etcd, true},
		{"other", "store.ops:29400", "store.ops.svc:29400", "proxy: true, store: external, ", true},
		{"other", "etcd.example.org:2379", "etcd.example.org:2379", etcd, true},
		{"other", "10.0.0.1:2379", "10.0.0.1:2379", etcd, true},
		{"other", "store:2379", "store.ml:2379", etcd, true}, // the Service of the first one's namespace
		{"ml", shared + ":2379", shared + ":2379", etcd, false},
		{"other", "store:2379", "store:2379", etcd, false}, // one in each namespace
		{"other", shared + ":2379", shared + ":29400", etcd, false},
		{"other", "etcd.example.org:2379", "etcd.example.com:2379", etcd, false},
		{"other", "etcd.example.org:2379", "etcd.example.org:2379", user, false}, // whose rights the etcd knows
		// Companions before one etcd, with which whoever is a client of one may write to the runs of the other.
		{"other", "", "", before("etcd.example.org:2379", ""), true},
		{"ml", "", "", before("etcd.example.org:2379", ""), false},
		{"other", "", "", before("etcd.example.org:2379", ", user: NAME, password: {name: s, key: k}"), false},
		// Agents of backend etcd do not log in.
		{"other", "etcd.example.org:2379", "etcd.example.org:2379", etcd + "conf: {user: NAME}, ", true},
	} {
		first := with("first", "ml", c.rendezvous, c.first)
		if c.rendezvous != user {
			first = strings.Replace(first, password, "", 1)
		}
		second := strings.NewReplacer("name: first", "name: second", "namespace: ml", "namespace: "+c.namespace,
			"'"+c.first+"'", "'"+c.second+"'", "user: first", "user: second").Replace(first)
		_, err := Load([]Source{{Name: "jobs.yaml", Data: []byte(first + "---\n" + second)}})
		if (err != nil) != c.want {
			t.Errorf("%s and %s in namespace %s: %v", c.first, c.second, c.namespace, err)
			continue
		}
		if err == nil {
			continue
		}
		for _, part := range []string{
			"jobs.yaml:19:", "spec.rendezvous.", c.second, "job ml/first", "code execution", "companion",
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %v", c.second, part, err)
			}
		}
	}
}
