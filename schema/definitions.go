//go:build !js

package schema

import (
	"embed"
	"fmt"
	"sync"

	"github.com/tegen-dev/tegen/internal/structural"
)

//go:embed *.cue
var cueFiles embed.FS

// jobSchema and environmentSchema evaluate the CUE files, each when it is first needed. They are part of the program: a
// fault in them is a fault of the build, not of any input, and a test compiles them.
var (
	jobSchema         = sync.OnceValue(func() *structural.Schema { return compileJob(theCompiler()) })
	environmentSchema = sync.OnceValue(func() *structural.Schema {
		return compileEnvironment(theCompiler(),
			jobSchema())
	})
	theCompiler = sync.OnceValue(compileFiles)
)

func compileFiles() *structural.Compiler {
	return structural.NewCompiler(cueFiles, formats, "job.cue", "environment.cue")
}

func compileJob(c *structural.Compiler) *structural.Schema {
	job := c.Definition("#Job")
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

// Definitions are the compiled definitions as data, for a program without CUE.
func Definitions() ([]byte, error) { return structural.Pack(jobSchema(), environmentSchema()) }
