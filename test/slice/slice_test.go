package slice

import (
	"fmt"
	"testing"
)

// TestContains: each case is in one of the slices, and no slice is empty.
func TestContains(t *testing.T) {
	sizes := map[string]int{}
	for c := range 100 {
		of := 0
		for i := range 5 {
			slice := fmt.Sprintf("%d/5", i+1)
			in, err := contains(slice, fmt.Sprint("case ", c))
			if err != nil {
				t.Fatal(err)
			}
			if in {
				of++
				sizes[slice]++
			}
		}
		if of != 1 {
			t.Errorf("case %d is in %d slices", c, of)
		}
	}
	if len(sizes) != 5 {
		t.Errorf("sizes of the slices: %v", sizes)
	}
	for _, wrong := range []string{"0/5", "6/5", "2", "2/", "/5", "2/5x", "-1/5", "2/0", "a/b"} {
		if _, err := contains(wrong, "a"); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
