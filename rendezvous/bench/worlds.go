package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

// worlds measures how long n clients take to meet, on each server in turns.
func (b *bench) worlds(ctx context.Context) ([][]string, error) {
	servers := []string{companion}
	if b.etcd != "" {
		servers = []string{etcdV2, companion}
	}
	rows := [][]string{{"clients", "server", "rounds", "seconds", "least to most", "ratio", "server's memory"}}
	for _, size := range b.sizes {
		took, memory := map[string][]time.Duration{}, map[string]int{}
		for range b.rounds {
			for _, kind := range servers {
				d, most, err := b.world(ctx, kind, size)
				if err != nil {
					return nil, fmt.Errorf("%d clients at %s: %w", size, kind, err)
				}
				b.log.Printf("%d clients at %s: %s", size, kind, markdown.Seconds(d))
				took[kind], memory[kind] = append(took[kind], d), most
			}
		}
		for _, kind := range servers {
			slices.Sort(took[kind])
		}
		for _, kind := range servers {
			ds, ratio := took[kind], ""
			if base := took[etcdV2]; kind == companion && len(base) > 0 {
				ratio = fmt.Sprintf("%.2f", ds[len(ds)/2].Seconds()/base[len(base)/2].Seconds())
			}
			rows = append(rows, []string{
				fmt.Sprint(size), kind, fmt.Sprint(len(ds)), at(ds, 50), at(ds, 0) + " to " + at(ds, 100), ratio,
				fmt.Sprintf("%d MiB", memory[kind]),
			})
		}
	}
	return rows, nil
}

func (b *bench) world(ctx context.Context, kind string, size int) (took time.Duration, memory int, err error) {
	s, err := b.start(ctx, kind)
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	if took, err = b.meet(ctx, size, s.endpoint); err != nil {
		return 0, 0, err
	}
	_, memory, err = s.memory()
	return took, memory, err
}

// meet lets clients meet at servers that share their data, as torch's agents do: each adds itself to a state by compare
// and swap, and polls until all are in the state. Each client has a connection of its own.
func (b *bench) meet(ctx context.Context, size int, endpoints ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("%d clients have not met in %s", size, b.limit))
	defer cancel()
	id := fmt.Sprintf("run-%d", b.runs.Add(1))
	errs := make([]error, size)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range size {
		all.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c := member{&http.Client{Transport: transport}, runKey(endpoints[i%len(endpoints)], id, 0)}
			errs[i] = c.join(ctx, size)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return time.Since(begin), errors.Join(errs...)
}

// member is a client that meets others. The state is a string with a letter for each of them.
type member struct {
	client *http.Client
	key    string
}

func (m member) join(ctx context.Context, size int) error {
	state, index, err := m.call(ctx, http.MethodPut, "", url.Values{"value": {""}, "prevExist": {"false"}})
	for joined := false; err == nil && len(state) < size; {
		switch {
		case index == "": // another client was faster
			state, index, err = m.call(ctx, http.MethodGet, "", nil)
		case !joined:
			swapped, next, failed := m.call(ctx, http.MethodPut, "",
				url.Values{"value": {state + "x"}, "prevIndex": {index}})
			if joined, err = next != "", failed; joined {
				state = swapped
			}
			index = next
		default:
			state, index, err = m.call(ctx, http.MethodGet, "?wait=true&waitIndex="+after(index), nil)
		}
	}
	return err
}

// after is the index that follows another one.
func after(index string) string {
	n, err := json.Number(index).Int64()
	if err != nil {
		return index // the server will refuse it
	}
	return fmt.Sprint(n + 1)
}

// call is one request. The index is empty if a condition of it did not hold.
func (m member) call(ctx context.Context, method, query string, form url.Values) (value, index string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, m.key+query, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := m.client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Code int `json:"errorCode"`
		Node struct {
			Value string      `json:"value"`
			Index json.Number `json:"modifiedIndex"`
		} `json:"node"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", "", fmt.Errorf("%s: %s: %w", m.key, resp.Status, err)
	}
	if answer.Code != 0 && resp.StatusCode != http.StatusPreconditionFailed {
		return "", "", fmt.Errorf("%s: %s, code %d", m.key, resp.Status, answer.Code)
	}
	return answer.Node.Value, answer.Node.Index.String(), nil
}
