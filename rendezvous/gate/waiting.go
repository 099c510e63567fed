package gate

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
)

// waiting are the watches of a stream.
type waiting struct {
	g     *Gate
	mu    sync.Mutex
	n     int64
	ended bool
}

func (w *waiting) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errShut // nobody hears it
	}
	if most := int64(w.g.options.MaxWaits); w.g.waits.Add(1) > most {
		w.g.waits.Add(-1)
		return w.g.refuse(codes.Unavailable, "waits", fmt.Sprintf("%d requests wait already (--max-waits)", most))
	}
	w.n++
	return nil
}

func (w *waiting) less() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n > 0 {
		w.n--
		w.g.waits.Add(-1)
	}
}

func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.g.waits.Add(-w.n)
	w.n = 0
}
