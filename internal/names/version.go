package names

import (
	"runtime/debug"
	"sync"
)

// BuildVersion is the module's version, which 'go install' and release builds record.
var BuildVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
})
