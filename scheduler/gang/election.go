package gang

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
)

// Election answers whether this process does the scheduling. kube-scheduler starts its plugins before it is elected and
// does not inform them, so the Lease is read from the API until this process holds it; a scheduler that loses it exits.
// Before Join or Skip nobody knows, and the answer is no.
type Election struct {
	mu       sync.Mutex
	leases   coordinationv1.LeaseInterface
	name     string
	identity string
	won      bool
	asked    time.Time
}

const (
	leaseInterval = time.Second     // between two reads of the Lease
	leaseTimeout  = 5 * time.Second // of one read
)

// Skip says that there is no election: this process schedules.
func (e *Election) Skip() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.won = true
}

// Join says which Lease decides, and what this process calls itself in it.
func (e *Election) Join(leases coordinationv1.LeaseInterface, name, identity string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leases, e.name, e.identity = leases, name, identity
}

func (e *Election) leads(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.won || e.leases == nil || time.Since(e.asked) < leaseInterval {
		return e.won
	}
	e.asked = time.Now()
	reading, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, err := e.leases.Get(reading, e.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // nobody has been elected yet
	case err != nil:
		klog.FromContext(ctx).Error(err, "Reading who leads; members of gangs are reported on later", "lease", e.name)
	default:
		e.won = lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == e.identity
	}
	return e.won
}
