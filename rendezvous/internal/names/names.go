// Package names contains the names that the command, its packages and the manifests that tegen renders agree on.
package names

import (
	"runtime/debug"
	"sync"
)

// Rendezvous is the name of the program and of its image.
const Rendezvous = "tegen-rendezvous"

// RendezvousPassword is the variable with the password of an etcd.
const RendezvousPassword = "TEGEN_RENDEZVOUS_PASSWORD"

// BuildVersion is the version of the module, which 'go install' and release builds record.
var BuildVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
})
