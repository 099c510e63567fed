package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxAnswer bounds an answer, such as a listing of the keys of some thousand agents.
const maxAnswer = 64 << 20

// node is a key or directory in an answer of etcd's v2 keys API.
type node struct {
	Key           string `json:"key"`
	Value         string `json:"value"`
	Dir           bool   `json:"dir"`
	Nodes         []node `json:"nodes"`
	ModifiedIndex uint64 `json:"modifiedIndex"`
}

type answer struct {
	Action string `json:"action"`
	Node   node   `json:"node"`
	index  uint64 // of the store at the time of the answer
}

// apiError is an error of the store.
type apiError struct {
	Code    int    `json:"errorCode"`
	Message string `json:"message"`
	Cause   string `json:"cause"`
	index   uint64
}

func (e *apiError) Error() string {
	return fmt.Sprintf("etcd answers %d: %s (%s)", e.Code, e.Message, e.Cause)
}

// code returns the store's error code, 0 where the error is not the store's.
func code(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Requests are how many requests an agent has made. Lost are those among them that were not answered.
type Requests struct {
	Reads, Writes, Watches, Lost int64
}

// client speaks the part of etcd's v2 API that a rendezvous needs, to one endpoint at a time. It is safe for concurrent
// use.
type client struct {
	http               *http.Client
	username, password string
	timeout            time.Duration // of a request that is no watch

	mu        sync.Mutex
	endpoints []string
	current   int

	reads, writes, watches, lost atomic.Int64
}

func newClient(endpoints []string, t *tls.Config, username, password string, timeout time.Duration) *client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: t, MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second,
		// An endpoint that the store names, but that is unreachable, must not use up a request's time.
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
	}
	c := &client{http: &http.Client{Transport: transport}, username: username, password: password, timeout: timeout}
	for _, e := range endpoints {
		scheme := "http://"
		switch {
		case strings.Contains(e, "://"):
			scheme = ""
		case t != nil:
			scheme = "https://"
		}
		c.endpoints = append(c.endpoints, strings.TrimRight(scheme+e, "/"))
	}
	return c
}

// discover adds the members that the store names to the endpoints, to be used once the current one fails.
func (c *client) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	base := c.endpoint()
	body, _, status, err := c.send(ctx, http.MethodGet, base, "/v2/machines", nil)
	switch {
	case err == nil && status == http.StatusNotFound:
		err = errors.New("status 404: it has no v2 API: start etcd 3.4 or 3.5 with --enable-v2, " +
			"or put tegen-rendezvous serve before it")
	case err == nil && status != http.StatusOK:
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		c.failover(base)
		return fmt.Errorf("asking %s for the members of the cluster: %w", base, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]bool{}
	for _, e := range c.endpoints {
		known[e] = true
	}
	for m := range strings.SplitSeq(string(body), ",") {
		m = strings.TrimRight(strings.TrimSpace(m), "/")
		if u, err := url.Parse(m); err != nil || u.Host == "" || known[m] || len(c.endpoints) >= 64 {
			continue
		}
		known[m] = true
		c.endpoints = append(c.endpoints, m)
	}
	return nil
}

func (c *client) endpoint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints[c.current]
}

// failover goes on to the next endpoint, unless another request has already.
func (c *client) failover(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpoints[c.current] == from {
		c.current = (c.current + 1) % len(c.endpoints)
	}
}

// get reads a key, or a directory one level deep. It is tried at two more endpoints, or again at the only one.
func (c *client) get(ctx context.Context, key string) (answer, error) {
	c.reads.Add(1)
	for try := 0; ; try++ {
		a, err := c.timed(ctx, http.MethodGet, key, nil)
		if err == nil || code(err) != 0 || try == 2 || ctx.Err() != nil {
			return a, err
		}
		pause := time.Duration(rand.Int64N(int64(100 * time.Millisecond)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// put writes a key. It is tried once: whether it was carried out when no answer comes is for the caller to find out.
func (c *client) put(ctx context.Context, key string, options url.Values) (answer, error) {
	c.writes.Add(1)
	return c.timed(ctx, http.MethodPut, key, options)
}

func (c *client) remove(ctx context.Context, key string, options url.Values) (answer, error) {
	c.writes.Add(1)
	return c.timed(ctx, http.MethodDelete, key, options)
}

// watch waits for the first event of a key, or below it, from an index on. It ends with its context.
func (c *client) watch(ctx context.Context, key string, index uint64, recursive bool) (answer, error) {
	c.watches.Add(1)
	options := url.Values{"wait": {"true"}, "waitIndex": {strconv.FormatUint(index, 10)}}
	if recursive {
		options.Set("recursive", "true")
	}
	return c.do(ctx, http.MethodGet, key, options)
}

func (c *client) timed(ctx context.Context, method, key string, options url.Values) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.do(ctx, method, key, options)
}

func (c *client) do(ctx context.Context, method, key string, options url.Values) (answer, error) {
	base := c.endpoint()
	body, header, status, err := c.send(ctx, method, base, (&url.URL{Path: "/v2/keys" + key}).EscapedPath(), options)
	if err == nil {
		var a answer
		if a, err = read(body, header, status); err == nil || code(err) != 0 {
			return a, err
		}
	}
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.failover(base)
		c.lost.Add(1)
	}
	return answer{}, fmt.Errorf("asking %s for %s %s: %w", base, method, key, err)
}

// read distinguishes an answer from an error. Errors of the cluster, 300 and up, are no answers: the next endpoint may
// do better.
func read(body []byte, header http.Header, status int) (answer, error) {
	index, _ := strconv.ParseUint(header.Get("X-Etcd-Index"), 10, 64)
	if status == http.StatusOK || status == http.StatusCreated {
		a := answer{index: index}
		if err := json.Unmarshal(body, &a); err != nil { // so end watches that the server has grown tired of
			return answer{}, fmt.Errorf("reading %d bytes: %w", len(body), err)
		}
		return a, nil
	}
	e := &apiError{index: index}
	if err := json.Unmarshal(body, e); err != nil || e.Code == 0 {
		return answer{}, fmt.Errorf("status %d", status)
	}
	if e.Code >= 300 && e.Code != 401 {
		return answer{}, errors.New(e.Error())
	}
	return answer{}, e
}

func (c *client) send(
	ctx context.Context, method, base, path string, options url.Values,
) (body []byte, header http.Header, status int, err error) {
	address, form := base+path, io.Reader(nil)
	if method == http.MethodPut {
		form = strings.NewReader(options.Encode())
	} else if len(options) > 0 {
		address += "?" + options.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, form)
	if err != nil {
		return nil, nil, 0, err
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.username != "" {
		r.SetBasicAuth(c.username, c.password)
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, nil, 0, err
	}
	defer w.Body.Close()
	body, err = io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	return body, w.Header, w.StatusCode, err
}

func (c *client) requests() Requests {
	return Requests{Reads: c.reads.Load(), Writes: c.writes.Load(), Watches: c.watches.Load(), Lost: c.lost.Load()}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// seconds is a TTL as the store takes it, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
