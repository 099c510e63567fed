package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// e2e skips a test where no control plane is wanted: building one takes minutes.
func e2e(t *testing.T) {
	t.Helper()
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
}

// TestCluster runs beside TestGates, so that two clusters share the machine.
func TestCluster(t *testing.T) {
	e2e(t)
	t.Parallel()
	ctx := t.Context()
	c, err := Up(ctx, Options{}, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	})
	first, err := c.Nodes(ctx, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.AddNodes(ctx, NodeOptions{
		Count: 1, Labels: map[string]string{"rack": "b"},
		Taints: []corev1.Taint{{Key: "reserved", Effect: corev1.TaintEffectNoSchedule}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(first, second), "[node-0 node-1] [node-2]"; got != want {
		t.Errorf("got the nodes %s, want %s", got, want)
	}
	if _, err := c.Run(ctx, "beside", "sleep", "600"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx, "beside", "sleep", "600"); err == nil {
		t.Error("two programs run under one name, into one log")
	}

	t.Run("Deployment", func(t *testing.T) { testDeployment(t, c) })
	t.Run("StatefulSet", func(t *testing.T) { testStatefulSet(t, c) })
	t.Run("Job", func(t *testing.T) { testJob(t, c) })

	// Nothing is left.
	var pids []int
	for _, p := range c.processes() {
		pids = append(pids, p.Pid())
	}
	if len(pids) != 6 {
		t.Errorf("%d programs run, want the five of the control plane and one beside", len(pids))
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d runs after Down", pid)
		}
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder %s is there after Down: %v", c.Dir(), err)
	}
	if err := c.Err(); err != nil {
		t.Errorf("what Down stopped counts as broken: %v", err)
	}
}

// podTemplate is a pod of one GPU.
func podTemplate(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/none",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{GPU: resource.MustParse("1")}},
		}}},
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// pods are the pods of an app, and how many of them run.
func pods(ctx context.Context, t *testing.T, c *Cluster, app string) (all []corev1.Pod, runs int) {
	t.Helper()
	list, err := c.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning {
			runs++
		}
	}
	return list.Items, runs
}

func awaitRunning(t *testing.T, c *Cluster, app string, want int) []corev1.Pod {
	t.Helper()
	var all []corev1.Pod
	eventually(t, app+" to run", func() error {
		var runs int
		if all, runs = pods(t.Context(), t, c, app); runs != want || len(all) != want {
			return fmt.Errorf("%d of %d pods run, want %d", runs, len(all), want)
		}
		return nil
	})
	return all
}

// testDeployment fills the GPUs of both nodes, sees addresses and deletion.
func testDeployment(t *testing.T, c *Cluster) {
	ctx, client := t.Context(), c.Client()
	_, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(8)), Selector: selector("web"),
			Template: podTemplate("web"),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on, addresses := map[string]int{}, map[string]bool{}
	for _, pod := range awaitRunning(t, c, "web", 8) {
		on[pod.Spec.NodeName]++
		addresses[pod.Status.PodIP] = true
		if ip, err := netip.ParseAddr(pod.Status.PodIP); err != nil ||
			!netip.MustParsePrefix("10.244.0.0/16").Contains(ip) {
			t.Errorf("%s has the address %q, want one of the pods' network", pod.Name, pod.Status.PodIP)
		}
	}
	if len(addresses) != 8 {
		t.Errorf("8 pods have %d addresses", len(addresses))
	}
	// A node holds four GPUs, and the third node neither a GPU nor a pod without a toleration.
	if on["node-0"] != 4 || on["node-1"] != 4 {
		t.Errorf("got the pods %v, want four on each node of four GPUs", on)
	}
	err = client.AppsV1().Deployments("default").Delete(ctx, "web",
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment's pods to go", func() error {
		if all, _ := pods(ctx, t, c, "web"); len(all) > 0 {
			return fmt.Errorf("%d pods are left", len(all))
		}
		return nil
	})
}

