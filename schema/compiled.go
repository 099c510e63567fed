//go:build !js

package schema

import (
	"embed"
	"fmt"
	"sync"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/definition"
)

//go:embed *.cue
var cueFiles embed.FS

// compiledJob and compiledEnvironment evaluate the CUE files, each when it is first needed: for a JSON Schema, whose
// scalars CUE writes, and for the file of definitions.
var (
	compiledJob         = sync.OnceValue(func() *structural.Schema { return compileJob(theCompiler()) })
	compiledEnvironment = sync.OnceValue(func() *structural.Schema {
		return compileEnvironment(theCompiler(), compiledJob())
	})
	theCompiler = sync.OnceValue(compileFiles)
)

func compileFiles() *structural.Compiler {
	return structural.NewCompiler(cueFiles, definition.Formats, "job.cue", "refusals.cue", "environment.cue")
}

func compileJob(c *structural.Compiler) *structural.Schema {
	job := c.Definition("#TrainingJob")
	if err := structural.AddDefaults(job, cueFiles, "defaults.cue"); err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return job
}

func compileEnvironment(c *structural.Compiler, job *structural.Schema) *structural.Schema {
	env := c.Definition("#Environment")
	// Where an environment keeps volumes, they default as a job's own do.
	volumes := env.Field("spec").Schema.Field("storage").Schema
	for _, f := range volumes.Fields {
		if own := job.Field("spec").Schema.Field("storage").Schema.Elem.Field(f.Name); own != nil {
			f.Schema = own.Schema
		}
	}
	return env
}
