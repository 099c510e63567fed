package schema

import (
	_ "embed" // a page has no CUE, with which its program would be nearly twice as large
	"fmt"
	"sync"

	"github.com/tegen-dev/tegen/internal/structural"
)

// definitions are what Definitions returns in a program that has CUE: make playground writes the file.
//
//go:embed definitions.json
var definitions []byte

var unpacked = sync.OnceValue(func() []*structural.Schema {
	all, err := structural.Unpack(definitions, formats)
	if err != nil {
		panic(fmt.Errorf("reading the definitions: %w", err))
	}
	return all
})

func jobSchema() *structural.Schema         { return unpacked()[0] }
func environmentSchema() *structural.Schema { return unpacked()[1] }
