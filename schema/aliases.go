package schema

import "github.com/tegen-dev/tegen/internal/structural"

// What authors see is made by package structural.
type (
	Error  = structural.Error
	Errors = structural.Errors
	Source = structural.Source
	Field  = structural.Explanation
)

// MaxFile is the most bytes that Load reads of a source.
const MaxFile = structural.MaxFile