// testStatefulSet sees what a cluster's DNS would publish: a host name and an address for every pod.
func testStatefulSet(t *testing.T, c *Cluster) {
	ctx, client := t.Context(), c.Client()
	_, err := client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "peers"},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "set"},
			Ports: []corev1.ServicePort{{Port: 29500}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AppsV1().StatefulSets("default").Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "peers", Replicas: new(int32(2)), Selector: selector("set"),
			Template: podTemplate("set"),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, pod := range awaitRunning(t, c, "set", 2) {
		want[pod.Name] = pod.Status.PodIP
	}
	eventually(t, "endpoints with the pods' names", func() error {
		slices, err := client.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=peers"})
		if err != nil {
			return err
		}
		got := map[string]string{}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Hostname != nil && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					got[*endpoint.Hostname] = endpoint.Addresses[0]
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || got["set-0"] == "" || got["set-1"] == "" {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// testJob sees that a Job runs until its pods are asked to end. One succeeds with them; of the other one pod fails, and
// the rest, which hold a finalizer of the Job controller's, go.
func testJob(t *testing.T, c *Cluster) {
	ctx, jobs := t.Context(), c.Client().BatchV1().Jobs("default")
	for outcome, condition := range map[string]batchv1.JobConditionType{
		OutcomeSucceeded: batchv1.JobComplete, OutcomeFailed: batchv1.JobFailed,
	} {
		template := podTemplate(outcome)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := jobs.Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: outcome},
			Spec: batchv1.JobSpec{
				Completions: new(int32(2)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
				// The first failure is the Job's, and only a pod that has ended counts as gone.
				BackoffLimit: new(int32(0)), PodReplacementPolicy: new(batchv1.Failed),
				Template: template,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range awaitRunning(t, c, outcome, 2) {
			if outcome == OutcomeFailed && !strings.HasPrefix(pod.Name, outcome+"-0-") {
				continue
			}
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, OutcomeAnnotation, outcome)
			if _, err := c.Client().CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the Job to be "+string(condition), func() error {
			job, err := jobs.Get(ctx, outcome, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, have := range job.Status.Conditions {
				if have.Type == condition && have.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("it is %+v", job.Status)
		})
		if all, runs := pods(ctx, t, c, outcome); runs > 0 {
			t.Errorf("%d pods of %d run although their Job is %s", runs, len(all), condition)
		}
	}
}

func TestGates(t *testing.T) {
	e2e(t)
	t.Parallel()
	c := Start(t, Options{
		Gates:       map[string]bool{"GenericWorkload": true, "GangScheduling": true},
		APIs:        []string{"scheduling.k8s.io/v1alpha2"},
		NoScheduler: true,
	})
	resources, err := c.Client().Discovery().ServerResourcesForGroupVersion("scheduling.k8s.io/v1alpha2")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range resources.APIResources {
		kinds = append(kinds, r.Kind)
	}
	if !strings.Contains(strings.Join(kinds, " "), "PodGroup") {
		t.Errorf("got the kinds %v, want PodGroup among them", kinds)
	}
}

// TestBare has nobody but KWOK at the apiserver.
func TestBare(t *testing.T) {
	e2e(t)
	t.Parallel()
	c := Start(t, Options{NoScheduler: true, NoControllers: true})
	nodes, err := c.Nodes(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	template := podTemplate("alone")
	template.Spec.NodeName, template.Name = nodes[0], "alone"
	pod := corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	client := c.Client().CoreV1().Pods("default")
	if _, err := client.Create(t.Context(), &pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	attempt := 0
	eventually(t, "alone to run", func() error {
		if _, runs := pods(t.Context(), t, c, "alone"); runs == 1 {
			return nil
		}
		// KWOK passes over a pod that it hears of before it has its node among those that it plays, until it changes.
		attempt++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"attempt":"%d"}}}`, attempt)
		_, err := client.Patch(t.Context(), "alone", types.MergePatchType, patch, metav1.PatchOptions{})
		return errors.Join(errors.New("it does not run"), err)
	})
}

func TestStartSaysWhatFailed(t *testing.T) {
	e2e(t)
	dir := t.TempDir()
	_, err := Up(t.Context(), Options{Dir: dir, Args: map[string][]string{apiserver: {"--no-such-flag"}}}, testLog{t})
	if err == nil {
		t.Fatal("an apiserver with a flag that it does not know started")
	}
	for _, want := range []string{dir, "kube-apiserver", "exit status", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

// orphanEnv makes the test binary start programs, print their ids and wait to be killed.
const orphanEnv = "TEGEN_TEST_ORPHANS"

func TestNoOrphans(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are started on Linux only")
	}
	t.Run("program", func(t *testing.T) { testNoOrphans(t, "program", 1) })
	t.Run("cluster", func(t *testing.T) {
		e2e(t)
		testNoOrphans(t, "cluster", 5)
	})
}

// testNoOrphans kills a process that has started programs and wants all of them gone.
func testNoOrphans(t *testing.T, mode string, want int) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), orphanEnv+"="+mode, "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err := errors.Join(err, cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, word := range strings.Fields(line) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := cmd.Wait(); err == nil || len(pids) != want {
		t.Fatalf("got %d processes and %v, want %d and a killed parent", len(pids), err, want)
	}
	eventually(t, "the programs to end with the process that started them", func() error {
		for _, pid := range pids {
			if running(pid) {
				return fmt.Errorf("process %d runs", pid)
			}
		}
		return nil
	})
}

// orphanParent is the process that testNoOrphans kills.
func orphanParent(mode string) int {
	var ps []*Process
	switch mode {
	case "program":
		p, err := startProcess("sleep", os.DevNull, "sleep", []string{"600"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		ps = append(ps, p)
	case "cluster":
		c, err := Up(context.Background(), Options{}, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		ps = c.processes()
	}
	var pids []string
	for _, p := range ps {
		pids = append(pids, strconv.Itoa(p.Pid()))
	}
	if _, err := os.Stdout.WriteString(strings.Join(pids, " ") + "\n"); err != nil {
		return 1
	}
	select {}
}
