package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
)

// serve answers a Client until the lab ends.
func (l *lab) serve(ctx context.Context) error {
	listener, err := net.Listen("unix", filepath.Join(l.spec.Dir, controlSocket))
	if err != nil {
		return fmt.Errorf("listening for the lab's clients: %w", err)
	}
	each := func(do func(name string) error) func(context.Context, []string) error {
		return func(_ context.Context, names []string) error {
			var errs []error
			for _, name := range names {
				errs = append(errs, do(name))
			}
			return errors.Join(errs...)
		}
	}
	mux := http.NewServeMux()
	for what, do := range map[string]func(context.Context, []string) error{
		"provide": l.provide,
		// A node that was asked for comes, whether or not the client still waits.
		"add":   each(func(name string) error { return l.addNode(ctx, name) }),
		"cut":   each(l.cutOff),
		"alias": each(l.alias),
	} {
		mux.HandleFunc("POST /"+what, func(w http.ResponseWriter, r *http.Request) {
			var names []string
			err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&names)
			if err == nil {
				err = do(r.Context(), names)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	go func() { _ = http.Serve(listener, mux) }() // until the process ends
	return nil
}
