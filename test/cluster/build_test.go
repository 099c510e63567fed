package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCacheKey(t *testing.T) {
	env := goEnv{GOVERSION: "go1.26.0", GOOS: "linux", GOARCH: "amd64"}
	with := func(change func(*goEnv)) goEnv {
		changed := env
		change(&changed)
		return changed
	}
	base := cacheKey([]byte("mod"), []byte("sum"), env, "-s")
	if again := cacheKey([]byte("mod"), []byte("sum"), env, "-s"); again != base {
		t.Errorf("the same programs have the keys %s and %s", base, again)
	}
	seen := map[string]string{base: "nothing"}
	for change, key := range map[string]string{
		"the mod file":     cacheKey([]byte("mod2"), []byte("sum"), env, "-s"),
		"the sum file":     cacheKey([]byte("mod"), []byte("sum2"), env, "-s"),
		"where one ends":   cacheKey([]byte("mods"), []byte("um"), env, "-s"),
		"the link flags":   cacheKey([]byte("mod"), []byte("sum"), env, "-w"),
		"Go's version":     cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOVERSION = "go1.26.1" }), "-s"),
		"the system":       cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOOS = "darwin" }), "-s"),
		"the architecture": cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOARCH = "arm64" }), "-s"),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("a change of %s gives the key of a change of %s", change, other)
		}
		seen[key] = change
	}
	if moved := cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOMOD = "/elsewhere/go.mod" }), "-s"); moved != base {
		t.Error("two checkouts of one version build their programs twice")
	}
}

func TestLinkFlags(t *testing.T) {
	for mod, versions := range map[string]bool{modFile: true, corednsMod: false, etcd35Mod: false} {
		p, err := makePlan(mod)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"-s -w"}
		if versions {
			want = append(want, "version.gitVersion=v1.", "version.gitMajor=1 ", "version.gitTreeState=clean")
		}
		for _, want := range want {
			if !strings.Contains(p.ldflags, want) {
				t.Errorf("%s: %q is not in %q", mod, want, p.ldflags)
			}
		}
		if strings.Contains(p.ldflags, "gitVersion") != versions {
			t.Errorf("%s: Kubernetes' version in %q: want %v", mod, p.ldflags, versions)
		}
	}
}

// TestPackages holds the list of programs against the mod file that pins them.
func TestPackages(t *testing.T) {
	mod, err := os.ReadFile("binaries.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, tools, _ := strings.Cut(string(mod), "\ntool (")
	for _, pkg := range packages {
		if !strings.Contains(tools, "\t"+pkg.path+"\n") {
			t.Errorf("%s is no tool of binaries.mod", pkg.path)
		}
	}
	if got, want := len(packages), len(programNames(Options{})); got != want {
		t.Errorf("%d programs can be built, %d are started", got, want)
	}
}

func TestMissing(t *testing.T) {
	p := plan{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.dir, etcd), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.missing([]string{"etcd", "kwok", "kube-apiserver", "kubelet"}), " ")
	if want := "kube-apiserver kwok kubelet"; got != want {
		t.Errorf("got %q, want %q: in the order of the build, what nobody can build last", got, want)
	}
}

func TestPrune(t *testing.T) {
	cache := t.TempDir()
	long := time.Now().Add(-2 * unusedFor)
	for name, used := range map[string]time.Time{"kept": long, "old": long, "recent": time.Now()} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	prune(cache, filepath.Join(cache, "kept"))
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if want := "kept recent"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
