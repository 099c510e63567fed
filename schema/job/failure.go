package job

import (
	"slices"
)

// What a rule of failures says.
const (
	ThenFail                  = "fail"
	ThenRestart               = "restart"
	ThenRestartUncounted      = "restartUncounted"
	ThenRestartGroup          = "restartGroup"
	ThenRestartGroupUncounted = "restartGroupUncounted"
)

// FailureRule mirrors #FailureRule.
type FailureRule struct {
	Groups  []string `json:"groups,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	Then    string   `json:"then"`
}

// GroupFailure mirrors #GroupFailure.
type GroupFailure struct {
	Restarts          *Restarts `json:"restarts,omitempty"`
	FatalExitCodes    []int32   `json:"fatalExitCodes,omitempty"`
	IgnoreDisruptions *bool     `json:"ignoreDisruptions,omitempty"`
	InPlace           *bool     `json:"inPlace,omitempty"`
}

// Restarts says whether a failure that a rule is about starts pods anew without being counted.
func (f FailureRule) Restarts() bool {
	return f.Then == ThenRestartUncounted || f.Then == ThenRestartGroupUncounted
}

// FailureOf is what a failed pod of a component means: of a group what it says itself, and else what holds for all.
func (s *Spec) FailureOf(component string) *Failure {
	g := s.Group(component)
	if g == nil {
		return &s.Failure
	}
	f := s.Failure
	f.FatalExitCodes = nil // those of the workers' program
	own := g.Failure
	if own == nil {
		return &f
	}
	if own.Restarts != nil {
		f.Restarts, f.RestartsPerWorker = *own.Restarts, nil
	}
	if own.InPlace != nil {
		f.InPlace, f.IgnoreDisruptions = *own.InPlace, f.IgnoreDisruptions && !*own.InPlace
	}
	if own.IgnoreDisruptions != nil {
		f.IgnoreDisruptions = *own.IgnoreDisruptions
	}
	f.FatalExitCodes = own.FatalExitCodes
	return &f
}

// Failing are the workers and the groups, of which each fails in its own way.
func (s *Spec) Failing(does func(*Failure) bool) bool {
	return slices.ContainsFunc(append([]string{RoleWorker}, s.GroupNames()...), func(name string) bool {
		return does(s.FailureOf(name))
	})
}

// RestartsOnDisruption says whether a disruption starts all pods anew.
func (s *Spec) RestartsOnDisruption() bool {
	return s.Failing(func(f *Failure) bool { return f.IgnoreDisruptions && !f.ReplacesAlone() })
}

// HasFatalCodes says whether some exit code fails the job at once.
func (s *Spec) HasFatalCodes() bool {
	return s.Failing(func(f *Failure) bool { return len(f.FatalExitCodes) > 0 })
}

// RuleDecides says whether rules of the author decide each failure for a reason, whatever the group that it befalls.
func (s *Spec) RuleDecides(reason string) bool {
	return !slices.ContainsFunc(append([]string{RoleWorker}, s.GroupNames()...), func(name string) bool {
		one := FailureRule{Groups: []string{name}, Reasons: []string{reason}}
		return !slices.ContainsFunc(s.Failure.Rules, one.Within)
	})
}

// MakesJobs says whether the workers are a Job of Kubernetes that replaces pods, by itself or made by a controller.
func (s *Spec) MakesJobs() bool {
	return !s.ParameterServers() && (s.Target == TargetJob || s.Target == TargetJobSet || s.Target == TargetTrainJob)
}

// TellsApart says whether some failures are to count for more or less than others.
func (f *Failure) TellsApart() bool { return f.IgnoreDisruptions || len(f.FatalExitCodes) > 0 }

// Within says whether an earlier rule decides all that a rule is about.
func (f FailureRule) Within(earlier FailureRule) bool {
	covers := func(all, some []string) bool {
		return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some, func(one string) bool {
			return !slices.Contains(all, one)
		})
	}
	return covers(earlier.Groups, f.Groups) && covers(earlier.Reasons, f.Reasons)
}
