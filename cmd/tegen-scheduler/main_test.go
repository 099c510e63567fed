package main

import (
	"os"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

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
