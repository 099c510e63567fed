package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// holder is us: while we hold the Lease no scheduler schedules, but all watch.
const holder = "bench"

// standby is a scheduler that waits to become leader.
type standby struct {
	bench     *bench
	contender contender
	process   *cluster.Process
	url       string
}

// standBy takes the Lease, starts a scheduler and waits until it has seen the cluster.
func (b *bench) standBy(ctx context.Context, c contender) (*standby, error) {
	if err := b.hold(ctx, holder); err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	url, arg := c.serving(port)
	s := &standby{bench: b, contender: c, url: url}
	if s.process, err = b.Run(ctx, "bench", c.program, append(c.args, arg)...); err != nil {
		return nil, err
	}
	err = until(ctx, 50*time.Millisecond, c.name+" to be ready", func() (string, bool) {
		select {
		case <-s.process.Done():
			return "it ended", false
		default:
		}
		err := s.ready(ctx)
		return fmt.Sprint(err), err == nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w; see %s", err, s.process.Log()), s.process.Kill())
	}
	return s, nil
}

// ready asks the first page that the scheduler has of those that say so. Not all have the first, and vc-scheduler has
// the last alone.
func (s *standby) ready(ctx context.Context) (err error) {
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		if _, err = s.get(ctx, path); !errors.Is(err, errNoPage) {
			break
		}
	}
	return err
}

// hold writes the holder of the Lease: ourselves, or nobody.
func (b *bench) hold(ctx context.Context, who string) error {
	seconds, now := int32(24*60*60), metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: &who, LeaseDurationSeconds: &seconds, AcquireTime: &now,
		RenewTime: &now,
	}
	leases := b.Client().CoordinationV1().Leases(namespace)
	l, err := leases.Get(ctx, lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      lease,
		}, Spec: spec}, metav1.CreateOptions{})
	case err == nil:
		l.Spec = spec
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("setting the holder of the Lease: %w", err)
	}
	return nil
}

// lead lets the scheduler become leader and returns when it did, as the API says.
func (s *standby) lead(ctx context.Context) (time.Time, error) {
	leases := s.bench.Client().CoordinationV1().Leases(namespace)
	list, err := leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("listing Leases: %w", err)
	}
	if err := s.bench.hold(ctx, ""); err != nil {
		return time.Time{}, err
	}
	var when time.Time
	err = s.bench.follow(ctx, leases, metav1.ListOptions{ResourceVersion: list.ResourceVersion},
		func(o metav1.Object) bool {
			l, ok := o.(*coordinationv1.Lease)
			when = time.Now()
			return ok && l.Name == lease && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" &&
				*l.Spec.HolderIdentity != holder
		})
	if err != nil {
		return when, fmt.Errorf("waiting for %s to become leader: %w", s.contender.name, err)
	}
	return when, nil
}

// awaitIdle waits until the scheduler has all pods in its queue, where it has one yet, and neither it nor the API
// server has work left of that.
func (s *standby) awaitIdle(ctx context.Context, pods int) error {
	const interval, idle = 250 * time.Millisecond, 40 * time.Millisecond
	server, err := s.bench.Pid("kube-apiserver")
	if err != nil {
		return err
	}
	used := func() (time.Duration, error) {
		own, err := s.cpu()
		if err != nil {
			return 0, err
		}
		api, err := cpuOf(server)
		return own + api, err
	}
	last := -time.Hour
	return until(ctx, interval, fmt.Sprintf("%d pods to be queued and all to be quiet", pods), func() (string, bool) {
		now, err := used()
		if err != nil {
			return err.Error(), false
		}
		spent := now - last
		last = now
		if spent > idle {
			return fmt.Sprintf("%v of CPU in the last %v", spent, interval), false
		}
		if !s.contender.queues() {
			return "", true
		}
		queued, err := s.queued(ctx) // only now: the page of counts costs CPU too
		return fmt.Sprintf("%d are queued (%v)", queued, err), err == nil && queued >= pods
	})
}

// queued is how many pods the scheduler has in any of its queues.
func (s *standby) queued(ctx context.Context) (int, error) {
	return s.sum(ctx, "scheduler_pending_pods{")
}

// calls is how many requests the scheduler has sent to the API server.
func (s *standby) calls(ctx context.Context) (int, error) {
	return s.sum(ctx, "rest_client_requests_total{")
}

// sum adds up a metric of the scheduler.
func (s *standby) sum(ctx context.Context, prefix string) (int, error) {
	text, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return sumOf(text, prefix)
}

func sumOf(text, prefix string) (int, error) {
	sum := 0.0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, prefix) {
			n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("reading %q: %w", line, err)
			}
			sum += n
		}
	}
	return int(sum), nil
}

var errNoPage = errors.New("there is no such page")

// get reads a page that the scheduler serves.
func (s *standby) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.bench.Config().BearerToken)
	resp, err := s.bench.insecure.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return "", fmt.Errorf("reading %s: %w", path, errNoPage)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("reading %s: %s: %s", path, resp.Status, body)
	}
	return string(body), nil
}

// profile writes a CPU profile of the scheduler's next seconds into a folder, and sends when that is done: at once
// where there is no folder.
func (s *standby) profile(ctx context.Context, dir string, t trial) <-chan error {
	out := make(chan error, 1)
	if dir == "" {
		out <- nil
		return out
	}
	go func() {
		text, err := s.get(ctx, "/debug/pprof/profile?seconds=10")
		if err == nil {
			name := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(t.String()) + ".pprof"
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
		if err != nil {
			err = fmt.Errorf("profiling %s: %w", t.by, err)
		}
		out <- err
	}()
	return out
}

func (s *standby) cpu() (time.Duration, error) { return cpuOf(s.process.Pid()) }

// memory is the most that the scheduler has had resident so far, in bytes.
func (s *standby) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Pid()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return parseStatus(string(text))
}

// parseStatus reads VmHWM of proc(5).
func parseStatus(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of a process: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, errors.New("reading the memory of a process: no VmHWM")
}

// cpuOf is what a process has used so far, user and system, in steps of 10 ms (proc(5): utime and stime of stat, 100 a
// second on every architecture of Linux that Go runs on).
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
	}
	return parseStat(string(text))
}

func parseStat(text string) (time.Duration, error) {
	const utime, stime = 11, 12 // counted behind the name, which stands in parentheses and may hold anything
	parts := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(parts) <= stime {
		return 0, fmt.Errorf("reading the CPU time of a process: %q is too short", text)
	}
	var ticks int64
	for _, part := range []string{parts[utime], parts[stime]} {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
