package scheduling

import (
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/tegen-dev/tegen/test/cluster"
)

// insecure asks servers of this machine whose certificates nobody signed.
var insecure = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // a test's own server on loopback

// TestGangs tells the stories of gangs one after another on one control plane, each on nodes of its own.
func TestGangs(t *testing.T) {
	l := newLab(t, cluster.Options{})
	if _, err := l.Nodes(t.Context(), 2, 1); err != nil {
		t.Fatal(err)
	}
	ns := l.namespace("team")

	whole := of(ns, "whole", 4, 4, 1)
	l.create(whole, 0, 4)
	l.told(whole, "gang team/whole needs 4 pods at once and has room for 2", "2 Insufficient nvidia.com/gpu")
	l.stays(whole, 0)
	l.drop(whole)

	part := of(ns, "part", 4, 2, 1)
	l.create(part, 0, 4)
	l.runs(part, 2)
	if _, err := l.Nodes(t.Context(), 2, 1); err != nil {
		t.Fatal(err)
	}
	l.runs(part, 4)
	l.drop(part)
}
