package keys

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Handler answers /v2/keys, /v2/machines and /version. Paths need not be clean; a ServeMux before it would redirect
// those that are not. It sends no CORS headers, as etcd does: they would open the store to the scripts of any page that
// somebody in its network looks at.
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
// gives up when no other is left: so a URL that is alone, as that of a Service is, has a second spelling, of which
// urllib3 and this handler make the first.
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

// httpCall is a request for keys, and what it holds of the room for what is under way.
type httpCall struct {
	*Keys
	w    http.ResponseWriter
	r    *http.Request
	key  string
	held room
}

func (k *Keys) keys(w http.ResponseWriter, r *http.Request, key string) {
	if !allow(w, r, http.MethodHead, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete) {
		return
	}
	x := &httpCall{Keys: k, w: w, r: r, key: key}
	defer x.held.free()
	x.awaitBody(time.Time{}) // it may wait for room for longer than the deadline that it came with
	if r.Method != http.MethodPut {
		if err := x.ignoreBody(); err != nil {
			x.refuse(err)
			return
		}
	}
	switch r.Method {
	case http.MethodPost: // of which nothing is read
		x.refuse(fail(CodeUnsupported, "keys in order", 0))
	case http.MethodPut, http.MethodDelete:
		x.write()
	default:
		x.look()
	}
}

// awaitBody limits how long the body is awaited, as what is left of it after the answer. Zero is for all other times:
// once there is no body left net/http reads on, and takes a deadline that is over for a client that has gone. A writer
// without deadlines has no slow client either.
func (x *httpCall) awaitBody(until time.Time) {
	_ = http.NewResponseController(x.w).SetReadDeadline(until)
}

// ignoreBody reads a body that says nothing, as that of a GET, before there is room for the answer: net/http would read
// it while the answer holds that.
func (x *httpCall) ignoreBody() error {
	if x.r.ContentLength == 0 {
		return nil
	}
	x.awaitBody(time.Now().Add(x.o.ClientTimeout))
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(x.w, x.r.Body, free)); err != nil {
		return badBody(err)
	}
	x.awaitBody(time.Time{})
	return nil
}

// write does a PUT or DELETE. Before anything of it is read there is room for what it brings and for what it will be
// answered, which is the whole value that is there: so a request that waits for room has taken none of the memory.
func (x *httpCall) write() {
	// A value and a previous one, each of whose bytes a form may write as three, and the other fields.
	most := 6*x.o.MaxValue + 4096
	x.r.Body = http.MaxBytesReader(x.w, x.r.Body, int64(most))
	err := x.held.need(x.r.Context(), x.small, x.bodyWeight(most)+x.answerWeight())
	x.awaitBody(time.Now().Add(x.o.ClientTimeout))
	if err != nil {
		x.refuse(err)
		return
	}
	q, refused := parse(x.r)
	if refused != nil {
		x.refuse(refused)
		return
	}
	x.awaitBody(time.Time{})
	var e *Event
	if x.r.Method == http.MethodPut {
		e, err = x.Put(x.r.Context(), x.key, q.put)
	} else {
		e, err = x.Delete(x.r.Context(), x.key, q.remove)
	}
	if err != nil {
		x.refuse(err)
		return
	}
	x.answer(e, q.silent)
}

// bodyWeight is what a request brings, twice: as it comes, and as it is read. Only of PUT the body is read.
func (x *httpCall) bodyWeight(most int) int {
	switch {
	case x.r.Method != http.MethodPut:
		return 0
	case x.r.ContentLength < 0: // it does not say
		return 2 * most
	}
	return 2 * int(min(x.r.ContentLength, int64(most)))
}

// look does a GET or HEAD.
func (x *httpCall) look() {
	q, refused := parse(x.r)
	if refused == nil && q.wait && q.stream {
		refused = fail(CodeUnsupported, "streams", 0)
	}
	switch {
	case refused != nil:
		x.refuse(refused)
	case q.wait:
		x.poll(q)
	default:
		x.read(q.recursive)
	}
}

