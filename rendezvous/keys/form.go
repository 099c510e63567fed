package keys

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
)

// request is what a client asks for in a query or form. Both dialects of a field are etcd's own: some causes quote it.
type request struct {
	put             Put
	remove          Delete
	recursive, wait bool
	stream, silent  bool
	since           uint64
}

// parse reads a request's fields in etcd's order, so that of several mistakes the same one is reported. Its errors have
// no index: nothing was looked up.
func parse(r *http.Request) (request, *Error) {
	var q request
	if err := r.ParseForm(); err != nil {
		return q, badBody(err)
	}
	f := fields{form: r.Form}
	q.put.PrevIndex = f.index("prevIndex")
	q.since = f.index("waitIndex")
	q.recursive = f.flag("recursive", true)
	f.flag("sorted", true)
	q.wait = f.flag("wait", true)
	q.put.Dir = f.flag("dir", true)
	f.flag("quorum", true)
	q.stream = f.flag("stream", true)
	if q.wait && r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.refuse(CodeField, `"wait" can only be used with GET requests`)
	}
	q.put.PrevValue = r.Form.Get("prevValue")
	if r.Form.Has("prevValue") && q.put.PrevValue == "" {
		f.refuse(CodePrevValue, `"prevValue" cannot be empty`)
	}
	q.silent = f.flag("noValueOnSuccess", true)
	q.put.TTL = f.ttl()
	if r.Form.Has("prevExist") {
		exist := f.flag("prevExist", false)
		q.put.PrevExist = &exist
	}
	q.put.Value = r.Form.Get("value")
	if r.Form.Has("refresh") {
		q.put.Refresh = f.flag("refresh", false)
		switch {
		case !q.put.Refresh:
		case q.put.Value != "":
			f.refuse(CodeRefreshValue, "A value was provided on a refresh")
		case q.put.TTL == nil:
			f.refuse(CodeRefreshTTL, "No TTL value set")
		}
	}
	q.remove = Delete{Dir: q.put.Dir, Recursive: q.recursive, PrevValue: q.put.PrevValue, PrevIndex: q.put.PrevIndex}
	return q, f.err
}

// badBody is the answer where a body does not come, or is none.
func badBody(err error) *Error {
	if big := new(http.MaxBytesError); errors.As(err, &big) {
		return exceeded(http.StatusRequestEntityTooLarge, "a body is longer than %d bytes", big.Limit)
	}
	return fail(CodeForm, err.Error(), 0)
}

// fields reads values and keeps the first mistake.
type fields struct {
	form url.Values
	err  *Error
}

func (f *fields) refuse(code int, cause string) {
	if f.err == nil {
		f.err = fail(code, cause, 0)
	}
}

func (f *fields) index(name string) uint64 {
	if !f.form.Has(name) {
		return 0
	}
	n, err := strconv.ParseUint(f.form.Get(name), 10, 64)
	if err != nil {
		f.refuse(CodeIndex, "invalid value for "+strconv.Quote(name))
	}
	return n
}

func (f *fields) flag(name string, quoted bool) bool {
	if !f.form.Has(name) {
		return false
	}
	v, err := strconv.ParseBool(f.form.Get(name))
	if err != nil {
		if quoted {
			f.refuse(CodeField, "invalid value for "+strconv.Quote(name))
		} else {
			f.refuse(CodeField, "invalid value for "+name)
		}
	}
	return v
}

// ttl is seconds, nil without one: an empty TTL takes one away.
func (f *fields) ttl() *uint64 {
	s := f.form.Get("ttl")
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		f.refuse(CodeTTL, `invalid value for "ttl"`)
	}
	return &n
}
