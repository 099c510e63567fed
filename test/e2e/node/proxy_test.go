package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// stores is where the companions of the jobs behind proxies are placed, and nobody else.
const stores = "stores"

// proxied is a job whose torchruns are behind proxies, and whose companion is on a node of the pool of stores. Default
// tolerations have a pod given up five minutes after its node is lost, so that who is lost there stays lost.
const proxied = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: NAME, namespace: training}
spec:
  image: ghcr.io/acme/resnet:1.4.0
  command: [python, train.py]
  workers: {min: 1, max: 2}
  resources: {cpu: 100m, memory: 512Mi, shm: 64Mi, ephemeralStorage: 1Gi}
  rendezvous:
    lastCall: 5s
    maxRestarts: 10
    companion: COMPANION
  roles:
    companion:
      resources: {cpu: 100m, memory: 256Mi}
      nodeSelector: {pool: stores}
      tolerations: [{key: pool, operator: Equal, value: stores, effect: NoSchedule}]
  storage:
    - {mountPath: /checkpoints, dynamic: {size: 1Gi, storageClass: standard}}
  checkpoint: {path: /checkpoints/NAME}
  failure: {restartsPerWorker: 10}
  gracePeriod: 10s
  images: {rendezvous: ghcr.io/acme/tegen-rendezvous:1.0.0}
