package names

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/tegen-dev/tegen"

// BuildVersion is the version of tegen, which 'go install' and release builds record. In a program that extends tegen
// the module and version of the program follow: another version of it may render another workload too.
var BuildVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version + " (" + info.Main.Path + " " + info.Main.Version + ")"
		}
	}
	return info.Main.Version
})
