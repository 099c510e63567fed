// Package scheduling holds tegen-scheduler against a real control plane: what
// users were promised of gangs and of random placement, seen from the API.
package scheduling

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/scheduler/gang/ledger"
	"github.com/tegen-dev/tegen/test/cluster"
)

// patience is how long a state may take to come about on a busy machine; stillness how long one must last that should
// not change.
const (
	patience  = 60 * time.Second
	stillness = 3 * time.Second
)

// insecure asks servers of this machine, whose certificates nobody signed.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// TestMain lets more stories run side by side than the machine has cores: they wait most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lab is a control plane whose pods are placed by tegen-scheduler.
type lab struct {
	*cluster.Cluster
	t         *testing.T
	scheduler *cluster.Process
	qps       int // of schedulers that are started from now on
}

// newLab starts a control plane and one tegen-scheduler.
func newLab(t *testing.T, o cluster.Options) *lab {
	t.Helper()
	if os.Getenv("TEGEN_E2E") == "" {
		t.Skip("it starts a real control plane: set TEGEN_E2E=1, or run make e2e")
	}
	o.NoScheduler = true
	l := &lab{Cluster: cluster.Start(t, o), t: t, qps: 1000}
	l.scheduler = l.start("tegen-scheduler", edited(t, "leaderElect: true", "leaderElect: false"))
	return l
}

// edited is the default configuration with replacements, which must match.
func edited(t *testing.T, oldnew ...string) string {
	t.Helper()
	text := config.Default("kube-system")
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the default configuration has no %q", oldnew[i])
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	return text
}

// start runs a scheduler with a configuration and waits until it is healthy.
func (l *lab) start(name, configuration string) *cluster.Process {
	l.t.Helper()
	program, err := cluster.BuildCommand(l.t.Context(), os.Stderr, "./cmd/tegen-scheduler")
	if err != nil {
		l.t.Fatal(err)
	}
	client := fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: %d, burst: %d}\n", l.Kubeconfig(), l.qps, 2*l.qps)
	file := filepath.Join(l.Dir(), name+".yaml")
	if err := os.WriteFile(file, []byte(configuration+client), 0o600); err != nil {
		l.t.Fatal(err)
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := l.Run(l.t.Context(), name, program, "--config", file, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
		"--authentication-kubeconfig", l.Kubeconfig(), "--authorization-kubeconfig", l.Kubeconfig(), "--cert-dir", filepath.Join(l.Dir(), name+"-certs"), "-v=3")
	if err != nil {
		l.t.Fatal(err)
	}
	l.until("the scheduler is healthy", func() (string, bool) {
		body, err := l.get(fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[0]))
		return body + fmt.Sprint(err), err == nil && body == "ok"
	})
	return p
}

// get reads a page of a server of this machine with the cluster's token.
func (l *lab) get(url string) (string, error) {
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+l.Config().BearerToken)
	resp, err := insecure.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// until waits for a state, and says what there was instead where it does not come about.
