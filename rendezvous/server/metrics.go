package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// metrics are those of one server; names begin with tegen_rendezvous_.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	refused     *prometheus.CounterVec
	connections atomic.Int64 // of the keys API
	series      sync.Map     // of requests of the keys API, by seriesKey
}

// buckets reach from a read of memory to an election of the store.
var buckets = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

func newMetrics(s *Server) *metrics {
	const space = "tegen_rendezvous"
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: space, Name: "requests_total",
			Help: "Requests answered, by API, action and code; c10d knows no codes.",
		}, []string{"api", "action", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: space, Name: "request_seconds", Help: "How long requests took, long polls apart.",
			Buckets: buckets,
		}, []string{"api", "action"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: space, Name: "refused_total", Help: "Clients cut off because of a limit or of what they sent.",
		}, []string{"api", "reason"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: space, Name: "build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": s.config.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.refused, build, gauges{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// c10d counts what happens at the TCPStore.
func (m *metrics) c10d() tcpstore.Observer {
	return tcpstore.Observer{
		Request: func(o tcpstore.Op, _ tcpstore.Dialect, took time.Duration) {
			m.requests.WithLabelValues(apiC10d, o.String(), "").Inc()
			m.seconds.WithLabelValues(apiC10d, o.String()).Observe(took.Seconds())
		},
		Refused: func(reason string) { m.refused.WithLabelValues(apiC10d, reason).Inc() },
	}
}

// proxies counts what proxies of torchruns ask for. Streams have no duration: they end with who waits.
func (m *metrics) proxies() gate.Observer {
	return gate.Observer{
		Request: func(method string, code codes.Code, took time.Duration) {
			m.requests.WithLabelValues(apiProxies, method, code.String()).Inc()
			if took > 0 {
				m.seconds.WithLabelValues(apiProxies, method).Observe(took.Seconds())
			}
		},
		Refused: func(reason string) { m.refused.WithLabelValues(apiProxies, reason).Inc() },
	}
}

// connection counts those of the keys API.
func (m *metrics) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		m.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		m.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// gauges are read when they are asked for.
type gauges struct{ s *Server }

var (
	byAPI           = []string{"api"}
	connectionsDesc = prometheus.NewDesc("tegen_rendezvous_connections", "Connections that are open.", byAPI, nil)
	waitsDesc       = prometheus.NewDesc("tegen_rendezvous_waits", "Requests that wait.", byAPI, nil)
	runsDesc        = prometheus.NewDesc("tegen_rendezvous_runs", "Runs that are known.", byAPI, nil)
	keysDesc        = prometheus.NewDesc("tegen_rendezvous_keys", "Keys of all runs.", byAPI, nil)
	bytesDesc       = prometheus.NewDesc("tegen_rendezvous_bytes", "Bytes of all keys and values.", byAPI, nil)
	unsentDesc      = prometheus.NewDesc("tegen_rendezvous_unsent_bytes",
		"Bytes of replies that clients have not read, in part those of values that are stored.", byAPI, nil)
	fullDesc = prometheus.NewDesc("tegen_rendezvous_store_full",
		"1 where the store's disk has no room for writes.", nil, nil)
	readyDesc = prometheus.NewDesc("tegen_rendezvous_ready",
		"1 where the store answers, and new runs are taken unless its disk is full.", nil, nil)
)

// Describe names no metric: which there are depends on the APIs that are served.
func (gauges) Describe(chan<- *prometheus.Desc) {}

// Collect counts now.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	ready := 0.0
	if g.s.ready(ctx) == nil {
		ready = 1
	}
	gauge(readyDesc, ready)
	if full, known := g.s.full(); known {
		gauge(fullDesc, full)
	}
	if !g.s.open.Load() {
		return
	}
	if behind := g.s.opened.Load(); behind != nil && behind.keys != nil {
		k := behind.keys
		gauge(connectionsDesc, float64(g.s.metrics.connections.Load()), apiKeys)
		gauge(waitsDesc, float64(k.Waits()), apiKeys)
		count, bytes := k.Size()
		gauge(keysDesc, float64(count), apiKeys)
		gauge(bytesDesc, float64(bytes), apiKeys)
		if runs, err := k.Runs(ctx); err == nil { // otherwise it is not ready, which is said
			gauge(runsDesc, float64(len(runs)), apiKeys)
		}
	}
	if g.s.gate != nil {
		sums := g.s.gate.Stats()
		gauge(connectionsDesc, float64(sums.Connections), apiProxies)
		gauge(waitsDesc, float64(sums.Waits), apiProxies)
		gauge(runsDesc, float64(sums.Runs), apiProxies)
		gauge(keysDesc, float64(sums.Keys), apiProxies)
		gauge(bytesDesc, float64(sums.Bytes), apiProxies)
	}
	if c := g.s.c10d; c != nil {
		sums := c.Stats()
		gauge(connectionsDesc, float64(sums.Connections), apiC10d)
		gauge(waitsDesc, float64(sums.Waits), apiC10d)
		gauge(runsDesc, float64(sums.Runs), apiC10d)
		gauge(keysDesc, float64(sums.Keys), apiC10d)
		gauge(bytesDesc, float64(sums.Bytes+sums.Partial), apiC10d)
		gauge(unsentDesc, float64(sums.Unsent), apiC10d)
	}
}

// series are the metrics of requests of the keys API that are alike.
type series struct {
	requests prometheus.Counter
	seconds  prometheus.Observer // nil of waits
}

type seriesKey struct {
	action string
	code   int
}

// keysSeries finds them: to look for them by their labels takes several times as long.
func (m *metrics) keysSeries(action string, waits bool, code int) series {
	if of, ok := m.series.Load(seriesKey{action, code}); ok {
		return of.(series) //nolint:forcetypeassert // nothing else is in it
	}
	of := series{requests: m.requests.WithLabelValues(apiKeys, action, strconv.Itoa(code))}
	if !waits {
		of.seconds = m.seconds.WithLabelValues(apiKeys, action)
	}
	m.series.Store(seriesKey{action, code}, of)
	return of
}

// observed counts and logs the requests of the keys API.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			// For what is no request for keys: those have deadlines of their own, as their bodies may come later. A
			// writer without deadlines has no slow client either.
			_ = http.NewResponseController(w).SetReadDeadline(start.Add(headerTimeout))
		}
		if path, ok := usedPath(keyPath(r)); ok {
			defer s.used.begin(path)()
		}
		a := &answer{ResponseWriter: w}
		defer func() { s.observe(r, a, time.Since(start)) }() // a wait whose client gives up ends with a panic
		next.ServeHTTP(a, r)
	})
}

