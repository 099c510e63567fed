package importer_test

import "testing"

// proxiedJob is a Job of two workers that a proxy starts, by a program that the pod brings in or not.
func proxiedJob(brought, words, env string) string {
	install := ""
	if brought != "" {
		install = "initContainers: [{name: install-launcher, image: '" + brought + "'}], "
	}
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, completions: 2, " +
		"parallelism: 2, template: {spec: {restartPolicy: Never, " + install +
		"containers: [{name: w, image: 'a/b:1', command: [" + words + "], env: [{name: X, value: x}" + env + "]}]}}}\n"
}

// TestProxy: what a proxy starts is read as if it stood alone, and the store is the proxy's.
func TestProxy(t *testing.T) {
	t.Parallel()
	const (
		image     = "r/tegen-rendezvous:1"
		start     = "/tegen/bin/tegen-rendezvous, proxy, "
		torchrun  = "torchrun, --nnodes=2, --rdzv-backend=c10d, --rdzv-id=a, --rdzv-endpoint=etcd.infra:2379, t.py"
		variables = ", {name: PET_RDZV_ID, value: a}, {name: PET_RDZV_BACKEND, value: c10d}, " +
			"{name: PET_RDZV_ENDPOINT, value: 'etcd.infra:2379'}, {name: PET_NNODES, value: '2'}"
	)
	for name, c := range map[string]claim{
		"torchrun's own options": {
			in: proxiedJob(image, start+"--, "+torchrun, ""),
			jobs: []string{
				`proxy: true`, `endpoint: etcd\.infra:2379`, `store: external`, `rendezvous: ` + image,
				`command:\n +- torchrun\n +- t\.py`,
			},
			unreported: []string{"command.*dropped", "initContainers.*dropped"}, lossy: true, // the Job's name
		},
		"the proxy's own etcd": {
			in:   proxiedJob(image, start+"'--endpoints=other:2379', '--user=me', "+torchrun, ""),
			jobs: []string{`proxy: true`, `endpoint: other:2379`, `conf:\n +user: me`},
			// which the source lacks too
			invalid: true, lossy: true, reported: []string{"a proxy needs the user's password"},
		},
		"two dollar signs for one": {
			in: proxiedJob(image, start+"'--user=a$$b', --, torchrun, t.py", variables+
				", {name: PET_RDZV_CONF, value: 'x=$$$$'}, {name: TEGEN_RENDEZVOUS_PASSWORD, value: p}"),
			jobs:  []string{`conf:\n +user: a\$b\n +x: \$\$\n`},
			lossy: true,
		},
		"more than a job says": {
			in:       proxiedJob(image, start+"'--prefix=/mine', --, torchrun, t.py", variables),
			jobs:     []string{`launcher: entrypoint`, `--prefix=/mine`, `endpoint: etcd\.infra:2379`},
			reported: []string{`--prefix=/mine of /tegen/bin/tegen-rendezvous has no field`},
			silent:   []string{"proxy: true"}, lossy: true,
		},
		"a program of the image's": {
			in:       proxiedJob("", "tegen-rendezvous, proxy, --, "+torchrun, ""),
			jobs:     []string{`proxy: true`},
			reported: []string{`tegen-rendezvous is the image's own: spec.images.rendezvous`},
			invalid:  true, lossy: true, // nobody has named that image
		},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}
