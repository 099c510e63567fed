package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
)

// itself makes the test binary the command, so that it can be signalled and killed.
const itself = "TEGEN_TEST_COMMAND"

// TestMain runs more tests at once than there are processors, because they wait far more than they compute.
func TestMain(m *testing.M) {
	if os.Getenv(itself) != "" {
		main()
		return
	}
	flag.Parse()
	// The variable is for all that tests start: proxies, servers and their stores. Their memory is measured as users
	// have it, without a setting of the garbage collector that is for compilers and tests.
	if err := errors.Join(flag.Set("test.parallel", "16"), os.Setenv(itself, "1"), os.Unsetenv("GOGC")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
