package node

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The size of both fixtures.
const mpiHosts, mpiSlots = 4, 4

var (
	someAnswer = regexp.MustCompile(`^[0-3] of 4 hosts answer after \d+ seconds$`)
	allAnswer  = regexp.MustCompile(`^4 hosts answer after \d+ seconds$`)
)

// TestHorovod is scenario 7: processes that a launcher starts over ssh, one by one, on the hosts of a file.
func TestHorovod(t *testing.T) {
	runMPI(t, "7 Horovod, one host late", "horovod-job-minimal", "gloo", true)
}

// TestByteScheduler is scenario 7 with the hosts in the launcher's command, which becomes Open MPI's.
func TestByteScheduler(t *testing.T) {
	runMPI(t, "7 ByteScheduler", "bytescheduler", "mpi", false)
}

// runMPI has a launcher start processes on all workers. Where one is to come late, its pods are lost until the launcher
// has missed it.
func runMPI(t *testing.T, scenario, fixture, controller string, late bool) {
	w := begin(t)
	w.takeTurn(t)
	j := w.job(t, scenario, rendered(t, fixture, "kind"), "")
	j.apply()
	launcher := j.podAt("worker", 0).Name
	if late {
		j.awaitKey() // that all workers wait for
		release := j.holdBack("worker", mpiHosts-1)
		j.logf("the launcher said: %s", j.awaitLine("the launcher to miss a host", patience, launcher, someAnswer).text)
		j.checkHostfile(launcher)
		release()
	}
	answered := j.awaitLine("all hosts to answer", patience, launcher, allAnswer)
	j.took("apply to all hosts answering", j.applied, answered.at)
	j.awaitComplete(j.name+"-keygen", patience)

	hosts := map[string]int{}
	for i := range mpiHosts {
		host, _, _ := strings.Cut(j.host(i), ".")
		hosts[host] = mpiSlots
	}
	summed := j.awaitRanksOn(controller, hosts)
	j.took("apply to the sum over 16 ranks", j.applied, summed)
	j.checkLaunched(launcher, late)
	j.awaitComplete(j.name+"-worker", patience)
	j.checkKeyUnsaid()
	j.deleteByLabel(patience)
}

// awaitKey waits until the key is made, and about to be stored.
func (j *testJob) awaitKey() {
	j.t.Helper()
	eventually(j.t, "the key of "+j.name, patience, func() error {
		pods := j.podsOf("keygen")
		if i := slices.IndexFunc(pods, func(p corev1.Pod) bool {
			made := p.Status.InitContainerStatuses
			return len(made) == 1 && made[0].State.Terminated != nil && made[0].State.Terminated.ExitCode == 0
		}); i < 0 {
			return fmt.Errorf("none of %d pods has made it", len(pods))
		}
		return nil
	})
}

