package names

// The images of a release, each with its digest, which the build of that release links in ('make release'). In every
// other build they are empty: no published image belongs to it.
var (
	ReleasedRendezvous string
	ReleasedScheduler  string
)
