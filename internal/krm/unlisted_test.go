package krm_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

// TestUnlisted: a file of jobs that tegen renders and kustomize does not, or the other way round, is named; a file that
// is no job of the overlay's is not.
func TestUnlisted(t *testing.T) {
	second := strings.Replace(job, "name: resnet", "name: second", 1)
	patch := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: resnet, namespace: ml}\n" +
		"spec: {workers: {replicas: 3}}\n"
	files := func(more map[string]string) map[string]string {
		all := map[string]string{
			"jobs/kustomization.yaml":  header + "resources: [job.yaml]\n",
			"jobs/job.yaml":            job,
			"place/kustomization.yaml": header + "resources: [../jobs, other.yaml]\ntransformers: [tegen.yaml]\n",
			"place/tegen.yaml":         generator, "place/other.yaml": configMap,
		}
		maps.Copy(all, more)
		return all
	}
	const note = "no kustomization of place lists this file: "
	const add = ": add second.yaml to resources in jobs/kustomization.yaml"
	const build = "'kustomize build place' and 'tegen render --overlay place' leave its jobs out"
	for what, c := range map[string]struct {
		files map[string]string
		given []string // files; none stands for those of the overlay
		want  []string
	}{
		"listed": {files(nil), nil, nil},
		"not listed, and no files are given": {
			files(map[string]string{"jobs/second.yaml": second}), nil,
			[]string{"jobs/second.yaml:1:1: note: " + note + "its jobs are not rendered" + add},
		},
		"not listed, and its directory is given": {
			files(map[string]string{"jobs/second.yaml": second}),
			[]string{"jobs/job.yaml", "jobs/second.yaml"},
			[]string{"jobs/second.yaml:1:1: note: " + note + build + add},
		},
		"below the directory": {
			files(map[string]string{"jobs/team/second.yaml": second}), nil,
			[]string{"jobs/team/second.yaml:1:1: note: " + note + "its jobs are not rendered" +
				strings.Replace(add, "second", "team/second", 1)},
		},
		"in a kustomization that none lists": {
			files(map[string]string{
				"jobs/team/second.yaml": second, "jobs/team/kustomization.yaml": header + "resources: [second.yaml]\n",
			}),
			[]string{"jobs/job.yaml", "jobs/team/second.yaml"},
			[]string{"jobs/team/second.yaml:1:1: note: " + note + build +
				strings.Replace(add, "second.yaml", "team", 1)},
		},
		"in a kustomization of another overlay": {
			files(map[string]string{
				"jobs/team/second.yaml": second, "jobs/team/kustomization.yaml": header + "resources: [second.yaml]\n",
			}), nil, nil,
		},
		"in a nested kustomization": {
			files(map[string]string{
				"jobs/kustomization.yaml":      header + "resources: [job.yaml, team]\n",
				"jobs/team/kustomization.yaml": header + "resources: [some.yaml]\n",
				"jobs/team/some.yaml":          strings.Replace(configMap, "settings", "some", 1),
				"jobs/team/second.yaml":        second,
				"jobs/team/third.yaml":         strings.Replace(second, "second", "third", 1),
			}), nil,
			[]string{
				"jobs/team/second.yaml:1:1: note: " + note + "its jobs are not rendered: add second.yaml to " +
					"resources in jobs/team/kustomization.yaml",
				"jobs/team/third.yaml:1:1: note: " + note + "its jobs are not rendered: add third.yaml to resources " +
					"in jobs/team/kustomization.yaml",
			},
		},
		"a patch of the overlay": {
			files(map[string]string{
				"place/kustomization.yaml": header + "resources: [../jobs]\ntransformers: [tegen.yaml]\n" +
					"patches: [{path: patch.yaml}]\n", "place/patch.yaml": patch,
			}), nil, nil,
		},
		"a file that is no job": {files(map[string]string{"jobs/other.yaml": configMap}), nil, nil},
		"a directory that is not the overlay's": {
			files(map[string]string{"more/second.yaml": second}), []string{"more/second.yaml"}, nil,
		},
		"one file": {
			files(map[string]string{
				"jobs/kustomization.yaml": header + "resources: [job.yaml, second.yaml]\n",
				"jobs/second.yaml":        second,
			}), []string{"jobs/second.yaml"}, nil,
		},
		"a job of the overlay that is not among those given": {
			files(map[string]string{
				"jobs/kustomization.yaml": header + "resources: [job.yaml, second.yaml]\n", "jobs/second.yaml": second,
				"place/kustomization.yaml": header + "resources: [../jobs, own.yaml]\ntransformers: [tegen.yaml]\n",
				"place/own.yaml":           strings.Replace(job, "name: resnet", "name: own", 1),
			}),
			[]string{"jobs/job.yaml", "jobs/second.yaml"},
			[]string{"place/own.yaml:1:1: note: 'kustomize build place' renders its jobs, and they are not among the " +
				"given files: name this file too, or no files"},
		},
		"jobs in the place of the overlay's": {
			files(map[string]string{
				"more/a.yaml": second, "more/b.yaml": strings.Replace(second, "second", "third", 1),
			}), []string{"more/a.yaml", "more/b.yaml"}, nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Chdir(folder(t, c.files))
			var sources []schema.Source
			for _, name := range c.given {
				sources = append(sources, schema.Source{Name: name, Data: []byte(c.files[name])})
			}
			out, err := krm.Overlay("place", sources)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range out.Notes {
				got = append(got, n.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
