package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// binEnv names a folder that holds the programs already.
const binEnv = "TEGEN_CLUSTER_BIN"

// The mod files that pin the programs, seen from the module's root. What cannot be in one build list with Kubernetes
// has one of its own.
const (
	modFile     = "test/cluster/binaries.mod"
	etcd35Mod   = "test/cluster/etcd35.mod"
	corednsMod  = "test/cluster/coredns.mod"
	corednsMain = "./test/cluster/coredns/main.go"
	fluxMod     = "test/cluster/flux.mod"
	fluxGitMod  = "test/cluster/flux-source.mod"
	argocdMod   = "test/cluster/argocd.mod"
	operatorMod = "test/cluster/operators.mod"
	mxnetMod    = "test/cluster/trainingoperator18.mod"

	trainingOperatorMain = "./test/cluster/trainingoperator/main.go"
	trainingOperatorOwn  = "github.com/kubeflow/training-operator/cmd/training-operator.v1"
)

// unusedFor is how long the programs of another version stay in the cache folder after their last use.
const unusedFor = 14 * 24 * time.Hour

// program is what go build makes of a package. One that we wrote has of: a package of the module that it is made of.
type program struct{ name, path, mod, of string }

// packages are what go build makes the programs of, the longest build first: most of what the others need is compiled
// with it.
var packages = []program{
	{apiserver, "k8s.io/kubernetes/cmd/kube-apiserver", modFile, ""},
	{controllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager", modFile, ""},
	{scheduler, "k8s.io/kubernetes/cmd/kube-scheduler", modFile, ""},
	{etcd, "go.etcd.io/etcd/server/v3", modFile, ""},
	{kwok, "sigs.k8s.io/kwok/cmd/kwok", modFile, ""},
	{Kubelet, "k8s.io/kubernetes/cmd/kubelet", modFile, ""},
	{KubeProxy, "k8s.io/kubernetes/cmd/kube-proxy", modFile, ""},
	{Kubectl, "k8s.io/kubernetes/cmd/kubectl", modFile, ""},
	{CoreDNS, corednsMain, corednsMod, ""},
	{Etcd35, "go.etcd.io/etcd/server/v3", etcd35Mod, ""},
	{SourceController, "github.com/fluxcd/source-controller", fluxGitMod, ""},
	{KustomizeController, "github.com/fluxcd/kustomize-controller", fluxMod, ""},
	{ArgoCD, "github.com/argoproj/argo-cd/v3/cmd", argocdMod, ""},
	{JobSet, "sigs.k8s.io/jobset", operatorMod, ""},
	{Trainer, "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", operatorMod, ""},
	{TrainingOperator, trainingOperatorMain, operatorMod, trainingOperatorOwn},
	{TrainingOperator18, trainingOperatorMain, mxnetMod, trainingOperatorOwn},
}

// goEnv is what of the go command's environment decides what a build makes.
type goEnv struct {
	GOVERSION, GOOS, GOARCH, GOMOD string
}

// plan says where the programs of a mod file are, or go.
type plan struct {
	root    string // of the module
	mod     string
	ldflags string
	dir     string // of the programs
	built   bool   // dir is ours: what is missing may be built there
}

// newPlan reads a mod file once: no test changes it.
func newPlan(mod string) (plan, error) {
	plans.mu.Lock()
	defer plans.mu.Unlock()
	if p, ok := plans.made[mod]; ok {
		return p, nil
	}
	p, err := makePlan(mod)
	if err == nil {
		plans.made[mod] = p
	}
	return p, err
}

var plans = struct {
	mu   sync.Mutex
	made map[string]plan
}{made: map[string]plan{}}

func makePlan(modFile string) (plan, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		return plan{mod: modFile, dir: dir}, nil
	}
	env, err := readGoEnv()
	if err != nil {
		return plan{}, err
	}
	p := plan{root: filepath.Dir(env.GOMOD), mod: modFile, ldflags: "-s -w", built: true}
	mod, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(modFile)))
	if err != nil {
		return plan{}, fmt.Errorf("reading the versions of the control plane's programs: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(strings.TrimSuffix(modFile, ".mod")+".sum")))
	if err != nil {
		return plan{}, fmt.Errorf("reading the versions of the control plane's programs: %w", err)
	}
	if version := kubernetesVersion.FindSubmatch(mod); version != nil {
		p.ldflags += versionFlags(version)
	}
	cache, err := cacheDir()
	if err != nil {
		return plan{}, err
	}
	for _, pkg := range packages {
		if pkg.mod != modFile || !strings.HasPrefix(pkg.path, "./") {
			continue
		}
		main, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(pkg.path))) // it is ours too
		if err != nil {
			return plan{}, fmt.Errorf("reading the program that %s is made of: %w", pkg.name, err)
		}
		sum = append(sum, main...)
	}
	p.dir = filepath.Join(cache, cacheKey(mod, sum, env, p.ldflags))
	return p, nil
}

