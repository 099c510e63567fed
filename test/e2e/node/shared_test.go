package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharing is a job that meets in the rendezvous which 'tegen install rendezvous' makes. Two of them in one run would be
// a world of four, which either has room for.
const sharing = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: sharing-NUMBER, namespace: training}
spec:
  image: ghcr.io/acme/resnet:1.4.0
  command: [python, train.py]
  workers: {replicas: 2, min: 1, max: 4}
  resources: {cpu: 100m, memory: 512Mi, shm: 64Mi, ephemeralStorage: 1Gi}
  rendezvous:
    backend: etcd
    store: external
    endpoint: tegen-rendezvous.tegen-rendezvous.svc:2379
    lastCall: 5s
    maxRestarts: 10
  images: {rendezvous: registry.example/tegen-rendezvous:1.0.0}
`

// TestSharedRendezvous: two jobs train beside each other in one rendezvous, neither sees the other's workers, and the
// end of one is nothing to the other.
func TestSharedRendezvous(t *testing.T) {
	w := begin(t)
	const scenario = "11 shared rendezvous"
	began := time.Now()
	w.installRendezvous(t)
	times.add(scenario, "tegen install rendezvous, applied, to its pod being ready", time.Since(began))

	var both []*testJob
	for _, number := range []string{"one", "two"} {
		text := strings.ReplaceAll(sharing, "NUMBER", number)
		both = append(both, w.job(t, scenario, manifest(t, number+".yaml", text, "base"), ""))
	}
	for _, j := range both {
		j.apply()
	}
	var worlds []generation
	for _, j := range both {
		g := j.awaitWorld(2, j.applied, patience)
		j.took("two jobs applied to two workers of "+j.name+" that train", j.applied, g.stepped)
		worlds = append(worlds, g)
	}
	w.checkRuns(t, 2)

	both[0].stop(worlds[0].joins[0].Pod)
	both[0].awaitDone(2, worlds[0].stepped, patience)
	ended := time.Now()
	both[1].awaitSteps(2, ended.Add(looked), patience)
	for i, j := range both {
		for _, e := range j.all() {
			if e.Event == "join" && e.Size > 2 {
				t.Errorf("%s joined a world of %d, and its job has two workers", e.Pod, e.Size)
			}
			if e.Event == "join" && i == 1 && e.at().After(ended) {
				t.Errorf("%s joined again when the other job had ended", e.Pod)
			}
		}
	}
	both[1].stop(worlds[1].joins[0].Pod)
	both[1].awaitDone(2, worlds[1].stepped, patience)
}

// installRendezvous applies what tegen install prints, and waits for its pod.
func (w *world) installRendezvous(t *testing.T) {
	t.Helper()
	const namespace, name = "tegen-rendezvous", "tegen-rendezvous"
	w.install(t, filepath.Join(root, "golden/install-rendezvous/default.yaml"), namespace)
	eventually(t, "tegen-rendezvous to be ready", patience, func() error {
		s, err := w.client.AppsV1().StatefulSets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && s.Status.ReadyReplicas != 1 {
			err = errors.New("its pod is not ready")
		}
		return err
	})
	pods, err := w.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkBuilt(t, name, pods.Items)
}

// checkRuns holds that the shared rendezvous has so many runs, each of two agents and under an id of its own.
func (w *world) checkRuns(t *testing.T, n int) {
	t.Helper()
	const pod = "tegen-rendezvous-0"
	if out, err := w.tryKubectl(t.Context(), "get", "--raw",
		"/api/v1/namespaces/tegen-rendezvous/pods/"+pod+":2381/proxy/runs"); err == nil {
		t.Errorf("runs are listed for others than the pod's own: %s", out)
	}
	text := w.forwarded(t, "tegen-rendezvous", pod, "2381", "/runs")
	var answer struct {
		Runs []struct {
			ID           string
			Participants int
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	var got []string
	for _, r := range answer.Runs {
		got = append(got, fmt.Sprintf("%d in %s", r.Participants, r.ID))
	}
	slices.Sort(got)
	other := func(run string) bool { return !strings.HasPrefix(run, "2 in ") }
	if len(slices.Compact(got)) != n || slices.ContainsFunc(got, other) {
		t.Errorf("the rendezvous has the runs %q, want %d of two agents", got, n)
	}
}

// forwarded is what a pod answers at one of its ports, through 'kubectl port-forward'.
func (w *world) forwarded(t *testing.T, namespace, pod, port, path string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := w.kubectlCommand(ctx, "port-forward", "-n", namespace, "pod/"+pod, ":"+port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() //nolint:errcheck // it is killed
	defer cancel()
	line, err := bufio.NewReader(out).ReadString('\n') // "Forwarding from 127.0.0.1:40000 -> 2381"
	fields := strings.Fields(line)
	if err != nil || len(fields) < 3 {
		t.Fatalf("kubectl port-forward printed %q: %v", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+fields[2]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: %d %s, %v", path, pod, answer.StatusCode, text, err)
	}
	return text
}
