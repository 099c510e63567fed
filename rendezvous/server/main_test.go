package server

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain runs more tests at once than there are processors, because they wait far more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
