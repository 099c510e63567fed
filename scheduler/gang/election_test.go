package gang

import (
	"errors"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestElection: of two schedulers the one whose identity the Lease has leads, and it asks no more once it does.
func TestElection(t *testing.T) {
	client := fake.NewClientset()
	reads, refused := 0, error(nil)
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		return refused != nil, nil, refused
	})
	leases := client.CoordinationV1().Leases("tegen-system")
	leads := func(e *Election) bool {
		e.asked = time.Time{} // a second has passed
		return e.leads(t.Context())
	}
	var first, second Election
	if leads(&first) || reads > 0 {
		t.Errorf("before it joins it leads, or has read a Lease %d times", reads)
	}
	first.Join(leases, "tegen-scheduler", "host_1")
	second.Join(leases, "tegen-scheduler", "host_2")
	if leads(&first) || leads(&second) {
		t.Error("somebody leads without a Lease")
	}
	holder := "host_1"
	lease := &coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "tegen-scheduler", Namespace: "tegen-system"},
		Spec:       coordination.LeaseSpec{HolderIdentity: &holder},
	}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused = errors.New("the API is away")
	if leads(&first) {
		t.Error("it leads though the Lease cannot be read")
	}
	refused, reads = nil, 0
	if !leads(&first) || leads(&second) {
		t.Error("the holder does not lead, or the other one does")
	}
	if leads(&first); reads != 2 {
		t.Errorf("the Lease was read %d times, want once by each", reads)
	}
	second.asked = time.Now()
	if second.leads(t.Context()); reads != 2 {
		t.Error("the Lease is read at every question")
	}
}

// TestSkippedElection: without an election the only scheduler leads.
func TestSkippedElection(t *testing.T) {
	if !leading().leads(t.Context()) {
		t.Error("it does not lead")
	}
}
