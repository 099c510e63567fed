package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// txns answers transactions, and nothing else.
type txns func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error)

type txnServer struct {
	pb.KVServer
	do txns
}

func (s txnServer) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return s.do(ctx, r)
}

type txnClient struct {
	pb.KVClient
	do txns
}

func (c txnClient) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return c.do(ctx, r)
}

// revision answers with the length of the first key as the revision.
func revision(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	n := len(r.Success[0].GetRequestPut().Key)
	return &pb.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: int64(n)}}, nil
}

func putting(key string) *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(key)},
	}}}}
}

// listenLine serves a line until the test, or the returned function, ends it.
func listenLine(t *testing.T, socket string, do txns) (end func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		serveLine(l, txnServer{do: do})
		close(done)
	}()
	end = sync.OnceFunc(func() {
		_ = l.Close()
		<-done
	})
	t.Cleanup(end)
	return end
}

func lineTo(t *testing.T, socket string, elsewhere txns) *line {
	t.Helper()
	l := &line{KVClient: txnClient{do: elsewhere}, socket: socket}
	t.Cleanup(l.closeIdle)
	return l
}

func nowhere(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return nil, errors.New("it went by gRPC")
}

// TestLine: transactions that are asked at a time are each answered with what is theirs, on few connections.
func TestLine(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listenLine(t, socket, revision)
	l := lineTo(t, socket, nowhere)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 100 {
				want := 1 + 100*i + n
				r, err := l.Txn(t.Context(), putting(fmt.Sprintf("%0*d", want, 0)))
				if err != nil || r.Header.Revision != int64(want) || !r.Succeeded {
					t.Errorf("%d is answered %v, %v", want, r, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := len(l.idle); n == 0 || n > 8 {
		t.Errorf("%d connections are open", n)
	}
}

// TestLineErrors: errors of the store are those that gRPC would bring, and the connection goes on.
func TestLineErrors(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	answer := error(nil)
	listenLine(t, socket, func(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
		if answer != nil {
			return nil, answer
		}
		return revision(ctx, r)
	})
	l := lineTo(t, socket, nowhere)
	kv := clientv3.NewKVFromKVClient(l, nil)
	for _, c := range []struct{ said, want error }{
		{rpctypes.ErrGRPCRequestTooLarge, rpctypes.ErrRequestTooLarge},
		{rpctypes.ErrGRPCTooManyOps, rpctypes.ErrTooManyOps},
		{rpctypes.ErrGRPCNoSpace, rpctypes.ErrNoSpace},
		{nil, nil},
	} {
		answer = c.said
		_, err := kv.Txn(t.Context()).Then(clientv3.OpPut("k", "")).Commit()
		if !errors.Is(err, c.want) {
			t.Errorf("%v arrives as %v", c.said, err)
		}
	}
	if n := len(l.idle); n != 1 {
		t.Errorf("%d connections are open", n)
	}
}

// TestLineLost: what was asked when the store ended has failed, and is not asked again; the next one goes to the store
// that has come in its place, and where there is none by gRPC, which waits for it.
func TestLineLost(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l := lineTo(t, socket, func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
		return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 1000}}, nil
	})
	dying, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := dying.Accept(); err == nil {
			_, _, _ = readMessage(c)
			_ = dying.Close()
			_ = c.Close()
		}
	}()
	if r, err := l.Txn(t.Context(), putting("k")); status.Code(err) != codes.Unavailable {
		t.Errorf("a store that dies answers %v, %v", r, err)
	}
	if r, err := l.Txn(t.Context(), putting("k")); err != nil || r.Header.Revision != 1000 {
		t.Errorf("without a store the answer is %v, %v", r, err)
	}
	listenLine(t, socket, revision)
	if r, err := l.Txn(t.Context(), putting("k")); err != nil || r.Header.Revision != 1 {
		t.Errorf("the store after it answers %v, %v", r, err)
	}
}

// TestLineAgain: after a restart of the store the first request on a connection of before goes to the new process.
func TestLineAgain(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	end := listenLine(t, socket, revision)
	l := lineTo(t, socket, nowhere)
	for _, key := range []string{"k", "kk"} {
		if r, err := l.Txn(t.Context(), putting(key)); err != nil || r.Header.Revision != int64(len(key)) {
			t.Errorf("%s is answered %v, %v", key, r, err)
		}
		if n := len(l.idle); n != 1 {
			t.Errorf("%d connections are open", n)
		}
		end()
		end = listenLine(t, socket, revision)
	}
}

