package schema

import "github.com/tegen-dev/tegen/internal/structural"

// Said is what a command tells of a job beside its objects. It is a tenth of a job: who has thousands rendered keeps
// this alone.
type Said struct {
	Name, Namespace string
	Notes           []string
	Unfilled        []string // as of Job.Unfilled
	Expires         string   // as of Job.Expires
	SaysGitOps      bool     // itself, or its Environment
	Hashed          bool     // for git, with hashes in names

	at    structural.Position
	place func() string
}

// Position is where the job starts.
func (s *Said) Position() string { return placed(s.at, s.place) }

// Said gathers it.
func (j *Job) Said() *Said {
	return &Said{
		Name: j.Metadata.Name, Namespace: j.Metadata.Namespace, Notes: j.Notes(), Unfilled: j.Unfilled(),
		Expires: j.Expires(), SaysGitOps: j.SaysGitOps(), Hashed: j.Spec.GitOps && j.Spec.HashedNames,
		at: j.at, place: j.place,
	}
}
