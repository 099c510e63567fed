package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A line is how transactions go to a store in a process of its own: a socket, on which a message is its length in four
// bytes and its text, and each request is answered before the next one. gRPC takes a dozen changes of thread for a
// call, which for a small transaction is more than the transaction. All else goes by gRPC, and so does a transaction
// where the line cannot be opened.

// lineOf is the socket of the line of a store that listens at a socket.
func lineOf(socket string) string {
	return strings.TrimSuffix(socket, socketSuffix) + ".t" + socketSuffix
}

// longestMessage is more than etcd takes, in a request and in what it answers to one.
const longestMessage = 64 << 20

// messageHead is how a message begins: its length, and in an answer the code of the error whose text it is, 0 for none.
const messageHead = 8

// writeMessage returns an error where the message was not written whole, so that nobody can have read it.
func writeMessage(w io.Writer, code codes.Code, text []byte) error {
	return writeFramed(w, code, append(make([]byte, messageHead, messageHead+len(text)), text...))
}

// writeFramed writes a message whose first messageHead bytes are reserved for the head; the error says that it was not
// written whole.
func writeFramed(w io.Writer, code codes.Code, out []byte) error {
	binary.BigEndian.PutUint32(out, uint32(len(out)-messageHead))
	binary.BigEndian.PutUint32(out[4:], uint32(code))
	if n, err := w.Write(out); n < len(out) {
		return err
	}
	return nil
}

// message is a protobuf request or answer.
type message interface {
	Size() int
	MarshalTo(b []byte) (int, error)
}

// frame is the text of a message, with room for the head before it.
func frame(m message) ([]byte, error) {
	b := make([]byte, messageHead+m.Size())
	_, err := m.MarshalTo(b[messageHead:])
	return b, err
}

func readMessage(r io.Reader) (codes.Code, []byte, error) {
	var head [messageHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > longestMessage {
		return 0, nil, fmt.Errorf("a message of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return codes.Code(binary.BigEndian.Uint32(head[4:])), text, err
}

// serveLine answers transactions until the listener is closed, and ends once those that are under way have.
func serveLine(l net.Listener, kv pb.KVServer) {
	var serving sync.WaitGroup
	defer serving.Wait()
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for c := range open {
			_ = c.SetReadDeadline(time.Now()) // it is answered what it has asked
		}
	}()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // as where files are short
			time.Sleep(10 * time.Millisecond)
			continue
		}
		mu.Lock()
		open[c] = true
		mu.Unlock()
		serving.Go(func() {
			answerLine(c, kv)
			mu.Lock()
			delete(open, c)
			mu.Unlock()
		})
	}
}

// answerLine ends with the connection. What is not a transaction ends it.
func answerLine(c net.Conn, kv pb.KVServer) {
	defer func() { _ = c.Close() }()
	for r := bufio.NewReader(c); ; {
		_, text, err := readMessage(r)
		if err != nil {
			return
		}
		var request pb.TxnRequest
		if err := request.Unmarshal(text); err != nil {
			return
		}
		answer, err := kv.Txn(context.Background(), &request) // etcd has a time limit of its own
		if err == nil {
			text, err = frame(answer)
		}
		if err == nil {
			err = writeFramed(c, codes.OK, text)
		} else {
			err = writeMessage(c, status.Code(err), []byte(status.Convert(err).Message()))
		}
		if err != nil {
			return
		}
	}
}

// line is the side that asks.
type line struct {
	pb.KVClient
	socket string

	mu   sync.Mutex
	idle []*lineConn
}

type lineConn struct {
	net.Conn
	r *bufio.Reader
}

// useLine has a client's transactions go by a line. The function it returns is for when the store has ended.
func useLine(c *clientv3.Client, socket string) (hangUp func()) {
	l := &line{KVClient: clientv3.RetryKVClient(c), socket: socket}
	c.KV = clientv3.NewKVFromKVClient(l, c)
	return l.closeIdle
}

// Txn does a transaction. Where the connection ends before the answer, nobody knows whether it was done.
func (l *line) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	text, err := frame(in)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	code, text, err := l.ask(ctx, text)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errUnsent):
		return l.KVClient.Txn(ctx, in, opts...)
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	case code != codes.OK:
		return nil, status.Error(code, string(text))
	}
	out := &pb.TxnResponse{}
	if err := out.Unmarshal(text); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return out, nil
}

// errUnsent is of what the store cannot have read whole, so that it was not done.
var errUnsent = errors.New("the store has not had the request")

// ask sends a request, framed, and reads the answer. What an idle connection does not take, since the store has been
// started again, goes to the new process.
func (l *line) ask(ctx context.Context, text []byte) (codes.Code, []byte, error) {
	if c := l.take(); c != nil {
		code, answer, err := l.askOn(ctx, c, text)
		if !errors.Is(err, errUnsent) || ctx.Err() != nil {
			return code, answer, err
		}
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", l.socket)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errUnsent, err)
	}
	return l.askOn(ctx, &lineConn{c, bufio.NewReader(c)}, text)
}

// askOn has the connection wait for the next request, or ends it.
func (l *line) askOn(ctx context.Context, c *lineConn, text []byte) (code codes.Code, answer []byte, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if err = writeFramed(c, 0, text); err != nil {
		err = fmt.Errorf("%w: %w", errUnsent, err)
	} else {
		code, answer, err = readMessage(c.r)
	}
	switch open := stop(); {
	case open && err == nil:
		l.put(c)
	case open:
		_ = c.Close()
		l.closeIdle() // they are of the process that has gone
	}
	return code, answer, err
}

// take is nil where no connection is idle.
func (l *line) take() *lineConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.idle) - 1
	if last < 0 {
		return nil
	}
	c := l.idle[last]
	l.idle = l.idle[:last]
	return c
}

func (l *line) put(c *lineConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, c)
}

func (l *line) closeIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.idle {
		_ = c.Close()
	}
	l.idle = nil
}
