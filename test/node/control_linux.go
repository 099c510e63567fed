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
	each := func(do func(name string) error) func(context.Context, []string) (any, error) {
		return func(_ context.Context, names []string) (any, error) {
			var errs []error
			for _, name := range names {
				errs = append(errs, do(name))
			}
			return nil, errors.Join(errs...)
		}
	}
	mux := http.NewServeMux()
	for what, do := range map[string]func(context.Context, []string) (any, error){
		"provide": func(ctx context.Context, names []string) (any, error) { return nil, l.provide(ctx, names) },
		// A node that was asked for comes, whether or not the client still waits.
		"add":   func(_ context.Context, flags []string) (any, error) { return l.addNode(ctx, flags...) },
		"cut":   each(l.cutOff),
		"alias": each(l.alias),
	} {
		mux.HandleFunc("POST /"+what, func(w http.ResponseWriter, r *http.Request) {
			var names []string
			var answer any
			err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&names)
			if err == nil {
				answer, err = do(r.Context(), names)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(answer) // who does not read it has gone
		})
	}
	go func() { _ = http.Serve(listener, mux) }() // until the process ends
	return nil
}
