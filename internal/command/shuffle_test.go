package command

import (
	"math/rand/v2"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

// TestShuffledFiles: every fixture in one run gives the same bytes in whatever order the files are named, with an
// overlay and without.
func TestShuffledFiles(t *testing.T) {
	atRoot(t)
	files := fixtures(t, "valid")
	for _, overlay := range [][]string{nil, {"--overlay", golden.Overlay(t, ".", "eks")}} {
		var want string
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(seed, 0))
			r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
			got, msg, code := tegen("", append(append([]string{"render"}, files...), overlay...)...)
			if code != cli.ExitOK {
				t.Fatalf("exit %d:\n%s", code, msg)
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("seed %d: other bytes", seed)
			}
		}
	}
}
