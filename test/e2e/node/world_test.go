package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tegen-dev/tegen/test/wait"
)

const (
	root = "../../.."
	// patience is for one step of a scenario, which takes seconds, on a machine of two cores where all scenarios run.
	patience = 5 * time.Minute
	poll     = 500 * time.Millisecond // of a scenario: there are eight, and one API server
	// cores is what all scenarios together request, of those that take turns one. They wait more than they compute.
	cores = 4
)

// world is the cluster that all scenarios share.
type world struct {
	lab
	client    kubernetes.Interface
	metadata  metadata.Interface
	downloads downloads
	flux      flux
	operators operators
	turn      sync.Mutex // see takeTurn

	guard    sync.Mutex // of what follows
	provided map[string]bool
	before   map[string]map[string]bool // what a namespace had before any job, by namespace
	jobs     map[string][]string        // names, by namespace
}

func newWorld(l lab) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, 0 // the server's own fairness is enough
	config.WarningHandler = rest.NoWarnings{}
	w := &world{lab: l, provided: map[string]bool{}, before: map[string]map[string]bool{}, jobs: map[string][]string{}}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to the lab: %w", err)
	}
	if w.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to the lab: %w", err)
	}
	return w, w.makeRoom(context.Background())
}

// makeRoom adds nodes until those that take any pod have the cores that the scenarios request, so that none of them
// waits for another's end, and measures that. A lab that was used before has the nodes already.
func (w *world) makeRoom(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var has resource.Quantity
	for range cores + 1 { // a node has one at least
		nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing nodes: %w", err)
		}
		has = resource.Quantity{}
		for _, node := range nodes.Items {
			if !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 {
				has.Add(node.Status.Allocatable[corev1.ResourceCPU])
			}
		}
		if has.CmpInt64(cores) >= 0 {
			return nil
		}
		if _, err := w.AddNode(ctx, nil, nil); err != nil {
			return err
		}
	}
	return fmt.Errorf("making room for all scenarios: nodes that take any pod have %v cores, want %d", &has, cores)
}

// takeTurn waits until no other scenario has the turn, which a test has until its end. Those that take turns are short,
// and nobody needs to see them side by side.
func (w *world) takeTurn(t *testing.T) {
	t.Helper()
	w.turn.Lock()
	t.Cleanup(w.turn.Unlock)
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, within time.Duration, check func() error) {
	t.Helper()
	wait.Until(t, what, within, poll, check)
}

// kubectl runs the real program as a person would, and returns what it printed.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.tryKubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) tryKubectl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := w.kubectlCommand(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// kubectlCommand is kubectl with the environment of the lab: neither the user's clusters nor his plug-ins, and no proxy
// between it and the API.
func (w *world) kubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.Kubectl(), args...)
	cmd.Env = []string{"KUBECONFIG=" + w.Kubeconfig(), "HOME=" + os.TempDir(), "KUBECACHEDIR=" + os.TempDir() +
		"/tegen-kubectl-cache", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// enter makes a namespace that holds its pods to the restricted Pod Security Standard, or has one that is there do so,
// and remembers what it holds before the first job.
func (w *world) enter(t *testing.T, namespace string) {
	t.Helper()
	w.guard.Lock()
	defer w.guard.Unlock()
	if w.before[namespace] != nil {
		return
	}
	ctx, client := t.Context(), w.client.CoreV1()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatalf("making namespace %s: %v", namespace, err)
	}
	const labels = `{"metadata":{"labels":{` +
		`"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"latest"}}}`
	if _, err := client.Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(labels),
		metav1.PatchOptions{}); err != nil {
		t.Fatalf("labelling namespace %s: %v", namespace, err)
	}
	// Controllers make these, and the kubelet starts no pod without the second.
	eventually(t, "the account and the certificate of "+namespace, patience, func() error {
		if _, err := client.ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err := client.ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	w.checkRestricted(t, namespace)
	there, err := w.everything(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for _, o := range there {
		before[o.name] = true
	}
	w.before[namespace] = before
}

// checkRestricted holds that the namespace's label has an effect: a privileged pod is refused.
func (w *world) checkRestricted(t *testing.T, namespace string) {
	t.Helper()
	privileged := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "privileged"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "privileged", Image: "privileged", SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
		}}},
	}
	_, err := w.client.CoreV1().Pods(namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Fatalf("a privileged pod in namespace %s: got %v, want that Pod Security refuses it", namespace, err)
	}
}

// provideOnce has the lab provide the images that it does not have yet.
func (w *world) provideOnce(t *testing.T, images []string) {
	t.Helper()
	w.guard.Lock()
	defer w.guard.Unlock()
	images = slices.DeleteFunc(slices.Clone(images), func(name string) bool { return w.provided[name] })
	if len(images) == 0 {
		return
	}
	if err := w.Provide(t.Context(), images...); err != nil {
		t.Fatalf("providing images: %v", err)
	}
	for _, name := range images {
		w.provided[name] = true
	}
}
