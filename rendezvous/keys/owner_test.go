package keys

import "testing"

// TestRunPath holds it against keys that only look alike.
func TestRunPath(t *testing.T) {
	for key, want := range map[string]string{
		"/torchelastic/p2p/run_a/rdzv/v_1": "/torchelastic/p2p/run_a a", "/run_a": "/run_a a", "/run_a/": "/run_a a",
		"/rerun_a":         " ",
		"/a/run_a.b/run_c": "/a/run_a.b a.b", "": " ",
	} {
		dir, id, _ := RunPath(key)
		if got := dir + " " + id; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

// TestOwner: by its path alone a node counts for its run, however the backend names it.
func TestOwner(t *testing.T) {
	for p, want := range map[string]string{
		"/": "", "/torch": "", "/p/run_a/k": `run "a"`, "/run_a/run_b/k": `run "a"`,
		torchStates + "job": `run "job"`, torchStates + "run_x": `run "run_x"`,
		torchStates + "team/job":  `run "team/job"`,
		publishedAt("job", "0/k"): `run "job"`, publishedAt("job.v2", "12/k"): `run "job.v2"`,
		publishedAt("run_x", "0/k/1.2/l"): `run "run_x"`,
		publishedAt("job", "none"):        "what is of no run below " + torchKeys,
		torchKeys + "x":                   "what is of no run below " + torchKeys,
	} {
		if got := ownerOf(p).name; got != want {
			t.Errorf("%s: got %s, want %s", p, got, want)
		}
	}
}