// holdBack deletes the pod of an index, and each that the Job makes in its place, ten seconds after it and then twenty,
// until it is released.
func (j *testJob) holdBack(component string, index int) (release func()) {
	j.t.Helper()
	ctx, cancel := context.WithCancel(j.t.Context())
	var held sync.WaitGroup
	release = func() {
		cancel()
		held.Wait()
	}
	j.t.Cleanup(release)
	selector := fmt.Sprintf("%s=%s,app.kubernetes.io/component=%s,%s=%d", instance, j.name, component,
		batchv1.JobCompletionIndexAnnotation, index)
	held.Go(func() {
		for ctx.Err() == nil {
			list, err := j.client.CoreV1().Pods(j.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			for i := 0; err == nil && i < len(list.Items); i++ {
				if pod := &list.Items[i]; pod.DeletionTimestamp == nil {
					err = j.client.CoreV1().Pods(j.namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
					j.logf("deleted %s", pod.Name)
				}
			}
			if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				j.t.Errorf("holding back the %s %d: %v", component, index, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(poll / 2):
			}
		}
	})
	return release
}

// podAt waits for the pod of an index of a component's Indexed Job.
func (j *testJob) podAt(component string, index int) (pod corev1.Pod) {
	j.t.Helper()
	eventually(j.t, fmt.Sprintf("the %s %d of %s", component, index, j.name), patience, func() error {
		pods := j.podsOf(component)
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool {
			return p.Labels[batchv1.JobCompletionIndexAnnotation] == fmt.Sprint(index)
		})
		if i < 0 {
			return fmt.Errorf("it is none of %d pods", len(pods))
		}
		pod = pods[i]
		return nil
	})
	return pod
}

// host is the name of a worker in the cluster's DNS, as the manifest's hostfile has it.
func (j *testJob) host(index int) string {
	worker := j.name + "-worker"
	return fmt.Sprintf("%s-%d.%s.%s.svc.cluster.local", worker, index, worker, j.namespace)
}

// checkHostfile holds that the launcher has the hosts with their slots, and resolves each to its pod, but for the last,
// which need not be there.
func (j *testJob) checkHostfile(launcher string) {
	j.t.Helper()
	const program = `import os, socket
for line in open(os.environ["TEGEN_HOSTFILE"]):
    try: address = socket.gethostbyname(line.split()[0])
    except OSError: address = "unknown"
    print(line.strip(), address)`
	var got, want []string
	for said := range strings.Lines(j.exec(launcher, "python", "-c", program)) {
		if said = strings.TrimSpace(said); strings.HasPrefix(said, j.host(mpiHosts-1)) {
			said = said[:strings.LastIndexByte(said, ' ')]
		}
		got = append(got, said)
	}
	for i := range mpiHosts - 1 {
		want = append(want, fmt.Sprintf("%s slots=%d %s", j.host(i), mpiSlots, j.podAt("worker", i).Status.PodIP))
	}
	want = append(want, fmt.Sprintf("%s slots=%d", j.host(mpiHosts-1), mpiSlots))
	if diff := cmp.Diff(want, got); diff != "" {
		j.t.Errorf("the launcher's hosts, slots and addresses (-want +got):\n%s", diff)
	}
}

// awaitRanksOn waits until every rank has reported the sum over all, in an event of this name, and holds that each host
// has as many as are wanted.
func (j *testJob) awaitRanksOn(name string, hosts map[string]int) (at time.Time) {
	j.t.Helper()
	size := 0
	for _, slots := range hosts {
		size += slots
	}
	var ranks map[int]event
	j.await(fmt.Sprintf("%d ranks", size), patience, func(events []event) bool {
		ranks = map[int]event{}
		for _, e := range events {
			if e.Event == name {
				ranks[e.Rank] = e
			}
		}
		return len(ranks) == size
	})
	on := map[string]int{}
	for rank, e := range ranks {
		on[e.Host]++
		if e.Size != size || e.Sum != float64(size*(size+1)/2) || rank < 0 || rank >= size {
			j.t.Errorf("rank %d of %d has the sum %v, want %d over %d ranks", e.Rank, e.Size, e.Sum, size*(size+1)/2,
				size)
		}
		if e.at().After(at) {
			at = e.at()
		}
	}
	if diff := cmp.Diff(hosts, on); diff != "" {
		j.t.Errorf("ranks by host (-want +got):\n%s", diff)
	}
	return at
}

// checkLaunched holds that the launcher said that all hosts answer, after it had missed one where one was late, and no
// rank anything before that.
func (j *testJob) checkLaunched(launcher string, late bool) {
	j.t.Helper()
	lines := j.printed(launcher, "worker")
	some := slices.IndexFunc(lines, func(l line) bool { return someAnswer.MatchString(l.text) })
	all := slices.IndexFunc(lines, func(l line) bool { return allAnswer.MatchString(l.text) })
	first := slices.IndexFunc(lines, func(l line) bool { _, ok, _ := parseEvent(l.text); return ok })
	if late && some < 0 || all < some || first < all {
		j.t.Errorf("of the launcher's lines, some hosts answer in number %d, all in %d, "+
			"and the first rank speaks in %d", some, all, first)
	}
}

// checkKeyUnsaid holds that the key that was made in the cluster is nowhere in what containers printed.
func (j *testJob) checkKeyUnsaid() {
	j.t.Helper()
	secret, err := j.client.CoreV1().Secrets(j.namespace).Get(j.t.Context(), j.name+"-ssh", metav1.GetOptions{})
	if err != nil {
		j.t.Fatalf("reading the Secret of the key: %v", err)
	}
	parts, err := keyParts(secret.Data["ssh-privatekey"])
	if err != nil {
		j.t.Fatal(err)
	}
	lines := j.printed("", "")
	if len(lines) == 0 {
		j.t.Error("no container printed anything")
	}
	for _, l := range lines {
		for _, part := range parts {
			if strings.Contains(l.text, part) {
				j.t.Fatal("a container printed a part of the private key")
			}
		}
	}
}

// keyParts are what gives a private key away: its lines, and what they are in a manifest.
func keyParts(key []byte) (parts []string, err error) {
	for part := range strings.Lines(string(key)) {
		if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(part, "-----") {
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 || !strings.HasPrefix(string(key), "-----BEGIN OPENSSH PRIVATE KEY-----\n") {
		return nil, errors.New("the Secret has no private key of OpenSSH's")
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	return append(parts, encoded[len(encoded)/2:][:40]), nil
}

func TestKeyParts(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN OPENSSH PRIVATE " +
		"KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nAAAAtzc2gtZWQyNTUxOQAAACB\n-----END OPENSSH PRIVATE " +
		"KEY-----\n"
	parts, err := keyParts([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ", "AAAAtzc2gtZWQyNTUxOQAAACB"},
		parts[:2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(base64.StdEncoding.EncodeToString([]byte(key)), parts[2]) {
		t.Errorf("%s is not of the key in a manifest", parts[2])
	}
	if _, err := keyParts(nil); err == nil {
		t.Error("nothing is taken for a key")
	}
}
