package names

import (
	"runtime/debug"
	"strings"
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
	return versionOf(info)
})

func versionOf(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path == module {
			version := m.Version
			if r := m.Replace; r != nil && strings.HasPrefix(r.Version, "v") {
				version = r.Path + " " + r.Version
			} else if r != nil { // by a directory, whose path differs between machines
				version += ", replaced"
			}
			return version + " (" + info.Main.Path + " " + info.Main.Version + ")"
		}
	}
	return info.Main.Version
}
