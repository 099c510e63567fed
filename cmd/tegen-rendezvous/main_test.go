package main

import (
	"os"
	"testing"
)

// itself makes the test binary the command, so that it can be signalled and killed.
const itself = "TEGEN_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(itself) != "" {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
