package schema

import (
	"github.com/tegen-dev/tegen/internal/structural"
)

// Source is one input: its name for messages, and its bytes.
type Source = structural.Source

// AnyEnvironment marks a source as the file of the Environment.
const AnyEnvironment = structural.AnyEnvironment

// Error is one mistake in an author's file, the only kind of error that authors see from this package.
type Error = structural.Error

// Errors are all mistakes of one run, sorted by file and position, one line each.
type Errors = structural.Errors

// Field documents one field of the schema.
type Field = structural.Explanation

// MaxFile is the most bytes that Load reads of a source.
const MaxFile = structural.MaxFile

// MaxItems is the most mappings that a list of a job may have.
const MaxItems = structural.MaxItems
