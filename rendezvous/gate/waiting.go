package gate

import (
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// waiting are the watches of a client's stream.
type waiting struct {
	g      *Gate
	client pb.Watch_WatchServer

	telling sync.Mutex // what the etcd says, or the gate
	partly  bool       // more of an answer follows
	later   []*pb.WatchResponse

	mu    sync.Mutex
	n     int64
	ended bool
}

func (w *waiting) Recv() (*pb.WatchRequest, error) { return w.client.Recv() }

// Send passes on what the etcd says.
func (w *waiting) Send(a *pb.WatchResponse) error {
	w.telling.Lock()
	defer w.telling.Unlock()
	if err := w.client.Send(a); err != nil {
		return err
	}
	if w.partly = a.Fragment; w.partly {
		return nil
	}
	for ; len(w.later) > 0; w.later = w.later[1:] {
		if err := w.client.Send(w.later[0]); err != nil {
			return err
		}
	}
	return nil
}

// tell says what the gate has to say, but not between the parts of an answer: an etcd's client would forget the first.
func (w *waiting) tell(a *pb.WatchResponse) error {
	w.telling.Lock()
	defer w.telling.Unlock()
	if w.partly {
		w.later = append(w.later, a)
		return nil
	}
	return w.client.Send(a)
}

// begin counts a watch. One too many is refused alone: others of the stream are of the same proxy, and go on. An etcd's
// client creates one after the other, so that it knows which was refused.
func (w *waiting) begin() error {
	most := int64(w.g.options.MaxWaits)
	switch ended, full := w.more(most); {
	case ended:
		return errShut // nobody hears it
	case !full:
		return nil
	}
	err := w.g.refuse(codes.Unavailable, "waits", fmt.Sprintf("%d requests wait already (--max-waits)", most))
	if err := w.tell(&pb.WatchResponse{
		Header: &pb.ResponseHeader{}, WatchId: clientv3.InvalidWatchID, Created: true, Canceled: true,
		CancelReason: status.Convert(err).Message(),
	}); err != nil {
		return err
	}
	return errAnswered
}

func (w *waiting) more(most int64) (ended, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return true, false
	case w.g.waits.Add(1) > most:
		w.g.waits.Add(-1)
		return false, true
	}
	w.n++
	return false, false
}

func (w *waiting) less() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n > 0 {
		w.n--
		w.g.waits.Add(-1)
	}
}

func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.g.waits.Add(-w.n)
	w.n = 0
}
