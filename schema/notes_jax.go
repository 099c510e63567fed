package schema

// jaxNotes tell what jax.distributed.initialize() does not find by itself (jax 0.10.2, jax/_src/distributed.py): it
// asks Kubernetes for it, for which these pods have neither a token nor rights.
func (s *Spec) jaxNotes() []string {
	if s.Framework != FrameworkJAX || s.TPU() || s.Workers.Replicas < 2 {
		return nil
	}
	return []string{"spec.framework: jax.distributed.initialize() reads the coordinator's address alone: give it " +
		"num_processes=int(os.environ[\"JAX_NUM_PROCESSES\"]) and process_id=int(os.environ[\"JAX_PROCESS_ID\"])"}
}
