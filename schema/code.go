package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Code mirrors #Code.
type Code struct {
	MountPath string `json:"mountPath"`
	Git       *Git   `json:"git,omitempty"`
	Image     string `json:"image,omitempty"`
}

// Git mirrors #Code.git.
type Git struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref,omitempty"`
	Secret     string `json:"secret,omitempty"`
	Size       Amount `json:"size"`
}

// SSH says whether the repository is reached by ssh, and not by https.
func (g *Git) SSH() bool { return !strings.HasPrefix(g.Repository, "https://") }

var codeRules = []rule{
	{(*validation).codePlace, "code storage"},
	{(*validation).codeKey, "code"},
	{(*validation).codeReach, "code network"},
}

// codePlace refuses a directory that is something else's.
func (r *validation) codePlace() {
	if r.Spec.Code == nil {
		return
	}
	const at = "spec.code.mountPath"
	own := strings.TrimSuffix(r.Spec.Code.MountPath, "/")
	for i, v := range r.Spec.Storage {
		if strings.TrimSuffix(v.MountPath, "/") == own {
			r.fail(at, "duplicate", "%s is where spec.storage[%d] is mounted already", own, i)
		} else if strings.HasPrefix(v.MountPath, own+"/") {
			r.fail(at, "requires", "spec.storage[%d] is mounted below it, at %s, and no directory can be made for it "+
				"among code that is mounted for reading alone: mount one of them elsewhere", i, v.MountPath)
		}
	}
}

// codeKey asks for the key without which no host lets anybody in by ssh.
func (r *validation) codeKey() {
	if c := r.Spec.Code; c != nil && c.Git != nil && c.Git.SSH() && c.Git.Secret == "" {
		r.fail("spec.code.git.secret", "requires", "%s is reached by ssh, which needs a key: name a Secret with "+
			"ssh-privatekey and known_hosts, or give the URL for https", c.Git.Repository)
	}
}

// codeReach refuses a repository to which the pods may not connect.
func (r *validation) codeReach() {
	n, c := &r.Spec.Network, r.Spec.Code
	if c == nil || c.Git == nil || !n.Policy || !n.limits() {
		return
	}
	port := c.Git.port()
	if !n.opens(port) {
		r.fail("spec.network.egress", "requires", "with %s no pod reaches the repository of spec.code.git: add to "+
			"allowTo the addresses of its host, with port %d", n.Egress, port)
	}
}

// port is that of the repository's host.
func (g *Git) port() int32 {
	if _, rest, ok := strings.Cut(g.Repository, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if n, err := strconv.ParseInt(host[strings.LastIndex(host, ":")+1:], 10, 32); err == nil {
			return int32(n)
		}
	}
	if g.SSH() {
		return 22
	}
	return 443
}

// codeNotes tell of code that may change while a job runs.
func (s *Spec) codeNotes() []string {
	if s.Code == nil || s.Code.Git == nil || wholeCommit().MatchString(s.Code.Git.Ref) {
		return nil
	}
	ref := s.Code.Git.Ref
	if ref == "" {
		ref = "the default branch"
	}
	return []string{fmt.Sprintf("spec.code.git.ref: %s may be another commit when a pod is made again, and workers "+
		"then run different code: set a whole commit", ref)}
}
