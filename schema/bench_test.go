package schema

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkCompile is the price of the first job of a process.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compileJob(newCompiler())
	}
}

// BenchmarkLoad is the price of each further job.
func BenchmarkLoad(b *testing.B) {
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text, "---\napiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: job-%d}\nspec:\n  image: registry.example/team/resnet:1.%d\n  command: [python, train.py, --epochs=20]\n  workers: {min: 1, max: 3}\n  resources: {gpu: 1, cpu: 8, memory: 32Gi}\n  storage:\n  - {mountPath: /data, claim: imagenet}\n", i, i)
	}
	for b.Loop() {
		if _, err := Load([]Source{{"jobs.yaml", text.Bytes()}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/job")
}
