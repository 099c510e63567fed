//go:build ignore

// Command coredns is CoreDNS with the plugins that a cluster's DNS needs. It is built by its name under coredns.mod;
// the constraint keeps its modules out of the product's.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func init() {
	dnsserver.Directives = []string{"bind", "health", "ready", "errors", "hosts", "kubernetes"}
}

func main() { coremain.Run() }
