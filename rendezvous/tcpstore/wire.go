package tcpstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Dialect is a numbering of the operations. A client tells it by its first bytes.
type Dialect uint8

const (
	// Old is the dialect of torch 1.13 to 2.1, which has no greeting. Its clients open a second connection that may
	// stay silent for ever.
	Old Dialect = iota
	// Recent is the dialect since torch 2.2, which begins with VALIDATE; seen with 2.6 and 2.14.
	Recent
)

func (d Dialect) String() string {
	if d == Recent {
		return "recent"
	}
	return "old"
}

// Op is an operation, numbered as in the new dialect.
type Op uint8

// The operations of torch 2.14, recorded but for those of queues, whose order and fields are those of torch's libuv
// server (torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp), and the one that only the old dialect has.
const (
	Validate Op = iota
	Set
	CompareSet
	Get
	Add
	Check
	Wait
	GetNumKeys
	DeleteKey
	Append
	MultiGet
	MultiSet
	CancelWait
	Ping
	QueuePush
	QueuePop
	QueueLen
	ListKeys
	Barrier
	WatchKey
)

var opNames = [...]string{
	"VALIDATE", "SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS", "DELETE_KEY", "APPEND", "MULTI_GET",
	"MULTI_SET",
	"CANCEL_WAIT", "PING", "QUEUE_PUSH", "QUEUE_POP", "QUEUE_LEN", "LIST_KEYS", "BARRIER", "WATCH_KEY",
}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// replied says whether a client waits for an answer.
func (o Op) replied() bool {
	switch o {
	case Validate, Set, MultiSet, Append, QueuePush:
		return false
	}
	return true
}

// oldOps is the old dialect's numbering. 0 to 8 are recorded from torch 1.13; torch 2.0 and 2.1 added the rest behind.
var oldOps = [...]Op{
	Set, CompareSet, Get, Add, Check, Wait, GetNumKeys, WatchKey, DeleteKey, Append, MultiGet,
	MultiSet, CancelWait,
}

// magic is what VALIDATE carries; with the operation before it the first five bytes of a new client. An old client that
// sent them would ask to set a key of more than a gigabyte.
const magic = 0x3C85F7CE

// Request is one message of a client.
type Request struct {
	Op     Op
	Keys   []string
	Values [][]byte // one for SET, APPEND and QUEUE_PUSH; expected and new for COMPARE_SET; one a key for MULTI_SET
	Number int64    // what ADD adds, BARRIER's world size, PING's nonce
}

