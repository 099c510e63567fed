package diff

import (
	"os"
	"testing"

	"github.com/tegen-dev/tegen/internal/diff/cases"
)

// TestCases holds every rule to the table that a real API server is held to as well.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := cases.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			r, err := Compare(c.Old(), c.New(), Options{Minor: c.Minor})
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Worst) != c.Class {
				t.Errorf("worst is %q, want %q: %+v", r.Worst, c.Class, r.Jobs)
			}
			for path, class := range c.Classes {
				if got := classAt(r, path); string(got) != class {
					t.Errorf("%s is %q, want %q: %+v", path, got, class, r.Jobs)
				}
			}
			for _, j := range r.Jobs {
				for _, change := range j.Changes {
					want := c.Classes[change.Path]
					if want == "" {
						want = c.Class
					}
					silent := change.Class == Refused && (change.Why == "" || change.Remedy == "")
					if string(change.Class) != want || silent {
						t.Errorf("got %+v, want %s with why and a remedy", change, want)
					}
				}
			}
		})
	}
}

func classAt(r *Report, path string) Class {
	for _, j := range r.Jobs {
		for _, c := range j.Changes {
			if c.Path == path {
				return c.Class
			}
		}
	}
	return ""
}