// cacheDir is the folder that holds one folder of programs for each version.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for a cache folder (%s may name a folder of ready programs instead): %w", binEnv,
			err)
	}
	return filepath.Join(cache, "tegen", "cluster"), nil
}

// cacheKey changes with everything that changes a program.
func cacheKey(mod, sum []byte, env goEnv, ldflags string) string {
	hash := sha256.New()
	for _, part := range [][]byte{
		mod, sum, []byte(env.GOVERSION), []byte(env.GOOS), []byte(env.GOARCH), []byte(ldflags),
	} {
		// The length first, so that no two different lists read the same.
		hash.Write(fmt.Appendf(nil, "%d ", len(part)))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)

// versionFlags give programs of Kubernetes the version that a release build has: without it they would say
// v0.0.0-master.
func versionFlags(match [][]byte) string {
	const variable = " -X k8s.io/component-base/version."
	return fmt.Sprintf("%[1]sgitVersion=%[2]s%[1]sgitMajor=%[3]s%[1]sgitMinor=%[4]s%[1]sgitTreeState=clean",
		variable, match[1], match[2], match[3])
}

func readGoEnv() (goEnv, error) {
	var env goEnv
	out, err := exec.Command("go", "env", "-json", "GOVERSION", "GOOS", "GOARCH", "GOMOD").Output()
	if err != nil {
		return env, fmt.Errorf("asking the go command for its environment: %w", err)
	}
	if err := json.Unmarshal(out, &env); err != nil {
		return env, fmt.Errorf("reading the go command's environment: %w", err)
	}
	if env.GOMOD == "" || env.GOMOD == os.DevNull {
		return env, errors.New("looking for the module: this folder is in none, " +
			"so there is nothing to build the programs from")
	}
	return env, nil
}

// Program is the path of a program, such as "etcd" or "kube-apiserver", built where it is missing.
func Program(ctx context.Context, progress io.Writer, name string) (string, error) {
	if err := ensure(ctx, progress, name); err != nil {
		return "", err
	}
	p, err := newPlan(modOf(name))
	if err != nil {
		return "", err
	}
	return filepath.Join(p.dir, name), nil
}

// Source is the folder of the module cache that a program's module is in, with all that is not Go: its
// CustomResourceDefinitions.
func Source(ctx context.Context, name string) (string, error) {
	return moduleOf(ctx, name, "{{.Module.Dir}}")
}

// Version is the version of a program's module, such as v0.12.0.
func Version(ctx context.Context, name string) (string, error) {
	return moduleOf(ctx, name, "{{.Module.Version}}")
}

// moduleOf asks the go command about the module that a program is made of.
func moduleOf(ctx context.Context, name, format string) (string, error) {
	env, err := readGoEnv()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(packages, func(pkg program) bool { return pkg.name == name })
	if i < 0 {
		return "", fmt.Errorf("looking for the module of %s: a cluster has no such program", name)
	}
	pkg := packages[i]
	cmd := exec.CommandContext(ctx, "go", "list", "-modfile="+pkg.mod, "-find", "-f", format, or(pkg.of, pkg.path))
	cmd.Dir = filepath.Dir(env.GOMOD)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module of %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build builds those of the named programs that are missing, without names all of the control plane.
func Build(ctx context.Context, progress io.Writer, names ...string) error {
	if len(names) == 0 {
		names = programNames(Options{})
	}
	return ensure(ctx, progress, names...)
}

// modOf is the mod file that pins a program.
func modOf(name string) string {
	for _, pkg := range packages {
		if pkg.name == name {
			return pkg.mod
		}
	}
	return modFile
}

// ensure builds those of the named programs that are missing.
func ensure(ctx context.Context, progress io.Writer, names ...string) error {
	byMod := map[string][]string{}
	for _, name := range names {
		byMod[modOf(name)] = append(byMod[modOf(name)], name)
	}
	for _, mod := range slices.Sorted(maps.Keys(byMod)) {
		p, err := newPlan(mod)
		if err != nil {
			return err
		}
		if err := p.ensure(ctx, progress, byMod[mod]); err != nil {
			return err
		}
	}
	return nil
}

// ensure builds what is missing. One process of a machine builds at a time.
func (p plan) ensure(ctx context.Context, progress io.Writer, names []string) error {
	missing := p.missing(names)
	if len(missing) == 0 {
		if p.built {
			// Says that these are in use; where that fails, they are built again in two weeks.
			now := time.Now()
			_ = os.Chtimes(p.dir, now, now)
		}
		return nil
	}
	if !p.built {
		return fmt.Errorf("looking for %s in %s, which %s names: not there", strings.Join(missing, ", "), p.dir, binEnv)
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of programs: %w", err)
	}
	unlock, err := lock(ctx, progress, filepath.Dir(p.dir))
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have built them while we waited.
	if missing = p.missing(names); len(missing) == 0 {
		return nil
	}
	prune(filepath.Dir(p.dir), p.dir)
	return p.build(ctx, progress, missing)
}

// missing are those of the programs that are not in the folder, in the order in which they are built.
func (p plan) missing(names []string) []string {
	wanted := map[string]bool{}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err != nil {
			wanted[name] = true
		}
	}
	var missing []string
	for _, pkg := range packages {
		if wanted[pkg.name] {
			missing = append(missing, pkg.name)
			delete(wanted, pkg.name)
		}
	}
	for name := range wanted {
		missing = append(missing, name)
	}
	return missing
}

func (p plan) build(ctx context.Context, progress io.Writer, missing []string) error {
	say(progress, "building programs of a cluster for tests, once: %s", strings.Join(missing, ", "))
	say(progress, "with a cold build cache Kubernetes takes about 15 minutes on two cores (this machine has %d)",
		runtime.NumCPU())
	begin := time.Now()
	for i, name := range missing {
		var source string
		for _, pkg := range packages {
			if pkg.name == name {
				source = pkg.path
			}
		}
		if source == "" {
			return fmt.Errorf("building %s: a cluster has no such program", name)
		}
		say(progress, "  %d/%d %s ...", i+1, len(missing), name)
		step := time.Now()
		args := []string{"-modfile=" + p.mod, "-ldflags", p.ldflags}
		if err := goBuild(ctx, p.root, filepath.Join(p.dir, name), source, args...); err != nil {
			return err
		}
		say(progress, "  %d/%d %s took %.0f s", i+1, len(missing), name, time.Since(step).Seconds())
	}
	say(progress, "they took %.0f s to build and are kept in %s", time.Since(begin).Seconds(), p.dir)
	return nil
}

// BuildCommand builds a command of this module, such as "./cmd/tegen", and returns its path, which other
// checkouts do not share. Within one process, every command is built once.
func BuildCommand(ctx context.Context, progress io.Writer, pkg string) (string, error) {
	commands.mu.Lock()
	defer commands.mu.Unlock()
	if program, ok := commands.built[pkg]; ok {
		return program, nil
	}
	env, err := readGoEnv()
	if err != nil {
		return "", err
	}
	root := filepath.Dir(env.GOMOD)
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	of := sha256.Sum256([]byte(root))
	dir := filepath.Join(cache, "commands-"+hex.EncodeToString(of[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of commands: %w", err)
	}
	prune(cache, dir)
	program := filepath.Join(dir, path.Base(pkg))
	say(progress, "building %s (minutes with a cold build cache)", pkg)
	if err := goBuild(ctx, root, program, pkg, "-ldflags", "-s -w"); err != nil {
		return "", err
	}
	commands.built[pkg] = program
	return program, nil
}

var commands = struct {
	mu    sync.Mutex
	built map[string]string
}{built: map[string]string{}}

// goBuild builds a program beside its place and renames it there, so that whoever sees it sees all of it.
func goBuild(ctx context.Context, root, program, source string, args ...string) error {
	scratch := fmt.Sprintf("%s.%d", program, os.Getpid())
	defer os.Remove(scratch) //nolint:errcheck // it is there only where the build failed
	// The go command leaves a program alone that is what it would link.
	if err := copyProgram(program, scratch); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("building %s: %w", source, err)
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", scratch}, args...), source)...)
	cmd.Dir = root
	// A workspace would not let -modfile through. Without C a program runs in an image that has no library, and shares
	// its compiled packages with the tests, which make runs so too.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = &output, &output
	// An interrupted go command ends its compilers, a killed one does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("building %s: %w\n%s", source, err, bytes.TrimSpace(output.Bytes()))
	}
	if err := os.Rename(scratch, program); err != nil {
		return fmt.Errorf("building %s: %w", source, err)
	}
	return nil
}

// copyProgram copies it: a link would let the go command write into a program that runs.
func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it is only read
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}

// lock waits until no other process builds in the folder.
func lock(ctx context.Context, progress io.Writer, dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the cache of programs: %w", err)
	}
	for said := false; ; said = true {
		ok, err := tryLock(file)
		if ok {
			return func() { _ = file.Close() }, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("locking the cache of programs: %w", err), file.Close())
		}
		if !said {
			say(progress, "waiting for another process that builds the control plane (it holds %s)", file.Name())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for %s: %w", file.Name(), context.Cause(ctx)), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// prune removes what has not been used for long, other than keep. What cannot be removed stays: it only takes room.
func prune(cache, keep string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		dir := filepath.Join(cache, entry.Name())
		if err == nil && entry.IsDir() && dir != keep && time.Since(info.ModTime()) > unusedFor {
			_ = os.RemoveAll(dir)
		}
	}
}

// liveProgress is where a person sees what is written at once. Not always standard error: go test keeps that until a
// package's tests have ended, and building a control plane is the longest part of them.
var liveProgress = sync.OnceValue(func() io.Writer {
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		return tty
	}
	return os.Stderr
})

// say writes a line of progress. That nobody can read it is no reason to stop.
func say(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, format+"\n", args...)
}
