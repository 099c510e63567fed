package slice

import "testing"

// TestHas: each case is in one of the slices.
func TestHas(t *testing.T) {
	for place := range 12 {
		var in []string
		for _, slice := range []string{"1/5", "2/5", "3/5", "4/5", "5/5"} {
			t.Setenv(Env, slice)
			if Has(t, place) {
				in = append(in, slice)
			}
		}
		if len(in) != 1 {
			t.Errorf("case %d is in %q", place, in)
		}
	}
	for _, wrong := range []string{"0/5", "6/5", "2", "2/", "/5", "2/5x", "-1/5", "2/0", "a/b"} {
		if _, _, err := parse(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
