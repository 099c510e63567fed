package main

import (
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

// installGolden is the folder of what 'tegen install scheduler' prints.
const installGolden = "install-scheduler"

func TestGoldenInstall(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	const image = "registry.example/tegen-scheduler:1.0.0"
	for name, args := range map[string][]string{
		"default": {"--image", image},
		"flags": {
			"--image", "registry.example/tegen-scheduler@sha256:" + digest, "--namespace", "batch",
			"--replicas", "3",
		},
		"config":      {"--image", image, "--namespace", "batch", "--config", "fixtures/install/scheduler.yaml"},
		"kube-system": {"--image", image, "--namespace", "kube-system", "--replicas", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			out, msg, code := tegen("", append([]string{"install", "scheduler"}, args...)...)
			if code != cli.ExitOK || msg != "" {
				t.Fatalf("exit %d:\n%s", code, msg)
			}
			files.Compare(t, installGolden+"/"+name+".yaml", []byte(out))
			again, _, _ := tegen("", append([]string{"install", "scheduler"}, args...)...)
			if again != out {
				t.Error("a second render gives other bytes")
			}
			if _, msg, code := tegen(out, "check", "-"); code != cli.ExitOK {
				t.Errorf("tegen check finds:\n%s", msg)
			}
		})
	}
	files.Orphans(t, installGolden)
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
