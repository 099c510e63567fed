package gate

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func (l *lines) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestRefusals: of each reason the first is logged, and then one at a time with the number of those that were not.
func TestRefusals(t *testing.T) {
	var r refusals
	began := time.Now()
	for _, step := range []struct {
		after  time.Duration
		reason string
		log    bool
		unsaid int
	}{
		{0, "key", true, 0},
		{time.Second, "key", false, 0},
		{time.Second, "limit", true, 0},
		{betweenRefusals - 1, "key", false, 0},
		{betweenRefusals, "key", true, 2},
		{betweenRefusals + time.Second, "limit", true, 0},
		{2 * betweenRefusals, "key", true, 0},
	} {
		if log, unsaid := r.note(step.reason, began.Add(step.after)); log != step.log || unsaid != step.unsaid {
			t.Errorf("%s after %s: got %t, %d", step.reason, step.after, log, unsaid)
		}
	}
}

// TestManyRefusals: all are counted, and few are logged.
func TestManyRefusals(t *testing.T) {
	t.Parallel()
	var counted atomic.Int64
	var log lines
	g := New(Options{Log: log.log(), Observer: Observer{Refused: func(string) { counted.Add(1) }}})
	for range 1000 {
		if err := g.checkKeys([]byte("/secret"), nil); err == nil {
			t.Fatal("want an error")
		}
	}
	if n := log.count("request refused"); counted.Load() != 1000 || n == 0 || n > 10 {
		t.Errorf("of 1000 refusals %d were counted and %d logged", counted.Load(), n)
	}
}