`

// sharedEtcd is what two companions keep a job's keys in. It has the job's labels, and so is deleted with it.
const sharedEtcd = `apiVersion: v1
kind: Service
metadata: {name: NAME-etcd, namespace: training, labels: {app.kubernetes.io/instance: NAME, tegen.dev/job: NAME}}
spec: {clusterIP: None, selector: {etcd: NAME}, ports: [{port: 2379}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: NAME-etcd
  namespace: training
  labels: {app.kubernetes.io/instance: NAME, tegen.dev/job: NAME, etcd: NAME}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: etcd
      image: registry.k8s.io/etcd:v3.6.0
      command: [etcd, --data-dir=/data/etcd]
      args: ["--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://NAME-etcd:2379"]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

// TestProxy is scenario 16: torchruns behind proxies, and the companion that keeps their keys on its volume is deleted,
// with and without grace, which nobody who trains may notice; then at once with a worker, so that it is away while the
// others meet again.
func TestProxy(t *testing.T) {
	w := begin(t)
	j := w.job(t, "16 proxy", rendered(t, "proxy-companion", "kind"), "")
	j.apply()
	world := j.awaitWorld(3, j.applied, patience)
	j.took("apply to three workers that train", j.applied, world.stepped)
	j.checkApplied()
	j.checkCertificates(world.joins[0].Pod)

	j.killUnnoticed(world, 0)
	j.killUnnoticed(world, 30)

	lost := world.joins[2]
	deleted, _ := j.deletePod(lost.Pod, 0)
	j.killCompanion(0)
	again := j.awaitWorld(3, deleted, patience)
	j.tookAgain("companion and pod of rank 2 killed", deleted, again)
	for _, e := range world.joins {
		if trains := again.has(e.UID); trains != (e.UID != lost.UID) {
			t.Errorf("%s was killed, and of %s it holds that it trains on: %v", lost.Pod, e.Pod, trains)
		}
	}
	j.stop(again.joins[1].Pod)
	j.awaitDone(3, again.stepped, patience)
	j.awaitComplete(j.name+"-worker", patience)
	j.deleteByLabel(patience)
}

// TestProxyNodeLoss is scenario 16 with a node lost that has no workers, but the companion of one job and one of the
// two companions of another.
func TestProxyNodeLoss(t *testing.T) {
	w := begin(t)
	w.addNodes(t, 2, map[string]string{pool: stores}, corev1.Taint{
		Key: pool, Value: stores,
		Effect: corev1.TaintEffectNoSchedule,
	})
	own := w.proxiedJob(t, "proxied-volume", "{storage: {size: 1Gi, storageClass: standard}}")
	pair := w.proxiedJob(t, "proxied-etcd", `{etcd: {endpoints: ["http://proxied-etcd-etcd:2379"]}}`)
	pair.startEtcd()
	worlds := map[*testJob]generation{}
	for _, j := range []*testJob{own, pair} {
		j.apply()
	}
	for _, j := range []*testJob{own, pair} {
		worlds[j] = j.awaitWorld(2, j.applied, patience)
		j.took("apply to two workers that train", j.applied, worlds[j].stepped)
		j.awaitReady("rendezvous")
	}
	companion := own.podsOf("rendezvous")[0]
	lost := companion.Spec.NodeName
	pair.checkOneOn(lost)

	cut := w.cutOff(t, lost)
	// For the better part of a minute the Service still sends every other connection to the node that is no more.
	pair.checkUnnoticed(worlds[pair], "node of one of two companions lost", cut)
	worlds[pair] = pair.replaceWorker(worlds[pair], 1, 0)

	eventually(t, "Node "+lost+" to be known as lost", patience, func() error {
		if pod := own.pod(companion.Name); ready(pod) {
			return fmt.Errorf("%s is ready", pod.Name)
		}
		return nil
	})
	w.kubectl(t, "taint", "node", lost, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	own.awaitReplaced(&companion, patience)
	own.took("node of the companion lost to another being ready elsewhere", cut, own.awaitReady("rendezvous"))
	own.checkUnnoticed(worlds[own], "node of the companion lost", cut)
	worlds[own] = own.replaceWorker(worlds[own], 1, 0)
	for _, j := range []*testJob{own, pair} {
		j.finish(worlds[j])
	}
}

// proxiedJob makes ready a job behind proxies with this companion.
func (w *world) proxiedJob(t *testing.T, name, companion string) *testJob {
	t.Helper()
	text := strings.NewReplacer("NAME", name, "COMPANION", companion).Replace(proxied)
	return w.job(t, "16 proxy, node loss, "+name, manifest(t, name+".yaml", text, "base"), "")
}

// checkCertificates holds that the companion lets in who has the certificate of the workers, and nobody without.
func (j *testJob) checkCertificates(pod string) {
	j.t.Helper()
	j.awaitComplete(j.name+"-keygen", patience)
	const start = `PET_RDZV_ID=stranger timeout 20 /tegen/bin/tegen-rendezvous proxy "$@" -- echo started
echo "exit $?"`
	with := func(flags ...string) string {
		words := append([]string{"sh", "-c", start, "sh", "--endpoints=" + j.name + "-rendezvous:29400"}, flags...)
		return strings.TrimSpace(j.exec(pod, words...))
	}
	const ca = "--cacert=/tegen/tls/ca.crt"
	for want, got := range map[string]string{
		"started\nexit 0": with(ca, "--cert=/tegen/tls/tls.crt", "--key=/tegen/tls/tls.key"),
		"exit 124":        with(ca),
	} {
		if got != want {
			j.t.Errorf("a proxy in %s printed %q, want %q", pod, got, want)
		}
	}
	if files := j.exec(pod, "ls", "/tegen/tls"); strings.Join(strings.Fields(files), " ") != "ca.crt tls.crt tls.key" {
		j.t.Errorf("a worker has %s", files)
	}
}

// startEtcd starts the etcd of a job's companions.
func (j *testJob) startEtcd() {
	j.t.Helper()
	text := strings.ReplaceAll(sharedEtcd, "NAME", j.name)
	file := filepath.Join(j.t.TempDir(), "etcd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		j.t.Fatal(err)
	}
	j.provideOnce(j.t, []string{"registry.k8s.io/etcd:v3.6.0"})
	j.kubectl(j.t, "apply", "-f", file)
}

// checkOneOn holds that one of two companions is on a node.
func (j *testJob) checkOneOn(node string) {
	j.t.Helper()
	var on []string
	for _, pod := range j.podsOf("rendezvous") {
		on = append(on, pod.Spec.NodeName)
	}
	if len(on) != 2 || on[0] == on[1] || on[0] != node && on[1] != node {
		j.t.Fatalf("the companions of %s are on %q, want two nodes and %s one of them", j.name, on, node)
	}
}
