package keys

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// share is what the nodes of a run take.
type share struct {
	usage
	of owner
}

// owner is the run, or the like, whose share a node counts for; its zero value is none.
type owner struct {
	at   string // a path that no other owner has
	name string // in messages
}

// ownerOf returns the owner of a path. Below the directories of backend etcd-v2, what is of no run that
// can be told shares what a run may take: directories that base64's slashes make, and what others write.
func ownerOf(p string) owner {
	if id, ok := StateOf(p); ok {
		return stateOwner(id)
	}
	if base, ok := strings.CutPrefix(p, torchKeys); ok {
		if name, err := base64.StdEncoding.DecodeString(base); err == nil {
			if match := publishedName.FindSubmatch(name); match != nil {
				return stateOwner(string(match[1]))
			}
		}
		return owner{torchKeys, "what is of no run below " + torchKeys}
	}
	if dir, id, ok := RunPath(p); ok {
		return owner{dir, fmt.Sprintf("run %q", id)}
	}
	return owner{}
}

func stateOwner(id string) owner { return owner{torchStates + id, fmt.Sprintf("run %q", id)} }

// publishedName is the name of a key that an agent of a run of backend etcd-v2 publishes for the others (see
// isPublished). An id with a slash may look like a shorter one with its round: it then counts for that.
var publishedName = regexp.MustCompile(`(?s)^torch\.rendezvous\.(.+?)\.[0-9]+/`)

// RunPath is the directory of the run that a path is in, the topmost one where there are several, and the run's id.
func RunPath(p string) (dir, id string, ok bool) {
	i := strings.Index(p, "/"+runPrefix)
	if i < 0 {
		return "", "", false
	}
	from := i + len("/"+runPrefix)
	id, _, _ = strings.Cut(p[from:], "/")
	return p[:from+len(id)], id, true
}

// hold counts a node for its owner from now on.
func (t *tree) hold(n *node) {
	o := ownerOf(n.path)
	if o.at == "" {
		return
	}
	if t.shares[o.at] == nil {
		t.shares[o.at] = &share{of: o}
	}
	n.held = t.shares[o.at]
}
