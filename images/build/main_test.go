package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestRunFails: what is wrong on the command line is said before anything is compiled.
func TestRunFails(t *testing.T) {
	for _, c := range []struct {
		args  []string
		epoch string
		want  string
	}{
		{args: []string{"-images", "tegen,tegan"}, want: `there is no image "tegan": there are tegen, `},
		{args: []string{"-images", ""}, epoch: "noon", want: `SOURCE_DATE_EPOCH "noon" must be seconds since 1970`},
		{args: []string{"-images", ""}, epoch: "-1", want: "it is negative"},
		{args: []string{"-architectures", "amd64,sparc"}, want: `"sparc"`},
		{args: []string{"-tag", "v1+dirty"}, want: "v1+dirty"},
		{args: []string{"-registry", "ghcr.io/Acme"}, want: "Acme/tegen"},
		{args: []string{"tegen"}, want: `unknown arguments ["tegen"]`},
		{args: []string{"-nothing"}, want: "-nothing"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		err := run(t.Context(), append([]string{"-o", t.TempDir()}, c.args...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with SOURCE_DATE_EPOCH=%q: %v, want %q", c.args, c.epoch, err, c.want)
		}
	}
}

// TestSourceDate: seconds since 1970, or nothing.
func TestSourceDate(t *testing.T) {
	if at, err := sourceDate("1767323045"); err != nil || at.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
		t.Errorf("%s, %v", at, err)
	}
	if at, err := sourceDate(""); err != nil || !at.IsZero() {
		t.Errorf("%s, %v", at, err)
	}
}
