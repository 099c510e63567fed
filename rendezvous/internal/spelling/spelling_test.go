package spelling

import "testing"

func TestSuggest(t *testing.T) {
	names := []string{"replicas", "min", "max", "processes"}
	for word, want := range map[string]string{
		"replica": `; did you mean "replicas"?`, "mxa": `; did you mean "max"?`,
		"Processes": `; did you mean "processes"?`, "gpus": "",
	} {
		if got := Suggest(word, names); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}
