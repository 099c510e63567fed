package ports

import (
	"net"
	"testing"
)

func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for range 2 {
		ports, err := Free(50)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if seen[p] || p < first || p >= beyond {
				t.Errorf("port %d: it came before, or is none of %d to %d", p, first, beyond-1)
			}
			seen[p] = true
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d ports", len(seen))
	}
	l, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal("the port of an address is not free:", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
