package schema

import (
	"fmt"
	"slices"
	"time"
)

// SaysGitOps says whether the job or its Environment gives gitops a value; without one it follows from the way in which
// the job is rendered.
func (j *Job) SaysGitOps() bool { return j.asked.gitops }

// Expires returns how long after their end the workers' object, and Jobs that fetch datasets, delete themselves, as
// 168h; "" where nothing does.
func (j *Job) Expires() string {
	s, t := &j.Spec, rowOf(&j.Spec)
	fetches := slices.ContainsFunc(s.Storage, func(v Storage) bool { return v.Dataset != nil })
	if s.GitOps || s.TTLAfterFinished.None || t == nil || !fetches && !t.Carries("ttlAfterFinished") {
		return ""
	}
	return short(s.TTLAfterFinished.Duration)
}

// OwnAccount says whether the job needs a ServiceAccount for rights: one that is rendered or one that exists.
func (s *Spec) OwnAccount() bool {
	id := s.Identity
	return id != nil && id.NodeRole == nil
}

// accountNotes tell of bare pods whose account is rendered with them: Flux tries all objects before it applies any, and
// the API server refuses a pod whose account is not there yet.
func (j *Job) accountNotes() []string {
	s := &j.Spec
	if !s.GitOps || s.Target != TargetPods || !s.OwnAccount() || s.Identity.ServiceAccount != "" {
		return nil
	}
	return []string{"spec.identity: Flux does not apply pods together with their ServiceAccount, unless its " +
		"kustomize-controller runs with --custom-apply-stage-kinds=/ServiceAccount; or name an account that exists " +
		"in identity.serviceAccount, or use target job"}
}

// unseen is how long the MPI operator may be away, for the start of another one at least: it takes a launcher's Job
// that is gone before it saw the Job end for one that was never made, and makes it (syncHandler in pkg/controller).
const unseen = time.Hour

// lifetimeNotes tell an author whose time to live is not rendered, or runs the training again.
func (j *Job) lifetimeNotes() []string {
	ttl := &j.Spec.TTLAfterFinished
	switch {
	case !j.asked.lifetime:
		return nil
	case !j.Spec.GitOps && j.Spec.Target == TargetMPIJob && ttl.Duration.Duration < unseen:
		return []string{fmt.Sprintf("spec.ttlAfterFinished: %s deletes the launcher's Job, and where the MPI operator "+
			"has not seen its end by then, as when it was being replaced, it starts the training again: set 1h or more",
			short(ttl.Duration))}
	case !j.Spec.GitOps:
		return nil
	}
	return []string{"spec.ttlAfterFinished: is not rendered for git, since a reconciler runs again what deleted " +
		"itself; gitops: false renders it for kubectl apply"}
}
