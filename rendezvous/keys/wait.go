package keys

import (
	"context"
	"net/http"
)

// Watch is one wait: it ends with one event.
type Watch struct {
	Index uint64 // of the state when it began
	k     *Keys
	what  watched
	since uint64
	event chan *Event // closed when it ends without one
}

// Watch begins to wait for the first event of a key at or after an index, or, with 0, after the call; with recursive of
// any key below it as well. The caller must Stop it. CodeCleared says that the index is too far back.
func (k *Keys) Watch(ctx context.Context, key string, recursive bool, since uint64) (*Watch, error) {
	key, err := k.clean(key)
	if err != nil {
		return nil, err
	}
	if since == 0 {
		if err := k.prepareRead(ctx); err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, ErrClosed
	}
	w := &Watch{k: k, Index: k.tree.index, what: watched{key, recursive}, since: since, event: make(chan *Event, 1)}
	if since != 0 && since <= k.tree.index {
		e, err := k.past.since(w.what, since, k.tree.index)
		if err != nil {
			return nil, err
		}
		if e != nil {
			w.event <- e
			return w, nil
		}
	}
	if k.hub.number >= k.o.MaxWaits {
		return nil, exceeded(http.StatusTooManyRequests, "%d requests wait", k.hub.number)
	}
	k.hub.add(w)
	return w, nil
}

// Next waits for the event. ErrClosed says that there will be none, and that the client should ask again.
func (w *Watch) Next(ctx context.Context) (*Event, error) {
	select {
	case e, ok := <-w.event:
		if !ok {
			return nil, ErrClosed
		}
		return e, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Stop gives up the wait.
func (w *Watch) Stop() {
	w.k.mu.Lock()
	defer w.k.mu.Unlock()
	w.k.hub.remove(w)
}

// Wait is Watch and Next in one.
func (k *Keys) Wait(ctx context.Context, key string, recursive bool, since uint64) (*Event, error) {
	w, err := k.Watch(ctx, key, recursive, since)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	return w.Next(ctx)
}

// Size is how many keys there are, directories among them, and the bytes of all keys and values.
func (k *Keys) Size() (keys, bytes int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.tree.keys, k.tree.bytes
}

// Waits is how many requests wait.
func (k *Keys) Waits() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.hub.number
}
