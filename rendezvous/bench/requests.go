package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

// requests measures what one server answers to some clients: swaps of a value of their own, which are writes, and
// reads.
func (b *bench) requests(ctx context.Context) ([][]string, error) {
	rows := [][]string{{"request", "clients", "server", "per second", "CPU a request", "ratio", "least to most"}}
	for _, write := range []bool{true, false} {
		for _, clients := range []int{8, 64} {
			more, err := b.requestsOf(ctx, write, clients)
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
		}
	}
	return rows, nil
}

// requestsOf asks both servers in turns. The ratio is the middle one of those of the rounds: disks change in between.
func (b *bench) requestsOf(ctx context.Context, write bool, clients int) (rows [][]string, err error) {
	const span = 3 * time.Second
	servers := []string{companion}
	if b.etcd != "" {
		servers = []string{etcdV2, companion}
	}
	rates, ratios, costs := map[string][]float64{}, []float64{}, map[string][]time.Duration{}
	for range b.rounds {
		for _, kind := range servers {
			rate, cost, err := b.rate(ctx, kind, write, clients, span)
			if err != nil {
				return nil, err
			}
			b.log.Printf("%d clients at %s, writing %t: %.0f per second, each %.1f µs of CPU", clients, kind, write,
				rate, micro(cost))
			rates[kind], costs[kind] = append(rates[kind], rate), append(costs[kind], cost)
		}
		if etcd := rates[etcdV2]; len(etcd) > 0 {
			ratios = append(ratios, rates[companion][len(etcd)-1]/etcd[len(etcd)-1])
		}
	}
	slices.Sort(ratios)
	for _, kind := range servers {
		slices.Sort(rates[kind])
		slices.Sort(costs[kind])
		name := map[bool]string{true: "compare and swap", false: "read"}[write]
		row := []string{
			name, fmt.Sprint(clients), kind, fmt.Sprintf("%.0f", rates[kind][b.rounds/2]),
			fmt.Sprintf("%.0f µs", micro(costs[kind][b.rounds/2])), "", "",
		}
		if n := len(ratios); kind == companion && n > 0 {
			row[5] = fmt.Sprintf("%.2f", ratios[n/2])
			row[6] = fmt.Sprintf("%.2f to %.2f", ratios[0], ratios[n-1])
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// rate is how many requests a server answers a second, and what each takes of the processor.
func (b *bench) rate(
	ctx context.Context, kind string, write bool, clients int, span time.Duration,
) (perSecond float64, cost time.Duration, err error) {
	s, err := b.start(ctx, kind)
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	before, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var done atomic.Int64
	errs := make([]error, clients)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			key := fmt.Sprintf("http://%s/v2/keys/bench/%d", s.endpoint, i)
			client := &http.Client{Transport: &http.Transport{}}
			errs[i] = ask(ctx, client, http.MethodPut, key, url.Values{"value": {"0"}})
			for n := 0; errs[i] == nil; n++ {
				if write {
					errs[i] = ask(ctx, client, http.MethodPut, key,
						url.Values{"value": {fmt.Sprint(n + 1)}, "prevValue": {fmt.Sprint(n)}})
				} else {
					errs[i] = ask(ctx, client, http.MethodGet, key, nil)
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if !errors.Is(err, context.DeadlineExceeded) {
			return 0, 0, err
		}
	}
	took := time.Since(begin)
	after, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	n := done.Load()
	return float64(n) / took.Seconds(), (after - before) / time.Duration(max(1, n)), nil
}

func ask(ctx context.Context, client *http.Client, method, key string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, method, key, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s %s", key, resp.Status, text)
	}
	return err
}

// polls measures the memory of a server that 1,000 clients wait at, each on a connection of its own.
func (b *bench) polls(ctx context.Context) ([][]string, error) {
	const clients = 1000
	rows := [][]string{{"server", "memory before", "with 1,000 long polls", "all notified of a change after"}}
	for _, kind := range []string{companion, etcdV2} {
		if kind == etcdV2 && b.etcd == "" {
			continue
		}
		before, with, notified, err := b.poll(ctx, kind, clients)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		rows = append(rows, []string{
			kind, fmt.Sprintf("%d MiB", before), fmt.Sprintf("%d MiB", with),
			markdown.Seconds(notified),
		})
	}
	return rows, nil
}

func (b *bench) poll(ctx context.Context, kind string, clients int) (before, with int, notified time.Duration,
	err error,
) {
	s, err := b.start(ctx, kind)
	if err != nil {
		return 0, 0, 0, err
	}
	defer s.stop()
	if before, _, err = s.memory(); err != nil {
		return 0, 0, 0, err
	}
	answers := make(chan error, clients)
	for range clients {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.endpoint)
		if err != nil {
			return 0, 0, 0, err
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return 0, 0, 0, err
		}
		if _, err := fmt.Fprintf(c, "GET /v2/keys/polled?wait=true&recursive=true HTTP/1.1\r\nHost: %s\r\n\r\n",
			s.endpoint); err != nil {
			return 0, 0, 0, err
		}
		r := bufio.NewReader(c)
		if _, err := r.ReadString('\n'); err != nil { // the head comes at once, and with it the wait is there
			return 0, 0, 0, err
		}
		go func() {
			for {
				line, err := r.ReadString('\n')
				if err != nil || strings.Contains(line, `"action"`) {
					answers <- err
					return
				}
			}
		}()
	}
	if _, with, err = s.memory(); err != nil {
		return 0, 0, 0, err
	}
	begin := time.Now()
	if err := ask(ctx, http.DefaultClient, http.MethodPut, "http://"+s.endpoint+"/v2/keys/polled",
		url.Values{"value": {"1"}}); err != nil {
		return 0, 0, 0, err
	}
	for range clients {
		if err := <-answers; err != nil {
			return 0, 0, 0, err
		}
	}
	return before, with, time.Since(begin), nil
}
