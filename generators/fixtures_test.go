package generators_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestMain collects garbage less often, and fails where a test changed the fixtures that all of them share.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	code := m.Run()
	for _, j := range renderedFixtures {
		if yamlOf(j.objects) != j.text || yamlOf(objects(j.job)) != j.text {
			fmt.Fprintf(os.Stderr, "a test changed the job or the objects of %s, which all tests share\n", j.name)
			code = 1
		}
	}
	os.Exit(code)
}

// fixtureJob is a job of a valid fixture, plain or in an environment of the repository.
type fixtureJob struct {
	name    string // fixture/environment
	job     *job.Job
	objects []runtime.Object
	text    string // of all objects
}

var (
	renderedFixtures []fixtureJob
	renderFixtures   sync.Once
)

// eachJob calls f for every job of every valid fixture, as it is and in each environment of the repository. All tests
// share the jobs and what objects renders of them: f leaves them as they are.
func eachJob(t *testing.T, f func(t *testing.T, tj *job.Job, objs []runtime.Object)) {
	t.Helper()
	renderFixtures.Do(func() {
		for _, c := range fixtures(t) {
			for _, tj := range loadAll(t, c.sources...) {
				objs := objects(tj)
				renderedFixtures = append(renderedFixtures, fixtureJob{c.name, tj, objs, yamlOf(objs)})
			}
		}
	})
	for from := 0; from < len(renderedFixtures); {
		to := from + 1
		for to < len(renderedFixtures) && renderedFixtures[to].name == renderedFixtures[from].name {
			to++
		}
		t.Run(renderedFixtures[from].name, func(t *testing.T) {
			for _, j := range renderedFixtures[from:to] {
				f(t, j.job, j.objects)
			}
		})
		from = to
	}
}

// fixture is a valid fixture, with or without an environment.
type fixture struct {
	name    string
	sources []schema.Source
}

func fixtures(t testing.TB) (all []fixture) {
	t.Helper()
	files, err := filepath.Glob("../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	environments, err := filepath.Glob("../overlays/*/environment.yaml")
	if err != nil || len(environments) == 0 {
		t.Fatalf("no environments: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		job := source(t, file)
		all = append(all, fixture{name + "/base", []schema.Source{job}})
		for _, environment := range environments {
			named := source(t, environment)
			named.Environment = schema.AnyEnvironment
			all = append(all, fixture{
				name + "/" + filepath.Base(filepath.Dir(environment)), []schema.Source{job, named},
			})
		}
	}
	return all
}

// yamlOf is the YAML of objects as one text.
func yamlOf(objs []runtime.Object) string {
	var out []byte
	for _, obj := range objs {
		var err error
		if out, err = manifest.Append(out, obj); err != nil {
			panic(err)
		}
	}
	return string(out)
}
