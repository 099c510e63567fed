package gang

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// GateName of the plugin in a KubeSchedulerConfiguration.
const GateName = Name + "Gate"

var (
	_ fwk.PreEnqueuePlugin  = &Gate{}
	_ fwk.EnqueueExtensions = &Gate{}
)

// Gate keeps out of the queue the members that could only be refused. It is a plugin of its own because the queue asks
// at every event, for every pod that it holds back, whether the event concerns the plugin that holds the pod back: a
// cluster in which a thousand members wait would spend more on that than on placing them. No event concerns this
// plugin, as the gang cache wakes members itself; where a profile leaves it out TegenGang does the same at that cost.
type Gate struct{ scheduler *scheduler }

// Name is the plugin's.
func (*Gate) Name() string { return GateName }

// PreEnqueue keeps out the members of a gang that lacks pods or has a mistake, and all but the one that looks for room
// on behalf of its gang.
func (g *Gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if g.scheduler.coordinator == nil {
		return nil // no profile has TegenGang
	}
	return g.scheduler.coordinator.gate(pod)
}

// EventsToRegister is empty: the gang cache wakes pods.
func (*Gate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// gate is refusal for a pod that need not enter the queue.
func (c *coordinator) gate(pod *corev1.Pod) *fwk.Status {
	if _, declared := c.gangOf(pod); !declared {
		return nil
	}
	switch v := c.cache.Admit(uidOf(pod)); {
	case !v.Member: // the queue heard of the pod before the gang cache did, which wakes it when it has
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "its gang is not known yet")
	case !v.OK:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, v.Reason)
	}
	return nil
}

// gated says whether a profile has the gate.
func gated(profile interface{ PreEnqueuePlugins() []fwk.PreEnqueuePlugin }) bool {
	return slices.ContainsFunc(profile.PreEnqueuePlugins(), func(p fwk.PreEnqueuePlugin) bool {
		return p.Name() == GateName
	})
}

// scheduler is what the factories of one process share.
type scheduler struct {
	registry    Registry
	election    *Election
	coordinator *coordinator // nil until the first profile has TegenGang
}

// Plugins returns what registers TegenGang and its gate: the profiles of one scheduler share what they make. The
// plugins add their metrics to the registry, and write about pods only where the election says that this process leads.
func Plugins(registry Registry, election *Election) frameworkruntime.Registry {
	shared := &scheduler{registry: registry, election: election}
	return frameworkruntime.Registry{
		Name: shared.newGang,
		GateName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return &Gate{shared}, nil
		},
	}
}
