package config_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/tegen-dev/tegen/scheduler/config"
)

// gang has the extension points of TegenGang and does nothing at them.
type gang struct {
	fwk.PreEnqueuePlugin
	fwk.QueueSortPlugin
	fwk.PreFilterPlugin
	fwk.PostFilterPlugin
	fwk.ReservePlugin
	fwk.PermitPlugin
	fwk.PostBindPlugin
}

func (gang) Name() string { return "TegenGang" }

// gate has that of TegenGangGate.
type gate struct{ fwk.PreEnqueuePlugin }

func (gate) Name() string { return "TegenGangGate" }

// random has those of TegenRandom.
type random struct{}

func (random) Name() string { return "TegenRandom" }

func (random) Score(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

func (random) ScoreExtensions() fwk.ScoreExtensions { return nil }

func stub(p fwk.Plugin) frameworkruntime.PluginFactory {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return p, nil }
}

// TestFramework makes of each profile what kube-scheduler makes of it at its start, with Kubernetes' own plugins: it
// refuses two queue sorts, and none.
func TestFramework(t *testing.T) {
	metrics.Register() // which NewFramework counts in
	registry := plugins.NewInTreeRegistry()
	for name, p := range map[string]fwk.Plugin{"TegenGang": gang{}, "TegenGangGate": gate{}, "TegenRandom": random{}} {
		if err := registry.Register(name, stub(p)); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewClientset()
	for _, profile := range decode(t, config.Default("ml")).Profiles {
		t.Run(profile.SchedulerName, func(t *testing.T) {
			f, err := frameworkruntime.NewFramework(t.Context(), registry, &profile,
				frameworkruntime.WithClientSet(client),
				frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
				frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot()))
			if err != nil {
				t.Fatal(err)
			}
			at := f.ListPlugins()
			for point, want := range map[string][]string{
				"QueueSort": pluginNames(at.QueueSort.Enabled), "Permit": pluginNames(at.Permit.Enabled),
				"PostBind": pluginNames(at.PostBind.Enabled),
			} {
				if diff := cmp.Diff([]string{"TegenGang"}, want); diff != "" {
					t.Errorf("%s (-want +got):\n%s", point, diff)
				}
			}
			for point, got := range map[string][]string{
				"PreEnqueue": pluginNames(at.PreEnqueue.Enabled), "PreFilter": pluginNames(at.PreFilter.Enabled),
				"PostFilter": pluginNames(at.PostFilter.Enabled), "Reserve": pluginNames(at.Reserve.Enabled),
			} {
				if !slices.Contains(got, "TegenGang") || slices.Contains(got, names.DefaultPreemption) {
					t.Errorf("%s: %q", point, got)
				}
			}
			filters := pluginNames(at.Filter.Enabled)
			if !slices.Contains(filters, names.NodeResourcesFit) || !slices.Contains(filters, names.TaintToleration) {
				t.Errorf("Filter: %q", filters)
			}
			scores := pluginNames(at.Score.Enabled)
			if profile.SchedulerName == "random" {
				if diff := cmp.Diff([]string{"TegenRandom"}, scores); diff != "" || len(at.PreScore.Enabled) > 0 {
					t.Errorf("Score (-want +got):\n%s\nPreScore: %q", diff, pluginNames(at.PreScore.Enabled))
				}
			} else if slices.Contains(scores, "TegenRandom") || len(scores) < 5 {
				t.Errorf("Score: %q", scores)
			}
		})
	}
}
