// Package scheduling holds tegen-scheduler against a real control plane: what
// the documents say of gangs and of random placement, seen from the API.
package scheduling

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// patience is how long a state may take to come about on a busy machine; stillness how long one must last that should
// not change.
const (
	patience  = 2 * time.Minute
	stillness = 3 * time.Second
	poll      = 50 * time.Millisecond // of what the watch keeps, or of a few small requests
)

// insecure asks servers of this machine, whose certificates nobody signed.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// TestMain lets all stories run side by side, whatever the machine has of cores: they wait most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lab is a control plane whose pods are placed by tegen-scheduler.
type lab struct {
	*cluster.Cluster
	t         *testing.T
	scheduler *cluster.Process
	qps       int                   // of schedulers that are started from now on
	kept      corelisters.PodLister // all pods, as the watch has them
	prefix    string                // of the namespaces of stories
}

// newLab starts a control plane and one tegen-scheduler.
func newLab(t *testing.T, args ...string) *lab {
	t.Helper()
	if os.Getenv("TEGEN_E2E") == "" {
		t.Skip("it starts a real control plane: set TEGEN_E2E=1, or run make e2e")
	}
	l := &lab{Cluster: cluster.Start(t, args...), t: t, qps: 1000}
	l.keep()
	l.scheduler = l.start("tegen-scheduler", edited(t, "leaderElect: true", "leaderElect: false"))
	return l
}

// TestScheduler has one control plane and one scheduler for all stories. A single one runs with
// -run 'TestScheduler/Gangs/literal'.
func TestScheduler(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.beside("Gangs", testGangs)
	l.beside("Malformed", testMalformed)
	l.beside("Preemption", testPreemption)
	l.beside("Topology", testTopology)
	l.beside("Devices", testDevices)
	l.beside("Random", testRandom)
	l.beside("Trouble", testTrouble)
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
	program, err := cluster.Build(l.t.Context(), "scheduler", "cmd/tegen-scheduler")
	if err != nil {
		l.t.Fatal(err)
	}
	client := fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: %d, burst: %d}\n", l.Kubeconfig(), l.qps, 2*l.qps)
	file := filepath.Join(l.Dir(), name+".yaml")
	if err := os.WriteFile(file, []byte(configuration+client), 0o600); err != nil {
		l.t.Fatal(err)
	}
	port, err := cluster.FreePort()
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := l.Run(l.t.Context(), name, program, "--config", file, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--authentication-kubeconfig", l.Kubeconfig(), "--authorization-kubeconfig", l.Kubeconfig(), "--cert-dir",
		filepath.Join(l.Dir(), name+"-certs"), "-v=3")
	if err != nil {
		l.t.Fatal(err)
	}
	health := ""
	l.until("the scheduler is healthy", func() bool {
		body, err := l.get(fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
		health = body + fmt.Sprint(err)
		return err == nil && body == "ok"
	}, func() string { return health })
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
func (l *lab) until(what string, state func() bool, instead func() string) {
	l.t.Helper()
	deadline := time.Now().Add(patience)
	for !state() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited %v for: %s; last saw:\n%s", patience, what, instead())
		}
		time.Sleep(poll)
	}
}

// namespace makes a namespace, and its ServiceAccount is there.
func (l *lab) namespace(name string) string {
	l.t.Helper()
	if _, err := l.Client().CoreV1().Namespaces().Create(l.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	var err error
	l.until("the ServiceAccount of "+name, func() bool {
		_, err = l.Client().CoreV1().ServiceAccounts(name).Get(l.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, func() string { return err.Error() })
	return name
}

// nodes adds nodes that only the pods of one story may use, and returns their names.
func (l *lab) nodes(story string, n, gpus int, taints ...corev1.Taint) []string {
	l.t.Helper()
	names, err := l.AddNodes(l.t.Context(), cluster.NodeOptions{
		Count: n, GPUs: gpus,
		Labels: map[string]string{"story": story}, Taints: taints,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return names
}

// beside opens a test of its own on the lab, which runs beside its siblings.
func (l *lab) beside(name string, run func(l *lab)) {
	l.t.Run(name, func(t *testing.T) {
		t.Parallel()
		own := *l
		own.t = t
		run(&own)
	})
}

// story opens a test of its own on the lab, with a namespace and nodes of its own.
func (l *lab) story(name string, tell func(l *lab, ns string)) {
	l.beside(name, func(l *lab) { tell(l, l.namespace(l.prefix+name)) })
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
	g := gang{
		namespace: namespace, name: name, pods: pods, gpus: gpus,
		annotations: map[string]string{gangcache.Name: name, gangcache.MinMembers: fmt.Sprint(minimum)},
	}
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
			Name: fmt.Sprintf("%s-%d", g.name, i), Namespace: g.namespace, Labels: map[string]string{"gang": g.name},
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName: g.scheduler, TerminationGracePeriodSeconds: &seconds,
			NodeSelector: map[string]string{"story": g.namespace},
			Containers: []corev1.Container{{
				Name: "worker", Image: "example.com/worker",
				Resources: corev1.ResourceRequirements{Limits: gpus},
			}},
		},
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = "tegen-scheduler"
	}
	for k, v := range g.annotations {
		pod.Annotations[gangcache.Prefix+k] = v
	}
	if g.with != nil {
		g.with(pod)
	}
	return pod
}
