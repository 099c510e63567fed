package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

// Summary is what commands report of a job beside its objects. It takes a tenth of a job's memory: after rendering
// thousands of jobs, commands keep only this. Nothing in it holds on to the text of the document.
type Summary struct {
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
func (s *Summary) Position() string { return placed(s.at, s.place) }

// Summary gathers what is reported of the job.
func (j *Job) Summary() *Summary {
	return &Summary{
		Name: strings.Clone(j.Metadata.Name), Namespace: strings.Clone(j.Metadata.Namespace),
		Notes: j.Notes(), Unfilled: j.Unfilled(),
		Expires: j.Expires(), SaysGitOps: j.SaysGitOps(), Hashed: j.Spec.GitOps && j.Spec.HashedNames,
		at: j.at, place: j.place,
	}
}
