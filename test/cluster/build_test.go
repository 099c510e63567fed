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
		"the mod file":   cacheKey([]byte("mod2"), []byte("sum"), env, "-s"),
		"the sum file":   cacheKey([]byte("mod"), []byte("sum2"), env, "-s"),
		"where one ends": cacheKey([]byte("mods"), []byte("um"), env, "-s"),
		"the link flags": cacheKey([]byte("mod"), []byte("sum"), env, "-w"),
		"Go's version": cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOVERSION = "go1.26.1" }),
			"-s"),
		"the system":       cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOOS = "darwin" }), "-s"),
		"the architecture": cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOARCH = "arm64" }), "-s"),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("a change of %s gives the key of a change of %s", change, other)
		}
		seen[key] = change
	}
	if elsewhere := cacheKey([]byte("mod"), []byte("sum"), with(func(e *goEnv) { e.GOMOD = "/elsewhere/go.mod" }),
		"-s"); elsewhere != base {
		t.Error("two checkouts of one version build their programs twice")
	}
}

func TestLinkFlags(t *testing.T) {
	t.Setenv(binEnv, "")
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

// TestPackages holds the list of programs against the mod files that pin them.
func TestPackages(t *testing.T) {
	built := map[string]bool{}
	for _, pkg := range packages {
		built[pkg.name] = true
		mod, err := os.ReadFile(filepath.Base(pkg.mod))
		if err != nil {
			t.Fatal(err)
		}
		// "tool path" on a line of its own, or a block of tools.
		_, tools, _ := strings.Cut(string(mod), "\ntool ")
		if strings.HasPrefix(pkg.path, "./") {
			continue // a file of ours, which requires what it imports
		}
		if !strings.Contains(tools, pkg.path+"\n") {
			t.Errorf("%s is no tool of %s", pkg.path, pkg.mod)
		}
	}
	for _, name := range append(programNames(Options{}), RealNodes()...) {
		if !built[name] {
			t.Errorf("%s is started and cannot be built", name)
		}
	}
}

func TestMissing(t *testing.T) {
	p := plan{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.dir, etcd), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.missing([]string{"etcd", "nothing", "kwok", "kube-apiserver"}), " ")
	if want := "kube-apiserver kwok nothing"; got != want {
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
