package meaning

import "testing"

// TestClass: what an API has no field for means nothing, and the same words elsewhere do.
func TestClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    Difference
		want Class
	}{
		{Difference{About: "worker: role's imagePullPolicy", Before: "Always", Kind: "PyTorchJob"}, Silent},
		{Difference{About: "worker: role's imagePullPolicy", Before: "Always", Kind: "DLRoverJob"}, Real},
		{Difference{About: "worker: role's priority", Before: "high", Kind: "PyTorchJob"}, Real},
		{Difference{About: "worker: pull", Before: "Always", Kind: "PyTorchJob"}, Real},
		{Difference{About: "imagePullPolicy", Before: "Always", Kind: "PyTorchJob"}, Real},
	} {
		if got := c.d.Class(); got != c.want {
			t.Errorf("%s of a %s is %s, want %s", c.d, c.d.Kind, got, c.want)
		}
	}
}
