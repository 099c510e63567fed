package generators

import "github.com/tegen-dev/tegen/schema"

// ttl is how long a finished job is kept, in seconds; nil under a reconciler, which would run it again.
func ttl(job *schema.Job) *int32 {
	if job.Spec.GitOps {
		return nil
	}
	return ptr(int32(seconds(job.Spec.TTLAfterFinished)))
}

// deadline is how long a job may take, in seconds; nil for ever.
func deadline(job *schema.Job) *int64 {
	if d := job.Spec.Failure.Deadline; d != nil {
		return ptr(seconds(*d))
	}
	return nil
}
