package launcher

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/internal/names"
)

// parse reads a command line beside variables.
func parse(env map[string]string, args ...string) (*Options, []string, error) {
	o, f := NewOptions(), pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.AddFlags(f)
	if err := f.Parse(args); err != nil {
		return o, nil, err
	}
	err := o.Complete(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return o, f.Args(), err
}

func TestFlagsAndVariables(t *testing.T) {
	where := []string{"--rdzv-backend=etcd", "--rdzv_endpoint=e:1", "--rdzv_id=r"}
	type seen struct {
		Least, Most, Workers, Restarts int
		Backend, Endpoint, ID, Role    string
		Standalone                     bool
		Join, LastCall, Grace          time.Duration
		Command                        string
	}
	base := seen{
		Least: 1, Most: 1, Workers: 1, Backend: "etcd", Endpoint: "e:1", ID: "r", Role: "default",
		Join: 600 * time.Second, LastCall: 30 * time.Second, Grace: 30 * time.Second,
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want func(*seen)
	}{
		"torchrun's defaults": {nil, where, func(*seen) {}},
		"underscores and dashes": {nil, append(where, "--nnodes=2:4", "--nproc_per_node", "8", "--max-restarts", "3",
			"--shutdown_timeout=1.5"), func(s *seen) {
			s.Least, s.Most, s.Workers, s.Restarts, s.Grace = 2, 4, 8, 3, 1500*time.Millisecond
		}},
		"variables alone": {
			map[string]string{
				"PET_RDZV_BACKEND": "etcd-v3", "PET_RDZV_ENDPOINT": "s:2379", "PET_RDZV_ID": "x", "PET_NNODES": "3",
				"PET_NPROC_PER_NODE": "2",
				"PET_MAX_RESTARTS":   "5", "PET_RDZV_CONF": "timeout=60,last_call_timeout=2", "PET_ROLE": "trainer",
			}, nil, func(s *seen) {
				*s = seen{
					3, 3, 2, 5, "etcd-v3", "s:2379", "x", "trainer", false, time.Minute, 2 * time.Second,
					30 * time.Second, "",
				}
			},
		},
		"flags beat variables": {
			map[string]string{"PET_NNODES": "7", "PET_RDZV_ID": "other", "PET_ROLE": "kept"},
			append(where, "--nnodes", "2"), func(s *seen) {
				s.Least, s.Most, s.Role = 2, 2, "kept"
			},
		},
		"standalone by a variable": {
			map[string]string{"PET_STANDALONE": "1"},
			where,
			func(s *seen) { s.Standalone = true },
		},
		"not standalone by one": {
			map[string]string{"PET_STANDALONE": "0"},
			where,
			func(*seen) {},
		},
		"a flag that a launcher's variable would refuse": {map[string]string{
			"PET_NODE_RANK":   "1",
			"PET_MASTER_ADDR": "m",
		}, where, func(*seen) {}},
		"the command's own flags": {
			nil, append(where, "python", "--nnodes", "9", "--rdzv_id=z"),
			func(s *seen) { s.Command = "python --nnodes 9 --rdzv_id=z" },
		},
		"the command after dashes": {
			nil, append(where, "--", "--odd", "-r"),
			func(s *seen) { s.Command = "--odd -r" },
		},
		"a time with its unit": {
			nil,
			append(where, "--rdzv-conf=join_timeout=2m,last_call_timeout=500ms"),
			func(s *seen) { s.Join, s.LastCall = 2*time.Minute, 500*time.Millisecond },
		},
		"no_python for old scripts": {
			nil, append(where, "--no_python", "train"),
			func(s *seen) { s.Command = "train" },
		},
	} {
		o, args, err := parse(c.env, c.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := base
		c.want(&want)
		got := seen{
			o.least, o.most, o.workers, o.maxRestarts, o.backend, o.endpoint, o.rdzvID, o.role, o.standalone,
			o.conf.join, o.conf.lastCall, o.shutdown.Duration, strings.Join(args, " "),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEndpoints(t *testing.T) {
	o := Options{endpoint: "a:1, b ,https://c/,http://d:2,,::1,[::1]:3"}
	want := []string{"a:1", "b:2379", "https://c:2379", "http://d:2", "[::1]:2379", "[::1]:3"}
	if diff := cmp.Diff(want, o.endpoints()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "--rdzv-backend is missing: etcd or etcd-v3; or use --standalone",
		"--rdzv-backend=etcd": "--rdzv-endpoint is missing: host:port of the store",
		"--rdzv-backend=c10d": "c10d keeps Python objects in its store, so only torchrun can take part: use " +
			"etcd or etcd-v3",
		"--rdzv-backend=zookeeper":   `"zookeeper" is neither etcd nor etcd-v3`,
		"--standalone --nnodes=2":    "--standalone: --nnodes 2 asks for more than one machine",
		"--standalone --nnodes=3:2":  `--nnodes: "3:2" is neither a number of machines nor min:max, with 1 ≤ min ≤ max`,
		"--standalone --nnodes=0":    `--nnodes: "0" is neither`,
		"--nproc-per-node=0":         `--nproc-per-node: "0" is neither a number above 0 nor one of auto, gpu, cpu`,
		"--nproc-per-node=100000000": `--nproc-per-node: 100000000 is above 1024, the most on one machine`,
		"--nproc-per-node=tpu":       `"tpu" is neither`,
		"--rdzv-conf=ttl":            `--rdzv-conf: "ttl" is not key=value`,
		"--rdzv-conf=password=a,b":   `--rdzv-conf: "..." is not key=value`,
		"--rdzv-backend=etcd --rdzv-endpoint=me:secret@etcd": "--rdzv-endpoint: user and password belong into " +
			"PET_RDZV_CONF",
		"--rdzv-backend=etcd --rdzv-endpoint=,": "--rdzv-endpoint is missing",
		"--rdzv-conf=ttl=soon":                  `ttl: "soon" is not a time in seconds`,
		"--rdzv-conf=is_host=1":                 `unknown key "is_host"; there are join_timeout, timeout, last_call`,
		"--rdzv-conf=cert=a":                    "cert and key belong together",
		"--rdzv-conf=neighbours":                `"neighbours" is not key=value`,
		"--rdzv-conf=neighbours=":               `neighbours: "" is neither true nor false`,
		"--rdzv-conf=neighbours=0":              `neighbours: "0" is neither true nor false`,
		"--rdzv-conf=neighbours=False":          `neighbours: "False" is neither true nor false`,
		"--rdzv-conf=protocol=ftp":              `protocol: "ftp" is neither http nor https`,
		"--max-restarts=-1":                     "--max-restarts: -1 is below 0",
		"--redirects=5":                         `--redirects: "5" is neither 0, 1, 2 or 3 nor pairs like 0:3,1:2`,
		"--local-ranks-filter=a":                `--local-ranks-filter: "a" is not local ranks like 0,1`,
		"--signals-to-handle=SIGKILL":           `--signals-to-handle: "SIGKILL" is none of SIGTERM`,
		"--shutdown-timeout=-1":                 `"-1" is not a time in seconds`,
		"-m train": "this torchrun option is not supported: give the whole " +
			"command: -- python -m MODULE",
		"--start_method=fork": "this torchrun option is not supported: every worker " +
			"is a process of its own",
		"--node_rank 1": "this torchrun option is not supported: ranks come of " +
			"the rendezvous",
		"PET_NNODES=two":                `--nnodes: "two" is neither`,
		"PET_MAX_RESTARTS=many":         `PET_MAX_RESTARTS=many: `,
		"PET_SHUTDOWN_TIMEOUT=tomorrow": `PET_SHUTDOWN_TIMEOUT=tomorrow: "tomorrow" is not a time in seconds`,
		"PET_MODULE=1":                  "PET_MODULE=1: this torchrun option is not supported",
	} {
		env := map[string]string{}
		if key, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(line, "PET_") {
			env[key], line = value, ""
		}
		_, _, err := parse(env, strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "%!") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %v: got %v, want %s", line, env, err, want)
		}
	}
}

func TestAccelerators(t *testing.T) {
	nvidia, amd, none := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{
		nvidia + "/nvidia0", nvidia + "/nvidia1", nvidia + "/nvidia7", nvidia + "/nvidiactl", nvidia + "/nvidia-uvm",
		amd + "/kfd", amd + "/dri/renderD128", amd + "/dri/renderD129", amd + "/dri/card0", none + "/dri/renderD128",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dev, variable, value string
		want                 int
	}{
		{nvidia, "", "", 3},
		{amd, "", "", 2},
		{none, "", "", 0},
		{nvidia, "CUDA_VISIBLE_DEVICES", "0,2", 2},
		{nvidia, "CUDA_VISIBLE_DEVICES", "", 0},
		{nvidia, "CUDA_VISIBLE_DEVICES", "-1", 0},
		{nvidia, "CUDA_VISIBLE_DEVICES", "0,9,1", 1},
		{nvidia, "CUDA_VISIBLE_DEVICES", "GPU-8932f937, MIG-1", 2},
		{nvidia, "ROCR_VISIBLE_DEVICES", "0", 3},
		{amd, "ROCR_VISIBLE_DEVICES", "1", 1},
		{none, "CUDA_VISIBLE_DEVICES", "0,1", 0},
	} {
		got := accelerators(c.dev, func(name string) (string, bool) { return c.value, name == c.variable })
		if got != c.want {
			t.Errorf("%s %s=%q: %d, want %d", filepath.Base(c.dev), c.variable, c.value, got, c.want)
		}
	}
	if n, err := parseProcesses("cpu", os.LookupEnv); err != nil || n != runtime.GOMAXPROCS(0) {
		t.Errorf("cpu: %d, %v", n, err)
	}
}

// TestWorkersEnviron: the store's password is the agent's alone.
func TestWorkersEnviron(t *testing.T) {
	got := workersEnviron([]string{"A=1", names.RendezvousPassword + "=secret", names.RendezvousPassword + "_HINT=2"})
	if diff := cmp.Diff([]string{"A=1", names.RendezvousPassword + "_HINT=2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLauncherConf: the keys that a job may hand through are those that the launcher takes, less what fields set.
func TestLauncherConf(t *testing.T) {
	fields := []string{"cacert", "cert", "join_timeout", "key", "last_call_timeout", "password", "protocol", "timeout"}
	var got []string
	for _, s := range settings {
		got = append(got, s.names...)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(slices.Concat(fields, names.LauncherConf)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	o, _, err := parse(map[string]string{names.RendezvousPassword: "p"},
		"--rdzv-backend=etcd-v3", "--rdzv-endpoint=e:1", "--rdzv-id=r", "--rdzv-conf=user=u", "c")
	if err != nil || o.conf.password != "p" {
		t.Errorf("password %q, %v", o.conf.password, err)
	}
	for line, apart := range map[string]bool{"": false, "neighbours=true": false, "neighbours=false": true} {
		o, _, err := parse(nil, "--rdzv-backend=etcd-v3", "--rdzv-endpoint=e:1", "--rdzv-id=r",
			"--rdzv-conf="+line, "c")
		if err != nil || o.v3Options(nil).Apart != apart {
			t.Errorf("%q: %t, %v", line, o.conf.apart, err)
		}
	}
}
