// Package slice selects a part of many cases for runs that have no time for all of them.
package slice

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// Env is the variable with the slice to run, such as "2/5": the second of five. Without it all cases run.
const Env = "TEGEN_SLICE"

// Skip skips a test whose case is not in the slice that Env names.
func Skip(t testing.TB, name string) {
	t.Helper()
	if !Has(t, name) {
		t.Skipf("it is not in the slice %s that %s names", os.Getenv(Env), Env)
	}
}

// Has says whether a case is in the slice that Env names. The name of the case decides, so that a case is in the same
// slice in each run, and all slices together have each case once.
func Has(t testing.TB, name string) bool {
	t.Helper()
	slice := os.Getenv(Env)
	if slice == "" {
		return true
	}
	in, err := contains(slice, name)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func contains(slice, name string) (bool, error) {
	var i, n uint32
	_, err := fmt.Sscanf(slice, "%d/%d", &i, &n)
	if err != nil || fmt.Sprintf("%d/%d", i, n) != slice || i < 1 || i > n {
		return false, fmt.Errorf("%s: %q is not a slice such as 2/5", Env, slice)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum32()%n == i-1, nil
}