func (l *lab) until(what string, state func() (string, bool)) {
	l.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		saw, ok := state()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("waited %v for: %s; last saw:\n%s", patience, what, saw)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// namespace makes a namespace, and its ServiceAccount is there.
func (l *lab) namespace(name string) string {
	l.t.Helper()
	if _, err := l.Client().CoreV1().Namespaces().Create(l.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.until("the ServiceAccount of "+name, func() (string, bool) {
		_, err := l.Client().CoreV1().ServiceAccounts(name).Get(l.t.Context(), "default", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	return name
}

// nodes adds nodes that only the pods of one story may use, and returns their names.
func (l *lab) nodes(story string, n, gpus int, taints ...corev1.Taint) []string {
	l.t.Helper()
	names, err := l.AddNodes(l.t.Context(), cluster.NodeOptions{Count: n, GPUs: gpus, Labels: map[string]string{"story": story}, Taints: taints})
	if err != nil {
		l.t.Fatal(err)
	}
	return names
}

// story opens a test of its own on the lab, with a namespace and nodes of its own.
func (l *lab) story(name string, tell func(l *lab, ns string)) {
	l.t.Run(name, func(t *testing.T) {
		t.Parallel()
		own := *l
		own.t = t
		tell(&own, own.namespace(name))
	})
}

// gang describes pods that belong together.
type gang struct {
	namespace, name string
	pods            int
	gpus            int
	scheduler       string            // tegen-scheduler by default
	annotations     map[string]string // without the prefix
	with            func(*corev1.Pod)
}

// of is a gang with a minimum.
func of(namespace, name string, pods, minimum, gpus int, more ...string) gang {
	g := gang{namespace: namespace, name: name, pods: pods, gpus: gpus, annotations: map[string]string{ledger.Name: name, ledger.MinMembers: fmt.Sprint(minimum)}}
	for i := 0; i < len(more); i += 2 {
		g.annotations[more[i]] = more[i+1]
	}
	return g
}

func (g gang) pod(i int) *corev1.Pod {
	gpus := corev1.ResourceList{}
	if g.gpus > 0 {
		gpus[cluster.GPU] = *resource.NewQuantity(int64(g.gpus), resource.DecimalSI)
	}
	seconds := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", g.name, i), Namespace: g.namespace, Labels: map[string]string{"gang": g.name}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName: g.scheduler, TerminationGracePeriodSeconds: &seconds, NodeSelector: map[string]string{"story": g.namespace},
			Containers: []corev1.Container{{Name: "worker", Image: "example.com/worker", Resources: corev1.ResourceRequirements{Limits: gpus}}},
		},
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = "tegen-scheduler"
	}
	for k, v := range g.annotations {
		pod.Annotations[ledger.Prefix+k] = v
	}
	if g.with != nil {
		g.with(pod)
	}
	return pod
}

// create makes the pods of a gang, from and to an index.
func (l *lab) create(g gang, from, to int) {
	l.t.Helper()
	for i := from; i < to; i++ {
		if _, err := l.Client().CoreV1().Pods(g.namespace).Create(l.t.Context(), g.pod(i), metav1.CreateOptions{}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// delete removes pods at once.
func (l *lab) delete(namespace string, names ...string) {
	l.t.Helper()
	for _, n := range names {
		if err := l.Client().CoreV1().Pods(namespace).Delete(l.t.Context(), n, metav1.DeleteOptions{}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// finish lets a running pod succeed.
func (l *lab) finish(namespace, name string) {
	l.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, cluster.OutcomeAnnotation, cluster.OutcomeSucceeded)
	if _, err := l.Client().CoreV1().Pods(namespace).Patch(l.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.until(name+" has succeeded", func() (string, bool) {
		p, err := l.Client().CoreV1().Pods(namespace).Get(l.t.Context(), name, metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && p.Status.Phase == corev1.PodSucceeded
	})
}

// drop deletes a gang.
func (l *lab) drop(g gang) {
	l.t.Helper()
	if err := l.Client().CoreV1().Pods(g.namespace).DeleteCollection(l.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "gang=" + g.name}); err != nil {
		l.t.Fatal(err)
	}
}

// pods are those of a gang by name.
func (l *lab) pods(g gang) []corev1.Pod {
	l.t.Helper()
	list, err := l.Client().CoreV1().Pods(g.namespace).List(l.t.Context(), metav1.ListOptions{LabelSelector: "gang=" + g.name})
	if err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

// bound are the names of the pods of a gang that have a node.
func (l *lab) bound(g gang) []string {
	l.t.Helper()
	var out []string
	for _, p := range l.pods(g) {
		if p.Spec.NodeName != "" {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// runs waits until so many pods of a gang are bound, no more and no fewer, and that this lasts.
func (l *lab) runs(g gang, want int) {
	l.t.Helper()
	l.until(fmt.Sprintf("%d of gang %s run", want, g.name), func() (string, bool) {
		got := l.bound(g)
		return l.seen(g), len(got) == want
	})
	l.stays(g, want)
}

// stays asserts that for a while exactly so many pods of a gang are bound.
func (l *lab) stays(g gang, want int) {
	l.t.Helper()
	for end := time.Now().Add(stillness); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got := l.bound(g); len(got) != want {
			l.t.Fatalf("%d pods of gang %s are bound, want %d: %v\n%s", len(got), g.name, want, got, l.seen(g))
		}
	}
}

// seen is what a user can see of a gang: its pods' places, conditions and events.
func (l *lab) seen(g gang) string {
	var b strings.Builder
	for _, p := range l.pods(g) {
		fmt.Fprintf(&b, "%s on %q: %s\n", p.Name, p.Spec.NodeName, scheduled(p))
	}
	for _, e := range l.events(g.namespace) {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// scheduled is the message of a pod's condition PodScheduled.
func scheduled(p corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no condition"
}

// events are the notes on the pods of a namespace: "pod reason note".
func (l *lab) events(namespace string) []string {
	list, err := l.Client().EventsV1().Events(namespace).List(context.WithoutCancel(l.t.Context()), metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s %s", e.Regarding.Name, e.Reason, e.Note))
	}
	return out
}

// told waits until every pod of a gang has an event and a condition that contain the words.
func (l *lab) told(g gang, words ...string) {
	l.t.Helper()
	has := func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	}
	l.until(fmt.Sprintf("all pods of gang %s are told %q", g.name, words), func() (string, bool) {
		events := l.events(g.namespace)
		for _, p := range l.pods(g) {
			if p.Spec.NodeName != "" {
				continue
			}
			if !has(scheduled(p)) || !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, p.Name+" FailedScheduling ") && has(e) }) {
				return l.seen(g), false
			}
		}
		return "", true
	})
}
