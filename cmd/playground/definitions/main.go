// Command definitions prints the definitions of jobs and environments as data, of which the program of a page is made.
package main

import (
	"fmt"
	"os"

	"github.com/tegen-dev/tegen/schema"
)

func main() {
	data, err := schema.Definitions()
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // there is nowhere left to report to
		os.Exit(1)
	}
}