func keyPath(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/v2/keys") }

// observe counts and logs a request that has ended, with code 0 where nothing was answered.
func (s *Server) observe(r *http.Request, a *answer, took time.Duration) {
	action, waits := a.action(r)
	of := s.metrics.keysSeries(action, waits, a.code)
	of.requests.Inc()
	if of.seconds != nil {
		of.seconds.Observe(took.Seconds())
	}
	path := keyPath(r)
	used, ok := usedPath(path)
	if !ok || a.code == 0 || a.code >= http.StatusBadRequest { // a run that is not there is not in use
		return
	}
	s.used.note(used, time.Now())
	dir, run, ok := keys.RunPath(path)
	if !ok {
		return
	}
	s.log.Debug("request", "api", apiKeys, "run", run, "action", action, "path", path, "code", a.code, "took",
		took.String())
	if a.code == http.StatusCreated && strings.TrimSuffix(path, "/") == dir {
		s.log.Info("run begins", "api", apiKeys, "run", run, "client", r.RemoteAddr)
	}
}

// answer remembers how a request was answered.
type answer struct {
	http.ResponseWriter
	code  int
	begin []byte
}

func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	if room := 64 - len(a.begin); room > 0 {
		a.begin = append(a.begin, b[:min(room, len(b))]...)
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// action is etcd's word for what was done, as the reply says it; for errors it is the method, and for long polls wait.
func (a *answer) action(r *http.Request) (name string, waits bool) {
	if r.Method == http.MethodGet {
		if wait, err := strconv.ParseBool(r.URL.Query().Get("wait")); err == nil && wait {
			return "wait", true
		}
	}
	if rest, ok := bytes.CutPrefix(a.begin, []byte(`{"action":"`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`"`)); ok {
			return string(name), false
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete:
		return strings.ToLower(r.Method), false
	}
	return "other", false // methods are a client's to invent, and each would be a series
}
