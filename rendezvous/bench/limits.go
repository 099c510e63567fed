package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

// What the limits of the rendered companion follow from.
const (
	limitMemory = 512 << 20 // of the rendered container
	limitSwaps  = 14_000
	limitValue  = 43_000 // bytes of torch's state at 300 agents
	limitKeys   = 8

	readersClients = 100
	readersValues  = 400
	readersValue   = 50_000 // 20 MB together
)

// limits measures what many large swaps cost a server in a container's memory, and how it starts again on what they
// left.
func (b *bench) limits(ctx context.Context) ([][]string, error) {
	g, err := newCgroup(limitMemory)
	if errors.Is(err, errNoCgroup) {
		return [][]string{{"skipped"}, {err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	row, err := b.fill(ctx, g)
	if err := errors.Join(err, g.remove()); err != nil {
		return nil, err
	}
	return [][]string{{
		"swaps of 43 kB", "killed", "per second", "memory at most", "data at most", "data left",
		"answers again after",
	}, row}, nil
}

func (b *bench) fill(ctx context.Context, g *cgroup) ([]string, error) {
	b.within = g
	defer func() { b.within = nil }()
	s, err := b.start(ctx, companion)
	if err != nil {
		return nil, err
	}
	most := int64(0)
	watching, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		for watching.Err() == nil {
			most = max(most, size(s.data))
			time.Sleep(100 * time.Millisecond)
		}
	})
	begin := time.Now()
	done, failed := b.swapLarge(ctx, s.endpoint)
	took := time.Since(begin)
	stop()
	looks.Wait()
	s.stop() // kill -9: what is left is what a node that goes leaves
	left := size(s.data)
	begin = time.Now()
	again, err := b.startOn(ctx, companion, s.data)
	back := time.Since(begin)
	verdict := markdown.Seconds(back)
	if err != nil {
		verdict = "never: " + err.Error()
	} else {
		again.stop()
	}
	if failed != nil {
		b.log.Print("swaps ended: ", failed)
	}
	return []string{
		fmt.Sprintf("%d of %d", done, limitSwaps), fmt.Sprint(g.killed()),
		fmt.Sprintf("%.0f", float64(done)/took.Seconds()),
		mib(g.most.Load()), mib(most), mib(left), verdict,
	}, nil
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// swapLarge swaps each key by its last value, as torch's agents do, and returns how often it did.
func (b *bench) swapLarge(ctx context.Context, endpoint string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var done atomic.Int64
	errs := make([]error, limitKeys)
	var all sync.WaitGroup
	for i := range limitKeys {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
			index := ""
			for n := i; n < limitSwaps && errs[i] == nil; n += limitKeys {
				value := fmt.Sprintf("%06d", n) + strings.Repeat("x", limitValue-6)
				form := url.Values{"value": {value}}
				if index != "" {
					form.Set("prevIndex", index)
				}
				index, errs[i] = swap(ctx, client, fmt.Sprintf("http://%s/v2/keys/limits/%d", endpoint, i), form)
				if errs[i] == nil {
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	return done.Load(), errors.Join(errs...)
}

func swap(ctx context.Context, client *http.Client, key string, form url.Values) (index string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, key, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var e struct {
		Node struct {
			Index json.Number `json:"modifiedIndex"`
		} `json:"node"`
	}
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		return "", fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	err = json.NewDecoder(resp.Body).Decode(&e)
	return e.Node.Index.String(), err
}

// size is what the files of a directory take, as du counts.
func size(dir string) (all int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil { // else it has gone meanwhile
			if info, gone := e.Info(); gone == nil && info.Mode().IsRegular() {
				all += taken(info)
			}
		}
		return nil
	})
	return all
}

// readers measures what clients cost that ask for much and never read it, and what others have of the server meanwhile.
func (b *bench) readers(ctx context.Context) ([][]string, error) {
	s, err := b.start(ctx, companion)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	base := "http://" + s.endpoint + "/v2/keys/readers"
	for i := range readersValues {
		if err := ask(ctx, http.DefaultClient, http.MethodPut, fmt.Sprintf("%s/%d", base, i),
			url.Values{"value": {strings.Repeat("x", readersValue)}}); err != nil {
			return nil, err
		}
	}
	before, _, err := s.memory()
	if err != nil {
		return nil, err
	}
	for range readersClients {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.endpoint)
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "GET /v2/keys/readers?recursive=true HTTP/1.1\r\nHost: %s\r\n\r\n",
			s.endpoint); err != nil {
			return nil, err
		}
	}
	most, slowest, asked := 0, time.Duration(0), 0
	healthy := &http.Client{Timeout: 20 * time.Second}
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); asked++ {
		begin := time.Now()
		if err := ask(ctx, healthy, http.MethodPut, base+"/0",
			url.Values{"value": {strings.Repeat("y", readersValue)}}); err != nil {
			return nil, fmt.Errorf("a client that reads: %w", err)
		}
		slowest = max(slowest, time.Since(begin))
		now, _, err := s.memory()
		if err != nil {
			return nil, err
		}
		most = max(most, now)
		time.Sleep(50 * time.Millisecond)
	}
	return [][]string{
		{"clients that never read", "memory before", "at most", "others' writes of 50 kB", "the slowest"},
		{
			fmt.Sprintf("%d × 20 MB", readersClients), fmt.Sprintf("%d MiB", before), fmt.Sprintf("%d MiB", most),
			fmt.Sprint(asked), markdown.Seconds(slowest),
		},
	}, nil
}