// read answers what is there, once there is room for the answer.
func (x *httpCall) read(recursive bool) {
	list, err := x.roomToRead(recursive)
	if err != nil {
		x.refuse(err)
		return
	}
	e, err := x.Get(x.r.Context(), x.key, recursive)
	if err != nil {
		x.refuse(err)
		return
	}
	if !list {
		x.answer(e, false)
		return
	}
	x.header(e.Index)
	x.raft(e.Index)
	out := pace(x.w, x.o.ClientTimeout)
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		out.stream(e)
	}
	out.end()
}

// roomToRead waits for room for what is there, and says whether it is a listing. There may be more once there is room.
func (x *httpCall) roomToRead(recursive bool) (list bool, err error) {
	for {
		weight, list := x.weigh(x.key, recursive)
		of := x.small
		if list {
			of = x.listings
		}
		if x.held.enough(of, weight) {
			return list, nil
		}
		if err := x.held.need(x.r.Context(), of, weight); err != nil {
			return list, err
		}
	}
}

// answer writes an event; with silent only its action, unless it is a reading or a deletion.
func (x *httpCall) answer(e *Event, silent bool) {
	status := http.StatusOK
	if e.Created() {
		status = http.StatusCreated
	}
	x.header(e.Index)
	x.raft(e.Index)
	switch e.Action {
	case actionCreate, actionSet, actionUpdate, actionSwap:
		if silent {
			e = &Event{Action: e.Action}
		}
	}
	x.body(status, e)
}

// refuse writes an error. A wait or request that this process cannot end is cut off: clients then try the next of
// machines, while they would take an empty answer for a mistake.
func (x *httpCall) refuse(err error) {
	var e *Error
	if !errors.As(err, &e) {
		panic(http.ErrAbortHandler)
	}
	x.header(e.Index)
	x.body(e.Status(), e)
}

// header writes to the map itself: the names are canonical already.
func (x *httpCall) header(index uint64) {
	h := x.w.Header()
	h["Content-Type"] = jsonType
	h["X-Etcd-Cluster-Id"] = []string{*x.cluster.Load()}
	h["X-Etcd-Index"] = []string{strconv.FormatUint(index, 10)}
}

var jsonType = []string{"application/json"}

func (x *httpCall) raft(index uint64) {
	h := x.w.Header()
	h["X-Raft-Index"] = []string{strconv.FormatUint(index, 10)}
	h["X-Raft-Term"] = []string{strconv.FormatUint(x.term.Load(), 10)}
}

// content is what an answer holds: an event, or an error.
type content interface {
	textSize() int
	append(b []byte) []byte
}

// body writes an answer. Nearly always there is room for it already; where somebody else has made it longer meanwhile,
// and no room comes, it is cut off: what was asked for may have happened, which no other answer would say.
func (x *httpCall) body(status int, v content) {
	size := v.textSize()
	if err := x.held.need(x.r.Context(), x.small, size); err != nil {
		panic(http.ErrAbortHandler)
	}
	b := append(v.append(make([]byte, 0, size+1)), '\n')
	x.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	out := pace(x.w, x.o.ClientTimeout)
	x.w.WriteHeader(status)
	_, _ = out.Write(b) // the client has gone
	out.end()
}

// poll answers a wait. The headers go out at once: clients look at the index before the event comes.
func (x *httpCall) poll(q request) {
	watch, err := x.Watch(x.r.Context(), x.key, q.recursive, q.since)
	if err != nil {
		x.refuse(err)
		return
	}
	defer watch.Stop()
	x.header(watch.Index)
	x.raft(watch.Index)
	head := pace(x.w, x.o.ClientTimeout)
	x.w.WriteHeader(http.StatusOK)
	if head.end(); head.err != nil {
		return
	}
	e, err := watch.Next(x.r.Context())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := x.held.need(x.r.Context(), x.small, e.textSize()); err != nil {
		panic(http.ErrAbortHandler)
	}
	b := x.sent.encode(e)
	out := pace(x.w, x.o.ClientTimeout)
	_, _ = out.Write(b) // the client has gone
	out.end()
}
