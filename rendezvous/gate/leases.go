package gate

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

type leases struct {
	pb.UnimplementedLeaseServer
	g *Gate
}

// LongestLease is the longest that is granted. What proxies leave behind goes with its lease, and nothing else limits
// leases.
const LongestLease = 24 * time.Hour

const longestLease = int64(LongestLease / time.Second)

// LeaseGrant lets the etcd choose the number, so that nobody learns from a refusal which there are.
func (s *leases) LeaseGrant(ctx context.Context, q *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	switch {
	case q.ID != 0:
		return nil, s.g.refuse(codes.InvalidArgument, "lease", "a lease has a number that the etcd chooses")
	case q.TTL > longestLease: // which is not to be repeated
		return nil, s.g.refuse(codes.ResourceExhausted, "lease", fmt.Sprintf("a lease of %d s is longer than the %d s "+
			"that tegen-rendezvous serve --listen-proxies grants", q.TTL, longestLease))
	}
	b, err := s.g.etcd()
	if err != nil {
		return nil, err
	}
	return b.lease.LeaseGrant(ctx, q)
}

func (s *leases) LeaseRevoke(ctx context.Context, q *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	b, _, err := s.g.checkLease(ctx, q.ID)
	if err != nil {
		return nil, err
	}
	return b.lease.LeaseRevoke(ctx, q)
}

// LeaseTimeToLive lists no keys.
func (s *leases) LeaseTimeToLive(
	ctx context.Context, q *pb.LeaseTimeToLiveRequest,
) (*pb.LeaseTimeToLiveResponse, error) {
	_, r, err := s.g.checkLease(ctx, q.ID)
	if err != nil {
		return nil, err
	}
	r.Keys = nil
	return r, nil
}

func (s *leases) LeaseKeepAlive(from pb.Lease_LeaseKeepAliveServer) error {
	b, err := s.g.etcd()
	if err != nil {
		return err
	}
	ctx, cancel := s.g.during(from.Context())
	defer cancel()
	to, err := b.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	checked := int64(0) // a proxy has one lease
	return pump(from, to, func(q *pb.LeaseKeepAliveRequest) error {
		if q.ID == checked {
			return nil
		}
		_, r, err := s.g.checkLease(ctx, q.ID)
		if err != nil || len(r.Keys) == 0 { // it may get keys that are not a proxy's
			return err
		}
		checked = q.ID
		return nil
	}, func(*pb.LeaseKeepAliveResponse) {})
}

// checkLease lets pass a lease that holds nothing but keys below the prefix, and returns them: with a lease go its
// keys, and others in the etcd have leases, too. One that holds nothing may be of a proxy that came by another gate.
func (g *Gate) checkLease(ctx context.Context, id int64) (*behind, *pb.LeaseTimeToLiveResponse, error) {
	b, err := g.etcd()
	if err != nil {
		return nil, nil, err
	}
	r, err := b.lease.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true}, anySize)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range r.Keys {
		if !below(string(key)) { // whose name is nothing that a proxy is to learn
			return nil, nil, g.refuse(codes.PermissionDenied, "lease", fmt.Sprintf("lease %x holds keys that are not "+
				"below %s, and tegen-rendezvous serve --listen-proxies lets nobody have them", id, Prefix))
		}
	}
	return b, r, nil
}
