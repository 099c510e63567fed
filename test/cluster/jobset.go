package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// startJobSet runs JobSet's controller with its webhooks.
func startJobSet(ctx context.Context, c *Cluster) error {
	address, err := freeAddresses(3)
	if err != nil {
		return err
	}
	metrics, webhooks, health := address[0], address[1], address[2]
	dir := filepath.Join(c.Dir(), JobSet)
	authority, err := writeCertificate(dir)
	if err != nil {
		return fmt.Errorf("making the certificate of its webhooks: %w", err)
	}
	host, port, err := net.SplitHostPort(webhooks)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: %q, certDir: %q}
webhook: {host: %s, port: %s, certDir: %[2]q}
`, metrics, dir, host, port), 0o600); err != nil {
		return err
	}
	if err := c.runOperator(ctx, JobSet, health, nil, "--config="+file,
		"--health-probe-bind-address="+health); err != nil {
		return err
	}
	return c.applyWebhooks(ctx, JobSet, webhookSource{
		file: "config/components/webhook/manifests.yaml", address: webhooks, authority: authority,
		// Its installation asks about no other pod either.
		pods: "jobset.sigs.k8s.io/jobset-name",
	})
}
