package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

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

// webhookSource says where the webhooks of an operator are described, and where they are.
type webhookSource struct {
	file      string // of its module, as controller-gen writes them
	address   string
	authority []byte // of the certificate
	pods      string // the label of the pods that it is asked about; "" for all pods
	kind      string // the one that it is asked about; "" for all kinds
}

// applyWebhooks has the API server ask an operator, as its installation does, at an address that is no Service: nothing
// routes to one here.
func (c *Cluster) applyWebhooks(ctx context.Context, program string, from webhookSource) error {
	module, err := Source(ctx, program)
	if err != nil {
		return err
	}
	file := filepath.Join(module, from.file)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading its webhooks: %w", err)
	}
	for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if o.Object == nil { // a comment
			continue
		}
		all, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		var webhooks []any
		for _, entry := range all {
			if webhook, _ := entry.(map[string]any); from.asks(webhook) {
				from.move(webhook)
				webhooks = append(webhooks, webhook)
			}
		}
		o.Object["webhooks"] = webhooks
		o.SetName(program + "-" + o.GetName())
		if err := c.Apply(ctx, schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s",
		}, o); err != nil {
			return err
		}
	}
	return nil
}

// asks is whether a webhook is one of the kind's, which is the end of its path.
func (from webhookSource) asks(webhook map[string]any) bool {
	path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
	return from.kind == "" || strings.HasSuffix(path, "-"+strings.ToLower(from.kind))
}

// move leads a webhook to the address.
func (from webhookSource) move(webhook map[string]any) {
	path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
	webhook["clientConfig"] = map[string]any{"url": "https://" + from.address + path, "caBundle": from.authority}
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	for _, entry := range rules {
		rule, _ := entry.(map[string]any)
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		if from.pods != "" && slices.Contains(resources, "pods") {
			webhook["objectSelector"] = map[string]any{
				"matchExpressions": []any{map[string]any{"key": from.pods, "operator": "Exists"}},
			}
		}
	}
}
