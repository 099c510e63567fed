package bundles

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// TestKeygen plays the Job that makes certificates, with the programs, the words and the rights that are rendered for
// it: it fills the Secret once, can do nothing else, and applying the Secret again takes nothing from it.
func TestKeygen(t *testing.T) {
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
	const namespace, secret, account = "training", "digits-proxy-rendezvous-tls", "digits-proxy-keygen"
	ctx, c := t.Context(), cluster.Start(t, cluster.Options{NoScheduler: true, NoControllers: true})
	kubectl, err := cluster.Program(ctx, os.Stderr, cluster.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "tegen-rendezvous")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/tegen-rendezvous")
	build.Dir, build.Env = root+"/rendezvous", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building tegen-rendezvous: %v\n%s", err, out)
	}
	if _, err := c.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(root + "/golden/proxy-companion/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := objects.Read("base.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]schema.GroupVersionResource{
		"Secret":         {Version: "v1", Resource: "secrets"},
		"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"},
		"Role":           {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		"RoleBinding":    {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	}
	var pod corev1.PodSpec
	apply := func() {
		for _, o := range all {
			if gvr, ok := resources[o.GetKind()]; ok {
				if err := c.Apply(ctx, gvr, o.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			var job batchv1.Job
			if o.GetKind() == "Job" && o.GetName() == account {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &job); err != nil {
					t.Fatal(err)
				}
				pod = job.Spec.Template.Spec
			}
		}
	}
	apply()
	read := func() *corev1.Secret {
		s, err := c.Client().CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	as := func(words ...string) (string, error) {
		words = append(words, "--kubeconfig="+c.Kubeconfig(), "--as=system:serviceaccount:"+namespace+":"+account)
		out, err := exec.CommandContext(ctx, kubectl, words...).CombinedOutput()
		return string(out), err
	}
	// begin is one pod of the Job, into which the Secret's present keys are mounted. It returns what stores those that
	// the pod has made.
	begin := func() (store func() (string, error)) {
		keys, home := t.TempDir(), t.TempDir()
		for name, value := range read().Data {
			if err := os.WriteFile(filepath.Join(keys, name), value, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		here := strings.NewReplacer("/tegen/keys", keys, "/tegen/home", home)
		replaced := func(words []string) (out []string) {
			for _, w := range words {
				out = append(out, here.Replace(w))
			}
			return out
		}
		makes := exec.CommandContext(ctx, program, replaced(pod.InitContainers[0].Args)...)
		if out, err := makes.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("making certificates printed %q: %v", out, err)
		}
		return func() (string, error) { return as(replaced(pod.Containers[0].Command[1:])...) }
	}
	run := func() {
		out, err := begin()()
		if err != nil {
			t.Fatalf("storing them: %v\n%s", err, out)
		}
		if strings.Contains(out, "PRIVATE") || strings.Contains(out, "LS0t") {
			t.Errorf("kubectl prints keys: %s", out)
		}
	}
	late := begin() // while the Secret is empty, such as that of another version
	run()
	first := read()
	if out, err := late(); err == nil || strings.Contains(out, "PRIVATE") || strings.Contains(out, "LS0t") {
		t.Errorf("a second authority replaced the first: %s", out)
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever { // a new pod finds the keys, and succeeds
		t.Errorf("that pod stores the same again: it is restarted %s", pod.RestartPolicy)
	}
	var names []string
	for name, value := range first.Data {
		if names = append(names, name); !bytes.HasPrefix(value, []byte("-----BEGIN ")) {
			t.Errorf("%s is no PEM file", name)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "ca.crt client.crt client.key server.crt server.key" {
		t.Errorf("the Secret has %s", got)
	}
	run()
	apply()
	if second := read(); second.ResourceVersion != first.ResourceVersion {
		t.Errorf("the Secret changed when its Job ran again, or it was applied again: it has %d keys", len(second.Data))
	}
	for _, words := range [][]string{
		{"get", "secrets", "-n", namespace},
		{"delete", "secret", secret, "-n", namespace},
		{"get", "secret", "other", "-n", namespace},
		{"patch", "secret", secret, "-n", "default", "--type=merge", "--patch={}"},
		{"get", "pods", "-n", namespace},
	} {
		if out, err := as(words...); err == nil || !strings.Contains(out, "Forbidden") {
			t.Errorf("the Job may %q: %s", words, out)
		}
	}
}
