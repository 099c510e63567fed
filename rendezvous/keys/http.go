package keys

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Handler answers /v2/keys, /v2/machines and /version. Paths need not be clean; a ServeMux before it would redirect those
// that are not. It sends no CORS headers, as etcd does: they would open the store to the scripts of any page that somebody
// in its network looks at.
func (k *Keys) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := path.Clean("/" + r.URL.Path)
		key, isKey := strings.CutPrefix(p, "/v2/keys")
		switch {
		case isKey && (key == "" || key[0] == '/'):
			k.keys(w, r, key)
		case p == "/v2/machines":
			k.machines(w, r)
		case p == "/version":
			k.version(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// version names the etcd whose API this is.
func (k *Keys) version(w http.ResponseWriter, r *http.Request) {
	if allow(w, r, http.MethodGet) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}`)) //nolint:errcheck // the client has gone
	}
}

// machines are the URLs that python-etcd goes to when a request fails. It never goes back to the one that failed, and
// gives up when no other is left: so a URL that is alone, as that of a Service is, has a second spelling, of which urllib3
// and this handler make the first.
func (k *Keys) machines(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	urls := k.o.Advertise
	if len(urls) == 0 {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		urls = []string{scheme + r.Host}
	}
	if len(urls) == 1 {
		urls = []string{urls[0], strings.TrimSuffix(urls[0], "/") + "/."}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte(strings.Join(urls, ", "))) //nolint:errcheck // the client has gone
}

// allow answers other methods as etcd does.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	for _, m := range methods {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ","))
	http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	return false
}

func (k *Keys) keys(w http.ResponseWriter, r *http.Request, key string) {
	if !allow(w, r, http.MethodHead, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete) {
		return
	}
	// A value and a previous one, each of whose bytes a form may write as three, and the other fields.
	most := 6*k.o.MaxValue + 4096
	r.Body = http.MaxBytesReader(w, r.Body, int64(most))
	release, err := k.small.take(r.Context(), k.bodyWeight(r, most))
	if err != nil {
		k.refuse(w, err)
		return
	}
	defer release()
	q, refused := parse(r)
	if refused == nil && (r.Method == http.MethodPost || q.wait && q.stream) {
		refused = fail(CodeUnsupported, "keys in order, and streams", 0)
	}
	if refused != nil {
		k.refuse(w, refused)
		return
	}
	var e *Event
	switch {
	case r.Method == http.MethodPut:
		e, err = k.Put(r.Context(), key, q.put)
	case r.Method == http.MethodDelete:
		e, err = k.Delete(r.Context(), key, q.remove)
	case q.wait:
		k.poll(w, r, key, q)
		return
	default:
		k.read(w, r, key, q)
		return
	}
	if err != nil {
		k.refuse(w, err)
		return
	}
	k.answer(w, e, q.silent)
}

// bodyWeight is what a request brings, twice: as it comes, and as it is read.
func (k *Keys) bodyWeight(r *http.Request, most int) int {
	if r.ContentLength < 0 { // it does not say
		return 2 * most
	}
	return 2 * int(min(r.ContentLength, int64(most)))
}

// read answers what is there, once there is room for the answer.
func (k *Keys) read(w http.ResponseWriter, r *http.Request, key string, q request) {
	room := k.small
	weight, list := k.weigh(key, q.recursive)
	if list {
		room = k.listings
	}
	release, err := room.take(r.Context(), weight)
	if err != nil {
		k.refuse(w, err)
		return
	}
	defer release()
	e, err := k.Get(r.Context(), key, q.recursive)
	if err != nil {
		k.refuse(w, err)
		return
	}
	if !list {
		k.answer(w, e, false)
		return
	}
	k.header(w, e.Index)
	k.raft(w, e.Index)
	out := pace(w)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		out.stream(e)
	}
	out.end()
}

// answer writes an event; with silent only its action, unless it is a reading or a deletion.
func (k *Keys) answer(w http.ResponseWriter, e *Event, silent bool) {
	status := http.StatusOK
	if e.Created() {
		status = http.StatusCreated
	}
	k.header(w, e.Index)
	k.raft(w, e.Index)
	switch e.Action {
	case actionCreate, actionSet, actionUpdate, actionSwap:
		if silent {
			e = &Event{Action: e.Action}
		}
	}
	body(w, status, e)
}

// refuse writes an error. A wait or request that this process cannot end is cut off: clients then try the next of
// machines, while they would take an empty answer for a mistake.
func (k *Keys) refuse(w http.ResponseWriter, err error) {
	var e *Error
	if !errors.As(err, &e) {
		panic(http.ErrAbortHandler)
	}
	k.header(w, e.Index)
	body(w, e.Status(), e)
}

func (k *Keys) header(w http.ResponseWriter, index uint64) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Etcd-Cluster-Id", *k.cluster.Load())
	h.Set("X-Etcd-Index", strconv.FormatUint(index, 10))
}

func (k *Keys) raft(w http.ResponseWriter, index uint64) {
	w.Header().Set("X-Raft-Index", strconv.FormatUint(index, 10))
	w.Header().Set("X-Raft-Term", strconv.FormatUint(k.term.Load(), 10))
}

func body(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // a time beyond the year 9999: TTLs are limited to less
		panic(err)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	out := pace(w)
	w.WriteHeader(status)
	_, _ = out.Write(append(b, '\n')) // the client has gone
	out.end()
}

// poll answers a wait. The headers go out at once: clients look at the index before the event comes.
func (k *Keys) poll(w http.ResponseWriter, r *http.Request, key string, q request) {
	watch, err := k.Watch(r.Context(), key, q.recursive, q.since)
	if err != nil {
		k.refuse(w, err)
		return
	}
	defer watch.Stop()
	k.header(w, watch.Index)
	k.raft(w, watch.Index)
	head := pace(w)
	w.WriteHeader(http.StatusOK)
	if head.end(); head.err != nil {
		return
	}
	e, err := watch.Next(r.Context())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	release, err := k.small.take(r.Context(), e.size())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer release()
	b, err := k.said.of(e)
	if err != nil { // as in body
		panic(err)
	}
	out := pace(w)
	_, _ = out.Write(b) // the client has gone
	out.end()
}
