package gitops

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/test/cluster"
)

const operatorNamespace = "operators"

// startOperators starts the controllers of JobSets, with its webhooks, and of PyTorchJobs.
func startOperators(ctx context.Context, c *cluster.Cluster) error {
	for program, folder := range map[string]string{
		cluster.JobSet: "config/components/crd/bases", cluster.TrainingOperator: "manifests/base/crds",
	} {
		if err := applyCRDs(ctx, c, program, folder); err != nil {
			return err
		}
	}
	ports, err := cluster.FreePorts(4)
	if err != nil {
		return err
	}
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	dir := filepath.Join(c.Dir(), cluster.JobSet)
	authority, err := writeCertificate(dir)
	if err != nil {
		return fmt.Errorf("making the certificate of JobSet's webhooks: %w", err)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: %q, certDir: %q}
webhook: {host: 127.0.0.1, port: %d, certDir: %[2]q}
`, address(0), dir, ports[1]), 0o600); err != nil {
		return err
	}
	if err := runOperator(ctx, c, cluster.JobSet, address(2), "--config="+file,
		"--health-probe-bind-address="+address(2)); err != nil {
		return err
	}
	if err := applyWebhooks(ctx, c, "https://"+address(1), authority); err != nil {
		return fmt.Errorf("applying JobSet's webhooks: %w", err)
	}
	return runOperator(ctx, c, cluster.TrainingOperator, address(3), address(3))
}

func runOperator(ctx context.Context, c *cluster.Cluster, name, health string, args ...string) error {
	kubeconfig, err := account(ctx, c, operatorNamespace, name)
	if err != nil {
		return fmt.Errorf("making the account of %s: %w", name, err)
	}
	program, err := cluster.Program(ctx, io.Discard, name)
	if err != nil {
		return err
	}
	p, err := c.RunWith(ctx, []string{"KUBECONFIG=" + kubeconfig}, name, program, args...)
	if err != nil {
		return err
	}
	return p.Ready(ctx, "http://"+health+"/readyz")
}

// writeCertificate writes a certificate for 127.0.0.1 that signs itself, as controller-runtime reads one.
func writeCertificate(dir string) (authority []byte, err error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), authority, 0o600); err != nil {
		return nil, err
	}
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return authority, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)
}

// applyWebhooks has the API server ask JobSet about JobSets, as its installation does, at an address that is no
// Service: nothing routes to one here. Its webhooks for pods, which place them exclusively where asked, are left out.
func applyWebhooks(ctx context.Context, c *cluster.Cluster, url string, authority []byte) error {
	module, err := cluster.Source(ctx, cluster.JobSet)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(module, "config/components/webhook/manifests.yaml"))
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return err
		}
		webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		var kept []any
		for _, entry := range webhooks {
			webhook, _ := entry.(map[string]any)
			path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			if !strings.Contains(path, "jobset") {
				continue
			}
			webhook["clientConfig"] = map[string]any{"url": url + path, "caBundle": authority}
			kept = append(kept, webhook)
		}
		o.Object["webhooks"] = kept
		resource := strings.ToLower(o.GetKind()) + "s"
		o.SetName("jobset-" + o.GetName())
		if err := apply(ctx, c, schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource,
		}, o); err != nil {
			return err
		}
	}
	return nil
}
