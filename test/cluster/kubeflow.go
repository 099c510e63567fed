package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// startTrainingOperator runs the training operator with one of its kinds, and that kind's webhook.
func startTrainingOperator(name, kind string) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		address, err := freeAddresses(2)
		if err != nil {
			return err
		}
		health, webhooks := address[0], address[1]
		dir := filepath.Join(c.Dir(), name)
		authority, err := writeCertificate(dir)
		if err != nil {
			return fmt.Errorf("making the certificate of its webhooks: %w", err)
		}
		if err := c.runOperator(ctx, name, health, nil, health, webhooks, dir, kind); err != nil {
			return err
		}
		return c.applyWebhooks(ctx, name, webhookSource{
			file: "manifests/base/webhook/manifests.yaml", address: webhooks, authority: authority, kind: kind,
		})
	}
}

// startTrainer runs Trainer's controller with its webhooks. It makes JobSets, so JobSet's must run before.
func startTrainer(ctx context.Context, c *Cluster) error {
	address, err := freeAddresses(2)
	if err != nil {
		return err
	}
	health, webhooks := address[0], address[1]
	dir := filepath.Join(c.Dir(), Trainer)
	// It has no setting for this folder, which is controller-runtime's own in that for temporary files.
	authority, err := writeCertificate(filepath.Join(dir, "k8s-webhook-server", "serving-certs"))
	if err != nil {
		return fmt.Errorf("making the certificate of its webhooks: %w", err)
	}
	host, port, err := net.SplitHostPort(webhooks)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
certManagement: {enable: false}
health: {healthProbeBindAddress: %q}
metrics: {bindAddress: "0"}
webhook: {host: %s, port: %s}
`, health, host, port), 0o600); err != nil {
		return err
	}
	if err := c.runOperator(ctx, Trainer, health, []string{"TMPDIR=" + dir}, "--config="+file); err != nil {
		return err
	}
	return c.applyWebhooks(ctx, Trainer, webhookSource{
		file: "manifests/base/webhook/manifests.yaml", address: webhooks, authority: authority,
	})
}
