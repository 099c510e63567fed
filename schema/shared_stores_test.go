package schema

import (
	"fmt"
	"strings"
	"testing"
)

const passwordEnv = "  env: [{name: TEGEN_RENDEZVOUS_PASSWORD, secret: {name: s, key: k}}]\n"

// sharing is a job with a rendezvous that another job may share.
func sharing(name, namespace, rendezvous string) string {
	return "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name + ", namespace: " +
		namespace + "}\nspec:\n  image: a/b:1\n  command: [python, t.py]\n  workers: {replicas: 2}\n" +
		"  images: {rendezvous: 'a/tegen-rendezvous:1'}\n" +
		passwordEnv + "  rendezvous: {" + rendezvous + "}\n"
}

// TestSharedStores: no two namespaces share a store that whoever reaches it may write to; jobs of one do.
func TestSharedStores(t *testing.T) {
	external := func(endpoint, more string) string {
		return "store: external, endpoint: '" + endpoint + "', " + more
	}
	etcd := func(endpoint string) string { return external(endpoint, "backend: etcd") }
	login := func(endpoint, user string) string {
		return external(endpoint, "proxy: true, conf: {user: "+user+"}")
	}
	behind := func(endpoints, more string) string {
		return "store: companion, companion: {etcd: {endpoints: ['" + strings.ReplaceAll(endpoints, ",", "','") + "']" +
			more + "}}"
	}
	const shared, password = "tegen-rendezvous.tegen-rendezvous.svc", ", password: {name: s, key: k}"
	const atEndpoint, atCompanion = "spec.rendezvous.endpoint", "spec.rendezvous.companion.etcd.endpoints[0]"
	for _, c := range []struct {
		namespace, first, second string
		want                     string // the field of the second job that is refused
	}{
		{"other", etcd(shared + ":2379"), etcd(shared + ":2379"), atEndpoint},
		{"other", etcd(shared + ":2379"), etcd(shared + ".cluster.local:2379"), atEndpoint},
		{"other", external("s.ops:29400", "proxy: true"), external("s.ops.svc:29400", "proxy: true"), atEndpoint},
		{"other", etcd("etcd.example.org:2379"), etcd("etcd.example.org:2379"), atEndpoint},
		{"other", etcd("10.0.0.1:2379"), etcd("10.0.0.1:2379"), atEndpoint},
		{"other", etcd("store:2379"), etcd("store.ml:2379"), atEndpoint}, // the Service of the first one's namespace
		{"ml", etcd(shared + ":2379"), etcd(shared + ":2379"), ""},
		{"other", etcd("store:2379"), etcd("store:2379"), ""}, // one in each namespace
		{"other", etcd(shared + ":2379"), etcd(shared + ":29400"), ""},
		{"other", etcd("etcd.example.org:2379"), etcd("etcd.example.com:2379"), ""},
		{"other", login("etcd.ops:2379", "a"), login("etcd.ops:2379", "b"), ""}, // whose rights the etcd knows
		{"other", login("etcd.ops:2379", "a"), login("etcd.ops:2379", "a"), atEndpoint},
		// Agents of backend etcd do not log in.
		{
			"other", external("e.example.org:2379", "backend: etcd, conf: {user: a}"),
			external("e.example.org:2379", "backend: etcd, conf: {user: b}"), atEndpoint,
		},

		// A companion gives its clients the keys of all jobs in its etcd.
		{"other", behind("http://e.ops.svc:2379", ""), behind("http://e.ops.svc:2379", ""), atCompanion},
		{
			"other", behind("http://e-1.ops:2379,http://e-0.ops:2379", ""),
			behind("http://e-0.ops.svc:2379,http://e-2.ops:2379", ""), atCompanion,
		},
		{
			"other", external("e.ops:2379", "proxy: true"), behind("http://e.ops.svc:2379", ""), atCompanion,
		},
		{"ml", behind("http://e.ops.svc:2379", ""), behind("http://e.ops.svc:2379", ""), ""},
		{"other", behind("http://e:2379", ""), behind("http://e:2379", ""), ""},
		{
			"other", behind("http://e.ops.svc:2379", ", user: a"+password),
			behind("http://e.ops.svc:2379", ", user: b"+password), "",
		},
		{
			"other", behind("http://e.ops.svc:2379", ", user: a"+password),
			behind("http://e.ops.svc:2379", ", user: a"+password), atCompanion,
		},
		// Companions of backend etcd keep the keys of all under one name.
		{
			"other", "backend: etcd, " + behind("http://e.ops.svc:2379", ", user: a"+password),
			"backend: etcd, " + behind("http://e.ops.svc:2379", ", user: b"+password), atCompanion,
		},
	} {
		jobs := sharing("first", "ml", c.first) + "---\n" + sharing("second", c.namespace, c.second)
		for _, rendezvous := range []string{c.first, c.second} { // only a proxy with a user has a password
			if !strings.HasPrefix(rendezvous, "store: external") || !strings.Contains(rendezvous, "proxy: true, conf") {
				jobs = strings.ReplaceAll(jobs, passwordEnv, "")
			}
		}
		_, err := Load([]Source{{Name: "jobs.yaml", Data: []byte(jobs)}})
		if c.want == "" || err == nil {
			if (err != nil) != (c.want != "") {
				t.Errorf("%s, and %s in namespace %s: %v", c.first, c.second, c.namespace, err)
			}
			continue
		}
		last := fmt.Sprintf("jobs.yaml:%d:", strings.Count(jobs, "\n")) // with the rendezvous
		for _, part := range []string{last, c.want + ": ", "job ml/first", "code execution", "companion"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %v", c.second, part, err)
			}
		}
	}
}
