// Package definition has the CUE files of the schema as data, in the form that structural checks documents by.
package definition

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/tegen-dev/tegen/internal/structural"
)

// Data are the CUE files as data, which are read in a quarter of the time that CUE takes to compile them: make
// golden writes the file.
//
//go:embed definitions.json
var Data []byte

// Job and Environment are read when one is first needed. They are part of the program: a fault in them is a
// fault of the build, not of any input.
var (
	Job         = func() *structural.Schema { return unpacked()[0] }
	Environment = func() *structural.Schema { return unpacked()[1] }
)

var unpacked = sync.OnceValue(func() []*structural.Schema {
	all, err := structural.Unpack(Data, Formats)
	if err != nil {
		panic(fmt.Errorf("reading the definitions: %w", err))
	}
	return all
})
