package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

// installGolden begins the names of the folders of what 'tegen install' prints.
const installGolden = "install-"

func TestGoldenInstall(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	const image = "registry.example/tegen-scheduler:1.0.0"
	const rendezvous = "registry.example/tegen-rendezvous:1.0.0"
	for name, args := range map[string][]string{
		"scheduler/default": {"--image", image},
		"scheduler/flags": {
			"--image", "registry.example/tegen-scheduler@sha256:" + digest, "--namespace", "batch",
			"--replicas", "3", "--create-namespace=false", "--pod-monitor",
		},
		"scheduler/config": {
			"--image", image, "--namespace", "batch", "--config", "fixtures/install/scheduler.yaml",
		},
		"scheduler/kube-system": {"--image", image, "--namespace", "kube-system", "--replicas", "1"},
		"rendezvous/default":    {"--image", rendezvous, "--clients", "training"},
		"rendezvous/etcd": {
			"--image", rendezvous, "--clients", "team-a", "--namespace", "infra", "--create-namespace=false",
			"--etcd", "https://etcd-0.example:2379", "--etcd", "https://etcd-1.example:2379", "--etcd-user", "tegen",
			"--etcd-tls-secret", "etcd-tls", "--etcd-password-secret", "etcd-password", "--replicas", "3",
			"--pod-monitor", "--metrics-from", "monitoring",
		},
	} {
		what, _, _ := strings.Cut(name, "/")
		args = append([]string{"install", what}, args...)
		t.Run(name, func(t *testing.T) {
			out, msg, code := tegen("", args...)
			if code != cli.ExitOK || msg != "" {
				t.Fatalf("exit %d:\n%s", code, msg)
			}
			files.Compare(t, installGolden+name+".yaml", []byte(out))
			again, _, _ := tegen("", args...)
			if again != out {
				t.Error("a second render gives other bytes")
			}
			if _, msg, code := tegen(out, "check", "-"); code != cli.ExitOK {
				t.Errorf("tegen check finds:\n%s", msg)
			}
		})
	}
	files.Orphans(t, installGolden+"scheduler")
	files.Orphans(t, installGolden+"rendezvous")
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestInstallCRDs: what is printed is what the kustomization of overlays/crds lists.
func TestInstallCRDs(t *testing.T) {
	atRoot(t)
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "overlays/crds")
	if err != nil {
		t.Fatal(err)
	}
	out, msg, code := tegen("", "install", "crds")
	if code != cli.ExitOK || msg != "" {
		t.Fatalf("exit %d:\n%s", code, msg)
	}
	want, got := map[string]any{}, map[string]any{}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		want[r.GetName()] = decoded(t, string(text))
	}
	for doc := range strings.SplitSeq(out, "\n---\n") {
		object := decoded(t, doc)
		name, _ := object["metadata"].(map[string]any)["name"].(string)
		got[name] = object
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	keep := map[string]any{
		"argocd.argoproj.io/sync-options":    "Prune=false,Delete=false",
		"argocd.argoproj.io/compare-options": "IgnoreExtraneous",
		"kustomize.toolkit.fluxcd.io/prune":  "disabled",
	}
	for name, object := range got {
		// With a definition go all objects of its kind in the cluster.
		if diff := cmp.Diff(keep, object.(map[string]any)["metadata"].(map[string]any)["annotations"]); diff != "" {
			t.Errorf("%s: annotations by which it stays (-want +got):\n%s", name, diff)
		}
	}
}

func decoded(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
