package schema_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema"
)

// TestInput: comments, order and what tools write leave the digest as it is; what an author writes changes it.
func TestInput(t *testing.T) {
	const job = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\n" +
		"spec:\n  framework: torchelastic\n  image: example.org/a:1\n  command: [python]\n  workers: {replicas: 2}\n"
	const env = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec:\n" +
		"  overrides: {placement: {priorityClass: high}}\n"
	digest := func(text string) string {
		t.Helper()
		own, environment, _ := strings.Cut(text, "---\n")
		sources := []schema.Source{{Name: "job.yaml", Data: []byte(own)}}
		if environment != "" {
			sources = append(sources, schema.Source{
				Name: "environment.yaml", Data: []byte(environment), Environment: schema.AnyEnvironment,
			})
		}
		jobs, err := schema.LoadForGit(sources)
		if err != nil {
			t.Fatal(err)
		}
		return jobs[0].Input()
	}
	head := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"
	spec := "spec: # of two\n  workers: {\"replicas\": 2}\n  image: 'example.org/a:1'\n  command:\n  - python\n" +
		"  framework: torchelastic\n"
	for what, text := range map[string]string{
		"comments and order": "# mine\nkind: TrainingJob\napiVersion: tegen.dev/v1alpha1\nmetadata:\n" +
			"  namespace: ml\n  name: a\n" + spec,
		"what tools write": head + "metadata: {name: a, namespace: ml, annotations: " +
			"{config.kubernetes.io/local-config: 'true'}}\n" + spec,
	} {
		if digest(text) != digest(job) {
			t.Errorf("%s change the digest", what)
		}
	}
	seen := map[string]string{digest(job): "the job"}
	for what, text := range map[string]string{
		"a field":        job + "  suspend: true\n",
		"an annotation":  head + "metadata: {name: a, namespace: ml, annotations: {a: b}}\n" + spec,
		"an Environment": job + env,
		"another one":    job + env + "  namespace: other\n",
	} {
		if other := seen[digest(text)]; other != "" {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[digest(text)] = what
	}
}
