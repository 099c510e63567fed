package plan

import (
	"fmt"
	"strconv"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// numbered names end in a number, or have it before a domain or random letters: etcd-2.etcd-peer.ml.svc, worker-0-*.
var numberedName = lazy.Regexp(`^([^.*]*-)(0|[1-9][0-9]{0,8})((?:\.|-\*).*)?$`)

// ranges joins names that differ in consecutive numbers only: worker-{0..127}-*. Equal names are one.
func ranges(names []string) []string {
	var out []string
	var prefix, suffix string
	first, last := -1, -1
	flush := func() {
		switch {
		case first < 0:
		case first == last:
			out = append(out, prefix+strconv.Itoa(first)+suffix)
		default:
			out = append(out, fmt.Sprintf("%s{%d..%d}%s", prefix, first, last, suffix))
		}
		first = -1
	}
	for _, name := range names {
		m := numberedName().FindStringSubmatch(name)
		if m == nil {
			flush()
			if len(out) == 0 || out[len(out)-1] != name {
				out = append(out, name)
			}
			continue
		}
		n, _ := strconv.Atoi(m[2]) // at most nine digits
		if first >= 0 && m[1] == prefix && m[3] == suffix && n == last+1 {
			last = n
			continue
		}
		flush()
		prefix, suffix, first, last = m[1], m[3], n, n
	}
	flush()
	return out
}
