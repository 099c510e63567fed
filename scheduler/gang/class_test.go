package gang

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDryRunDevicesOfGroup places two gangs of a group. The largest pod of each claims more devices than the node has,
// so the second gang meets a kind of pod for which the first gang found no room.
func TestDryRunDevicesOfGroup(t *testing.T) {
	for available, want := range map[int]string{
		4: "g-1 on x, g-2 on x, h-1 on x, h-2 on x",
		3: "gang a/h needs 2 pods at once and has room for 1, none for pod h-0: 1 cannot allocate all claims",
	} {
		t.Run(fmt.Sprint(available), func(t *testing.T) {
			objects := []runtime.Object{deviceClasses(), devices("x", available)}
			var pods []*corev1.Pod
			for _, name := range []string{"g", "h"} {
				gang := workers(name, 3, 2, 0, claiming, inGroup)
				for i, count := range []int{8, 1, 1} {
					gang[i].Labels["app"] = "same"
					objects = append(objects, generate(gang[i], count))
				}
				pods = append(pods, gang...)
			}
			g := newPlugin(t, []*corev1.Node{machine("x", 0)}, nil, objects...)
			for _, p := range pods {
				g.shared.seen(nil, p)
			}
			if got := placed(t, g, pods); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		})
	}
}

// TestRefusedClaim: a claim that is being deleted keeps its own pod from a place, not others with an equal claim.
func TestRefusedClaim(t *testing.T) {
	gang := workers("g", 2, 1, 0, claiming)
	deleted := generate(gang[0], 1)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/wait"}
	g := newPlugin(t, []*corev1.Node{machine("x", 0)}, nil, deviceClasses(), devices("x", 8), deleted,
		generate(gang[1], 1))
	for _, p := range gang {
		g.shared.seen(nil, p)
	}
	if got := placed(t, g, gang); got != "g-1 on x" {
		t.Errorf("there are devices for g-1: %s", got)
	}
}
