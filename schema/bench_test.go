package schema

import (
	"bytes"
	"fmt"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueyaml "cuelang.org/go/encoding/yaml"

	"github.com/tegen-dev/tegen/internal/structural"
)

// BenchmarkCompile is the price of the first job of a process.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compileJob(compileFiles())
	}
}

// BenchmarkLoad is the price of each further job.
func BenchmarkLoad(b *testing.B) {
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text,
			"---\napiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: job-%d}\nspec:\n"+
				"  image: registry.example/team/resnet:1.%d\n  command: [python, train.py, --epochs=20]\n"+
				"  workers: {min: 1, max: 3}\n  resources: {gpu: 1, cpu: 8, memory: 32Gi}\n"+
				"  storage:\n  - {mountPath: /data, claim: imagenet}\n", i, i)
	}
	for b.Loop() {
		if _, err := Load([]Source{{Name: "jobs.yaml", Data: text.Bytes()}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/job")
}

// BenchmarkEffective is what a job would cost if CUE evaluated all of it: the reason that it does not.
func BenchmarkEffective(b *testing.B) {
	ctx := cuecontext.New()
	root, err := structural.Evaluate(ctx, cueFiles, "job.cue", "refusals.cue", "environment.cue", "defaults.cue")
	if err != nil {
		b.Fatal(err)
	}
	job, effective := root.LookupPath(cue.ParsePath("#TrainingJob")), root.LookupPath(cue.ParsePath("#Effective"))
	text := fmt.Appendf(nil, smallJob, "a")
	for b.Loop() {
		file, err := cueyaml.Extract("a.yaml", text)
		if err != nil {
			b.Fatal(err)
		}
		data := ctx.BuildFile(file)
		if err := data.Unify(job).Validate(cue.Concrete(true)); err != nil {
			b.Fatal(err)
		}
		if _, err := data.Unify(effective).MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}
