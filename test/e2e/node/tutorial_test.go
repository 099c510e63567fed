package node

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTutorial is scenario 1: bare pods, etcd with the v2 API and a headless Service a worker, as the tutorial has them.
// A third worker is what the job renders with one replica more.
func TestTutorial(t *testing.T) {
	w := begin(t)
	downloads := w.serveDataset(t, "cs231n.stanford.edu", "/tiny-imagenet-200.zip", "tiny-imagenet-200/train/n01443537/images/n01443537_0.JPEG")
	j := w.job(t, "1 tutorial", golden("imagenet", "kind"), "")
	j.apply()
	two := j.awaitWorld(2, j.applied, patience)
	j.took("apply to two workers that train", j.applied, two.stepped)
	j.checkPrefetched("imagenet-prefetch-data", two)
	j.checkMaster(two)

	j.file = j.rendered("imagenet", "replicas: 2", "replicas: 3")
	raised := time.Now()
	created := changed(j.kubectl(t, "apply", "-f", j.file))
	if diff := cmp.Diff([]string{"pod/imagenet-worker-3 created", "service/imagenet-worker-3 created"}, created); diff != "" {
		t.Fatalf("applying the job with a third replica changed (-want +got):\n%s", diff)
	}
	three := j.awaitWorld(3, raised, patience)
	j.took("third pod applied to three workers that train", raised, three.stepped)
	j.checkMaster(three)

	// That of rank 0, whose address all others have.
	lost := three.joins[0].Pod
	deleted, uid := j.deletePod(lost, 30)
	again := j.awaitWorld(2, deleted, patience)
	j.took("lost pod to two workers that train again", deleted, again.stepped)
	j.awaitGone(lost, uid, patience)
	j.checkMaster(again)
	for _, e := range again.joins {
		if e.UID == uid {
			t.Errorf("%s trains on after it was deleted", lost)
		}
	}
	j.awaitSteps(2, again.stepped.Add(time.Second), patience) // and trains on
	if n := downloads.Load(); n != 1 {
		t.Errorf("the dataset was downloaded %d times, want once", n)
	}
	j.stop(again.joins[1].Pod)
	j.awaitDone(2, again.stepped, patience)
	j.deleteByLabel(patience)
}

// serveDataset answers for a host of the world, with a zip of one file, and counts its downloads.
func (w *world) serveDataset(t *testing.T, host, path, file string) *atomic.Int64 {
	t.Helper()
	var archive bytes.Buffer
	zipped := zip.NewWriter(&archive)
	f, err := zipped.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("a picture")); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	var downloads atomic.Int64
	listener, err := net.Listen("tcp", net.JoinHostPort(w.Address(), "80"))
	if err != nil {
		t.Fatalf("serving the dataset: %v", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(rw, r)
			return
		}
		downloads.Add(1)
		http.ServeContent(rw, r, path, time.Time{}, bytes.NewReader(archive.Bytes()))
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })   // the clients are gone
	if err := w.Alias(t.Context(), host); err != nil {
		t.Fatalf("answering for %s: %v", host, err)
	}
	return &downloads
}

// changed is what kubectl apply says of all but the objects that were as they should be, sorted. It takes every
// PodDisruptionBudget for changed, whose selector it sends whole.
func changed(output string) (lines []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		same := strings.HasSuffix(line, " unchanged") || strings.HasPrefix(line, "poddisruptionbudget.") && strings.HasSuffix(line, " configured")
		if !same {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// checkPrefetched holds that the dataset was complete before any worker joined.
func (j *job) checkPrefetched(name string, g generation) {
	j.t.Helper()
	completed := j.awaitComplete(name, patience)
	if first := j.awaitEvent("join", 0, j.applied, func(e event) bool { return e.Event == "join" }); !completed.Before(first.at()) {
		j.t.Errorf("Job %s completed at %v, after %s joined at %v", name, completed, first.Pod, first.at())
	}
	// The entrypoint says so where it finds the files.
	j.awaitEvent("the dataset in "+g.joins[0].Pod, 0, j.applied, func(e event) bool { return e.Event == "data" })
	j.took("dataset fetched", j.applied, completed)
}

// checkMaster holds that all ranks have the same master, that it is a worker's own host name, and that the other
// workers resolve it to that pod.
func (j *job) checkMaster(g generation) {
	j.t.Helper()
	master := g.joins[0].Master
	host, _, _ := strings.Cut(master, ".")
	for _, e := range g.joins {
		if e.Master != master {
			j.t.Fatalf("rank %d has the master %q, rank 0 has %q", e.Rank, e.Master, master)
		}
	}
	i := slices.IndexFunc(g.joins, func(e event) bool { return e.Host == host })
	if i < 0 {
		j.t.Fatalf("the master is %q, which is none of the workers", master)
	}
	want := j.pod(g.joins[i].Pod).Status.PodIP
	for _, e := range g.joins {
		if e.Host == host {
			continue // its own hosts file would answer
		}
		got := strings.TrimSpace(j.exec(e.Pod, "python", "-c", fmt.Sprintf("import socket; print(socket.gethostbyname(%q))", master)))
		if got != want {
			j.t.Errorf("%s resolves the master %s to %s, want %s, the address of %s", e.Pod, master, got, want, g.joins[i].Pod)
		}
	}
}
