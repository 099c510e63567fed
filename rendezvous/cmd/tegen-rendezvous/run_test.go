package main

import (
	"bytes"
	"runtime"
	"testing"
)

func TestRunStandalone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	t.Setenv("PET_NPROC_PER_NODE", "2")
	for script, want := range map[string]struct {
		code int
		out  string
	}{
		`if [ $RANK = 0 ]; then echo "$1 of $WORLD_SIZE at $MASTER_ADDR"; fi`: {0, "[0] 0 of 2 at 127.0.0.1\n"},
		`exit $RANK`: {1, ""},
	} {
		var out, errs bytes.Buffer
		code := run([]string{"run", "--standalone", "sh", "-c", script, "sh", "${local_rank}"}, nil, &out, &errs)
		if code != want.code || out.String() != want.out {
			t.Errorf("%s: exit code %d and output %q, want %d and %q\n%s", script, code, out.String(), want.code,
				want.out, &errs)
		}
	}
}