// TestLineCut: a request that a dying store had in part is asked again, and one that it had whole is not, since nobody
// knows whether it was done.
func TestLineCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 8<<20) // more than a socket holds
	for name, c := range map[string]struct {
		read func(io.Reader) error
		want codes.Code
	}{
		"in part": {func(r io.Reader) error { return readAll(r, messageHead) }, codes.OK},
		"whole": {func(r io.Reader) error {
			_, _, err := readMessage(r)
			return err
		}, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := dyingLine(t, c.read)
			var done atomic.Int32
			l := lineTo(t, listener.Addr().String(), nowhere)
			if _, err := l.Txn(t.Context(), putting("k")); err != nil {
				t.Fatal(err)
			}
			go serveLine(listener, txnServer{do: func(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
				done.Add(1)
				return revision(ctx, r)
			}})
			_, err := l.Txn(t.Context(), putting(long))
			if status.Code(err) != c.want || (done.Load() == 1) != (c.want == codes.OK) {
				t.Errorf("it is answered %v, and asked again %d times", err, done.Load())
			}
		})
	}
}

func readAll(r io.Reader, n int) error {
	_, err := io.ReadFull(r, make([]byte, n))
	return err
}

// dyingLine answers the first request of its first connection, and of the second one reads what it is told.
func dyingLine(t *testing.T, read func(io.Reader) error) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _, err = readMessage(c)
		if err = errors.Join(err, writeMessage(c, 0, nil), read(c)); err != nil {
			t.Error(err)
		}
	}()
	return listener
}

// ending is a connection whose request's context ends once it has read.
type ending struct {
	net.Conn
	end func()
}

func (c ending) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.end()
	return n, err
}

// TestLineEndsWithContext: a connection that the end of a context closes is not used again, the answer notwithstanding.
func TestLineEndsWithContext(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listenLine(t, socket, revision)
	l := lineTo(t, socket, nowhere)
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.put(&lineConn{c, bufio.NewReader(ending{c, cancel})})
	if r, err := l.Txn(ctx, putting("k")); err != nil || r.Header.Revision != 1 {
		t.Errorf("it is answered %v, %v", r, err)
	}
	if n := len(l.idle); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// TestLineGivenUp: a request whose context ends is left, and its answer is nobody else's.
func TestLineGivenUp(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	came, release := make(chan struct{}, 1), make(chan struct{})
	listenLine(t, socket, func(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
		if len(r.Success[0].GetRequestPut().Key) == 1 {
			came <- struct{}{}
			<-release
		}
		return revision(ctx, r)
	})
	defer close(release)
	l := lineTo(t, socket, nowhere)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-came
		cancel()
	}()
	if r, err := l.Txn(ctx, putting("k")); status.Code(err) != codes.Canceled {
		t.Errorf("given up it is answered %v, %v", r, err)
	}
	if r, err := l.Txn(t.Context(), putting("kk")); err != nil || r.Header.Revision != 2 {
		t.Errorf("the next one is answered %v, %v", r, err)
	}
}

// TestLineEnds: what is under way when the listener closes is answered; what is no transaction ends its connection.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	came, release := make(chan struct{}), make(chan struct{})
	end := listenLine(t, socket, func(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
		close(came)
		<-release
		return revision(ctx, r)
	})
	for name, sent := range map[string][]byte{
		"too long":       binary.BigEndian.AppendUint64(nil, (longestMessage+1)<<32),
		"no transaction": append(binary.BigEndian.AppendUint64(nil, 3<<32), "\xff\xff\xff"...),
	} {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(sent); err != nil {
			t.Error(err)
		}
		if n, err := io.Copy(io.Discard, c); n != 0 || err != nil {
			t.Errorf("%s: %d bytes come back, %v", name, n, err)
		}
		_ = c.Close()
	}
	l := lineTo(t, socket, nowhere)
	go func() {
		<-came
		go end()
		close(release)
	}()
	if r, err := l.Txn(t.Context(), putting("k")); err != nil || r.Header.Revision != 1 {
		t.Errorf("under way it is answered %v, %v", r, err)
	}
}
