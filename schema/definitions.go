package schema

import (
	"embed"
	"fmt"
	"sync"
)

//go:embed *.cue
var cueFiles embed.FS

// jobShape and environmentShape evaluate the CUE files, each when it is first needed. They are part of the program: a
// fault in them is a fault of the build, not of any input, and a test compiles them.
var (
	jobShape         = sync.OnceValue(func() *shape { return compileJob(theCompiler()) })
	environmentShape = sync.OnceValue(func() *shape { return compileEnvironment(theCompiler(), jobShape()) })
	theCompiler      = sync.OnceValue(compileFiles)
)

func compileFiles() *compiler { return newCompiler(cueFiles, formats, "job.cue", "environment.cue") }

func compileJob(c *compiler) *shape {
	job := c.definition("#Job")
	if err := addDefaults(job, cueFiles, "defaults.cue"); err != nil {
		panic(fmt.Errorf("compiling the schema: %w", err))
	}
	return job
}

func compileEnvironment(c *compiler, job *shape) *shape {
	env := c.definition("#Environment")
	// Where an environment keeps volumes, they default as a job's own do.
	volumes := env.field("spec").shape.field("storage").shape
	for _, f := range volumes.fields {
		if own := job.field("spec").shape.field("storage").shape.elem.field(f.name); own != nil {
			f.shape = own.shape
		}
	}
	return env
}
