// Package slice selects a part of many cases for runs that have no time for all of them.
package slice

import (
	"fmt"
	"os"
	"testing"
)

// Env is the variable with the slice to run, such as "2/5": the second of five. Without it all cases run.
const Env = "TEGEN_SLICE"

// Skip skips a test whose case, by its place among all cases, is not in the slice that Env names.
func Skip(t testing.TB, place int) {
	t.Helper()
	if !Has(t, place) {
		t.Skipf("it is not in the slice %s that %s names", os.Getenv(Env), Env)
	}
}

// Has says whether a case is in the slice that Env names. All slices together have each case once.
func Has(t testing.TB, place int) bool {
	t.Helper()
	slice := os.Getenv(Env)
	if slice == "" {
		return true
	}
	i, n, err := parse(slice)
	if err != nil {
		t.Fatal(err)
	}
	return place%n == i-1
}

func parse(slice string) (i, n int, err error) {
	_, err = fmt.Sscanf(slice, "%d/%d", &i, &n)
	if err != nil || fmt.Sprintf("%d/%d", i, n) != slice || i < 1 || i > n {
		return 0, 0, fmt.Errorf("%s: %q is not a slice such as 2/5", Env, slice)
	}
	return i, n, nil
}