// Refusal is why a client is not served any further: the protocol has no reply that says no.
type Refusal struct {
	Reason string // one word, for counting
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

func refuse(reason, format string, args ...any) error {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Lengths are what a message may declare; more is refused before anything is allocated.
type Lengths struct {
	Key, Value int // bytes
	List       int // keys, or pairs
	Message    int // bytes of all fields together
}

// Decoder reads messages from a stream, however it is cut into segments.
type Decoder struct {
	r       *bufio.Reader
	lengths Lengths
	// grow is asked before memory is used for a message, so that all connections together have a bound; Release gives
	// back what the last message took.
	grow    func(bytes int) error
	release func(bytes int)
	dialect Dialect
	begun   bool
	left    int // bytes that the message may still have
	held    int
}

// NewDecoder reads from r. Before it takes memory for a message it asks grow, and release gets the same back; both may
// be nil.
func NewDecoder(r io.Reader, l Lengths, grow func(bytes int) error, release func(bytes int)) *Decoder {
	if grow == nil {
		grow, release = func(int) error { return nil }, func(int) {}
	}
	return &Decoder{r: bufio.NewReader(r), lengths: l, grow: grow, release: release}
}

// Dialect is what the client speaks, known after the first message.
func (d *Decoder) Dialect() Dialect { return d.dialect }

// Silent says that not a byte has come yet.
func (d *Decoder) Silent() bool { return !d.begun && d.r.Buffered() == 0 }

// Empty says that nothing is left of what was read.
func (d *Decoder) Empty() bool { return d.r.Buffered() == 0 }

// Next is the next message. The error is io.EOF where the stream ends between two, io.ErrUnexpectedEOF within one, a
// *Refusal for what no client sends or what is too much, or the stream's own.
func (d *Decoder) Next() (Request, error) {
	first, err := d.r.Peek(1)
	if err != nil {
		return Request{}, err
	}
	if !d.begun && first[0] == byte(Validate) {
		// Every message of the old dialect that begins so has more than these five bytes.
		start, err := d.r.Peek(5)
		if err != nil {
			return Request{}, unexpected(err)
		}
		if binary.LittleEndian.Uint32(start[1:]) == magic {
			d.dialect = Recent
		}
	}
	d.begun = true
	_, _ = d.r.Discard(1) // it is there
	op, err := d.op(first[0])
	if err != nil {
		return Request{}, err
	}
	d.left = d.lengths.Message
	q := Request{Op: op}
	if err := d.fields(&q); err != nil {
		return Request{}, unexpected(err)
	}
	return q, nil
}

// Release gives back the memory of the last message, once it is counted elsewhere or gone.
func (d *Decoder) Release() {
	d.release(d.held)
	d.held = 0
}

func (d *Decoder) op(number byte) (Op, error) {
	switch {
	case d.dialect == Recent && number <= byte(Barrier):
		return Op(number), nil
	case d.dialect == Old && int(number) < len(oldOps):
		return oldOps[number], nil
	}
	return 0, refuse("operation", "the %s dialect has no operation %d", d.dialect, number)
}

// fields reads what follows the operation.
func (d *Decoder) fields(q *Request) error {
	switch q.Op {
	case Validate:
		n, err := d.u32()
		if err == nil && n != magic {
			err = refuse("greeting", "VALIDATE carries %#x", n)
		}
		return err
	case Ping:
		n, err := d.u32()
		q.Number = int64(n)
		return err
	case Set, Append, QueuePush:
		return d.pair(q, 1)
	case CompareSet:
		return d.pair(q, 2)
	case Get, DeleteKey, QueuePop, QueueLen, WatchKey:
		return d.pair(q, 0)
	case Add, Barrier:
		if err := d.pair(q, 0); err != nil {
			return err
		}
		n, err := d.u64()
		q.Number = int64(n) //nolint:gosec // the wire's number is signed
		return err
	case Check, Wait, MultiGet:
		return d.list(q, 0)
	case MultiSet:
		return d.list(q, 1)
	}
	return nil
}

// list reads as many keys as it says, each with values.
func (d *Decoder) list(q *Request, values int) error {
	n, err := d.u64()
	if err != nil {
		return err
	}
	if n > uint64(d.lengths.List) {
		return refuse("length", "%s of %d keys; the limit is %d", q.Op, n, d.lengths.List)
	}
	for range n {
		if err := d.pair(q, values); err != nil {
			return err
		}
	}
	return nil
}

// pair reads a key and what belongs to it.
func (d *Decoder) pair(q *Request, values int) error {
	key, err := d.bytes(q.Op, "key", d.lengths.Key)
	if err != nil {
		return err
	}
	q.Keys = append(q.Keys, string(key))
	for range values {
		v, err := d.bytes(q.Op, "value", d.lengths.Value)
		if err != nil {
			return err
		}
		q.Values = append(q.Values, v)
	}
	return nil
}

// piece is how much is allocated at once: what a client declares costs it as many bytes.
const piece = 64 << 10

// overhead is about what a field takes beside its bytes, so that a million empty keys are not free.
const overhead = 48

func (d *Decoder) bytes(op Op, what string, limit int) ([]byte, error) {
	n, err := d.u64()
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, refuse("length", "%s with a %s of %d bytes; the limit is %d", op, what, n, limit)
	}
	size := int(n)
	if d.left -= size; d.left < 0 {
		return nil, refuse("length", "%s of more than %d bytes", op, d.lengths.Message)
	}
	if err := d.take(overhead); err != nil {
		return nil, err
	}
	if size <= piece {
		if err := d.take(size); err != nil {
			return nil, err
		}
		out := make([]byte, size)
		_, err := io.ReadFull(d.r, out)
		return out, err
	}
	var out bytes.Buffer
	for size > 0 {
		part := min(size, max(piece, out.Len())) // doubling, as the buffer does
		if err := d.take(part); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(&out, d.r, int64(part)); err != nil {
			return nil, err
		}
		size -= part
	}
	return bytes.Clone(out.Bytes()), nil
}

func (d *Decoder) take(n int) error {
	if err := d.grow(n); err != nil {
		return err
	}
	d.held += n
	return nil
}

func (d *Decoder) u32() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(d.r, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (d *Decoder) u64() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(d.r, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// unexpected is err within a message.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // a wrapped one is not the end of this stream
		return io.ErrUnexpectedEOF
	}
	return err
}

// Reply is what goes back, in parts: values are sent from where they are stored.
type Reply [][]byte

// Status is u8: of CHECK 0 for all there, of WAIT and BARRIER 0 for done, of CANCEL_WAIT 1.
func Status(n byte) Reply { return Reply{{n}} }

// Number is a signed number of eight bytes.
func Number(n int64) Reply {
	return Reply{binary.LittleEndian.AppendUint64(nil, uint64(n))} //nolint:gosec // the wire's number is signed
}

// Nonce is what PING sent.
func Nonce(n int64) Reply {
	return Reply{binary.LittleEndian.AppendUint32(nil, uint32(n))} //nolint:gosec // it came as these four bytes
}

// Value adds bytes with their length before them.
func (r Reply) Value(v []byte) Reply {
	return append(r, binary.LittleEndian.AppendUint64(nil, uint64(len(v))), v)
}

// Len is the bytes of all parts.
func (r Reply) Len() int {
	n := 0
	for _, part := range r {
		n += len(part)
	}
	return n
}
