package schema

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
	"github.com/tegen-dev/tegen/schema/target"
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
func (s *Summary) Position() string { return job.Placed(s.at, s.place) }

// Summarize gathers what is reported of the job.
func Summarize(j *job.Job) *Summary {
	return &Summary{
		Name: strings.Clone(j.Metadata.Name), Namespace: strings.Clone(j.Metadata.Namespace),
		Notes: note.Of(j), Unfilled: j.Unfilled(),
		Expires: target.Expires(j), SaysGitOps: j.SaysGitOps(), Hashed: j.Spec.GitOps && j.Spec.HashedNames,
		at: j.Origin.At, place: j.Origin.Place,
	}
}
