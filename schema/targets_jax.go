package schema

// jaxLacks is from jax 0.10.2: jax/_src/distributed.py waits for all processes and ends with the first that is lost.
var jaxLacks = lacks{
	"workers.min":        "JAX trains with exactly the processes that it had at the start",
	"workers.firstIndex": "its pods are counted from 0",
}

// onlySets is why others than a JobSet have no slices.
const onlySets = "only a JobSet has a Job for each slice of the workers"
