package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// TestFlags: the command has every flag of kube-scheduler, with the same default.
func TestFlags(t *testing.T) {
	flags := func(set *pflag.FlagSet) map[string]string {
		out := map[string]string{}
		set.VisitAll(func(f *pflag.Flag) { out[f.Name] = f.DefValue })
		return out
	}
	want, got := flags(app.NewSchedulerCommand().Flags()), flags(newCommand().Flags())
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 20 {
		t.Errorf("%d flags, kube-scheduler's and ours (-want +got):\n%s", len(got), diff)
	}
}

// TestWithConfig: what stands in for a configuration that nobody gave is one, and knows the kubeconfig.
func TestWithConfig(t *testing.T) {
	args := []string{"--kubeconfig", "/home/a b/config", "-v=2"}
	full, done, err := withConfig(args)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	file, ok := strings.CutPrefix(full[len(full)-1], "--config=")
	if !ok || len(full) != 4 || len(args) != 3 {
		t.Fatalf("arguments are %q", full)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `kubeconfig: "/home/a b/config"`) {
		t.Errorf("the kubeconfig is not in it:\n%s", text)
	}
	if _, _, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil); err != nil {
		t.Error(err)
	}
	for _, own := range [][]string{{"--config=x"}, {"--config", "x"}} {
		if full, _, err := withConfig(own); err != nil || len(full) != len(own) {
			t.Errorf("%q becomes %q, %v", own, full, err)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
		ok   bool
	}{
		{[]string{"--config=a", "--config", "b"}, "b", true},
		{[]string{"--config"}, "", false},
		{[]string{"--configure=a", "--con=b"}, "", false},
		{[]string{"--config="}, "", false},
	} {
		if got, ok := value(c.args, "config"); got != c.want || ok != c.ok {
			t.Errorf("value(%q): %q, %t", c.args, got, ok)
		}
	}
}
