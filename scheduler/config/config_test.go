package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/tegen-dev/tegen/scheduler/config"
)

// decode reads a configuration as kube-scheduler's --config does: strictly, and completed.
func decode(t *testing.T, text string) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := obj.(*schedconfig.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("it decodes as %T", obj)
	}
	c.APIVersion = gvk.GroupVersion().String()
	return c
}

// TestDefault holds the text against kube-scheduler's own decoder and rules, which know all of it but what our plugins
// are.
func TestDefault(t *testing.T) {
	c := decode(t, config.Default("ml"))
	if err := validation.ValidateKubeSchedulerConfiguration(c); err != nil {
		t.Error(err)
	}
	l := c.LeaderElection
	got := []any{l.LeaderElect, l.ResourceLock, l.ResourceNamespace, l.ResourceName}
	if diff := cmp.Diff([]any{true, "leases", "ml", "tegen-scheduler"}, got); diff != "" {
		t.Errorf("leader election (-want +got):\n%s", diff)
	}
	if c.DelayCacheUntilActive {
		t.Error("the standby would read the whole cluster only once it leads")
	}
	if len(c.Profiles) != 2 {
		t.Fatalf("%d profiles, want tegen-scheduler and random", len(c.Profiles))
	}
	for i, name := range []string{"tegen-scheduler", "random"} {
		p := c.Profiles[i]
		if p.SchedulerName != name {
			t.Errorf("profile %d is %q, want %q", i, p.SchedulerName, name)
		}
		enabled := pluginNames(p.Plugins.MultiPoint.Enabled)
		for plugin, want := range map[string]bool{
			"TegenGang": true, "TegenGangGate": true, names.PrioritySort: false, names.DefaultPreemption: false,
			names.NodeResourcesFit: true, names.TaintToleration: true, names.VolumeBinding: true,
			names.DefaultBinder: true,
		} {
			if slices.Contains(enabled, plugin) != want {
				t.Errorf("profile %s: plugin %s enabled: %t", name, plugin, !want)
			}
		}
		// A '*' there would keep TegenGang out as well (expandMultiPointPlugins in pkg/scheduler/framework/runtime).
		for point, set := range map[string]schedconfig.PluginSet{
			"preEnqueue": p.Plugins.PreEnqueue, "queueSort": p.Plugins.QueueSort, "preFilter": p.Plugins.PreFilter,
			"filter":     p.Plugins.Filter,
			"postFilter": p.Plugins.PostFilter, "reserve": p.Plugins.Reserve, "permit": p.Plugins.Permit,
			"postBind": p.Plugins.PostBind,
		} {
			if len(set.Enabled)+len(set.Disabled) > 0 {
				t.Errorf("profile %s: %s says %+v of its own", name, point, set)
			}
		}
	}
	random := c.Profiles[1]
	if p := random.PercentageOfNodesToScore; p == nil || *p != 100 {
		t.Errorf("random chooses among a sample of the nodes: percentageOfNodesToScore %v", p)
	}
	if diff := cmp.Diff([]string{"TegenRandom"}, pluginNames(random.Plugins.Score.Enabled)); diff != "" {
		t.Errorf("what scores in random (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"*"}, pluginNames(random.Plugins.Score.Disabled)); diff != "" {
		t.Errorf("what does not score in random (-want +got):\n%s", diff)
	}
}

func pluginNames(plugins []schedconfig.Plugin) (out []string) {
	for _, p := range plugins {
		out = append(out, p.Name)
	}
	return out
}

// TestDefaultNamespace: the namespace changes one line and nothing else.
func TestDefaultNamespace(t *testing.T) {
	own, other := config.Default(config.Namespace), config.Default("ml")
	if !strings.Contains(own, "resourceNamespace: tegen-system\n") {
		t.Errorf("the text names another namespace than %s", config.Namespace)
	}
	if want := strings.Replace(own, "resourceNamespace: tegen-system", "resourceNamespace: ml", 1); other != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, other))
	}
}

// TestStrict: the decoder that checks the text above catches what it is here to catch.
func TestStrict(t *testing.T) {
	text := strings.Replace(
		config.Default("ml"), "  leaderElect: true\n", "  leaderElect: true\n  leaderElects: true\n", 1,
	)
	if _, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil); err == nil {
		t.Error("an unknown field is accepted")
	}
	c := decode(t, strings.Replace(config.Default("ml"), "schedulerName: random", "schedulerName: tegen-scheduler", 1))
	if validation.ValidateKubeSchedulerConfiguration(c) == nil {
		t.Error("two profiles of one name are accepted")
	}
}
