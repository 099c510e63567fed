package proxy

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// complete is Complete with a command line and an environment.
func complete(flags, command []string, env map[string]string) (*Options, error) {
	var o Options
	f := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	o.AddFlags(f)
	if err := f.Parse(flags); err != nil {
		return nil, err
	}
	return &o, o.Complete(f, command, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

func words(text string) []string { return strings.Fields(text) }

// TestCommand: what the command says, and what it is started as.
func TestCommand(t *testing.T) {
	const ours = "is_host=0,read_timeout=600"
	for name, c := range map[string]struct {
		command, run, endpoint, want string
		env                          map[string]string
	}{
		"options": {
			"torchrun --rdzv_backend=c10d --rdzv_endpoint=etcd:2379 --rdzv_id=a --nnodes=2 train.py --rdzv_id=x", "a",
			"etcd:2379",
			"torchrun --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:7 --rdzv_id=a --nnodes=2 train.py --rdzv_id=x", nil,
		},
		"words of their own, with dashes": {
			"torchrun --nnodes 2 --rdzv-id a --rdzv-endpoint http://etcd --rdzv-conf last_call_timeout=1 train.py", "a",
			"http://etcd:2379", "torchrun --nnodes 2 --rdzv-id a --rdzv-endpoint 127.0.0.1:7 --rdzv-conf " +
				"last_call_timeout=1," + ours + " train.py", nil,
		},
		"conf of its own": {
			"torchrun --rdzv_id=a --rdzv_endpoint=e --rdzv_conf=is_host=1,read_timeout=9 t.py", "a", "e:2379",
			"torchrun --rdzv_id=a --rdzv_endpoint=127.0.0.1:7 --rdzv_conf=read_timeout=9,is_host=0 t.py", nil,
		},
		"module, options without values": {
			"python3 -u -m torch.distributed.run --no_python -r 3 --rdzv_id a --rdzv_end e -m train --rdzv_id x", "a",
			"e:2379", "python3 -u -m torch.distributed.run --no_python -r 3 --rdzv_id a --rdzv_end " +
				"127.0.0.1:7 -m train --rdzv_id x", nil,
		},
		"given twice": {
			"torchrun --rdzv_id a --rdzv_endpoint x --rdzv_id b --rdzv_endpoint e -- t.py", "b", "e:2379",
			"torchrun --rdzv_id a --rdzv_endpoint x --rdzv_id b --rdzv_endpoint 127.0.0.1:7 -- t.py", nil,
		},
		"variables": {
			"sh -c ./train.sh", "a", "e:1", "sh -c ./train.sh",
			map[string]string{"PET_RDZV_ID": "a", "PET_RDZV_ENDPOINT": "e:1", "PET_RDZV_BACKEND": "c10d"},
		},
		"a script that is called so": {
			"python3 train.py torchrun --rdzv_id=x", "a", "e:1", "python3 train.py torchrun --rdzv_id=x",
			map[string]string{"PET_RDZV_ID": "a", "PET_RDZV_ENDPOINT": "e:1"},
		},
		"words with dots before it": {
			"env A=eth0.1 nsys profile -o a.qdrep torchrun --rdzv_id=a --rdzv_endpoint=e t.py", "a", "e:2379",
			"env A=eth0.1 nsys profile -o a.qdrep torchrun --rdzv_id=a --rdzv_endpoint=127.0.0.1:7 t.py", nil,
		},
		"options before variables": {
			"torchrun --rdzv_id=a t.py", "a", "e:1", "torchrun --rdzv_id=a t.py",
			map[string]string{"PET_RDZV_ID": "b", "PET_RDZV_ENDPOINT": "e:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := complete(nil, words(c.command), c.env)
			if err != nil {
				t.Fatal(err)
			}
			args, _ := o.launcher.through(7, nil)
			got := []string{o.run, strings.Join(o.etcd.Endpoints, " "), strings.Join(args, " ")}
			if diff := cmp.Diff([]string{c.run, c.endpoint, c.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEnvironment: a launcher that the command hides finds its store in variables, and no password.
func TestEnvironment(t *testing.T) {
	env := map[string]string{
		"PET_RDZV_ID": "a", "PET_RDZV_CONF": "last_call_timeout=1", "TEGEN_RENDEZVOUS_PASSWORD": "secret",
		"TEGEN_RENDEZVOUS_ENDPOINTS": "http://one:1,two", "TEGEN_RENDEZVOUS_USER": "me",
	}
	o, err := complete(nil, []string{"./train.sh"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http://one:1", "two:2379"}, o.etcd.Endpoints); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var environ []string
	for name, v := range env {
		environ = append(environ, name+"="+v)
	}
	_, list := o.launcher.through(7, environ)
	got := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	want := map[string]string{
		"PET_RDZV_ID": "a", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "127.0.0.1:7",
		"PET_RDZV_CONF": "last_call_timeout=1,is_host=0,read_timeout=600", noShare: "1",
		"PET_MONITOR_INTERVAL": "0.1", "TEGEN_RENDEZVOUS_ENDPOINTS": "http://one:1,two", "TEGEN_RENDEZVOUS_USER": "me",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(list) != len(got) {
		t.Errorf("a variable comes twice: %q", list)
	}
}

// TestMistakes: what is wrong is said before anything is started.
func TestMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const good = "torchrun --rdzv_id=a --rdzv_endpoint=e t.py"
	for name, c := range map[string]struct {
		flags, command string
		env            map[string]string
		want           string
	}{
		"nothing":    {want: "no command given"},
		"no id":      {command: "torchrun --rdzv_endpoint=e t.py", want: "the run has no id"},
		"id behind":  {command: "torchrun t.py --rdzv_id=a", want: "the run has no id"},
		"no etcd":    {command: "torchrun --rdzv_id=a t.py", want: "no etcd is named"},
		"empty etcd": {command: "torchrun --rdzv_id=a --rdzv_endpoint= t.py", want: "no etcd is named"},
		"standalone": {command: "torchrun --standalone t.py", want: "--standalone has no store"},
		"backend": {
			command: "torchrun --rdzv-backend etcd-v2 --rdzv_id=a --rdzv_endpoint=e t.py",
			want:    `the command asks for "etcd-v2"`,
		},
		"backend in a variable": {
			command: good, env: map[string]string{"PET_RDZV_BACKEND": "static"}, want: `asks for "static"`,
		},
		"scheme":   {flags: "--endpoints ftp://e", command: good, want: "neither http nor https"},
		"path":     {flags: "--endpoints http://e:2379/v3", command: good, want: "has a path"},
		"port":     {flags: "--endpoints e:http", command: good, want: "its port is not a number"},
		"no host":  {flags: "--endpoints http://", command: good, want: "names no host"},
		"password": {flags: "--endpoints http://me:secret@e", command: good, want: "holds no user and no password"},
		"user":     {flags: "--user me", command: good, want: "--user needs a password"},
		"no user": {
			command: good, env: map[string]string{"TEGEN_RENDEZVOUS_PASSWORD": "x"}, want: "a password needs --user",
		},
		"empty file": {
			flags: "--user me --password-file " + empty, command: good, want: "--user needs a password",
		},
		"no file": {
			flags: "--user me --password-file " + empty + "x", command: good, want: "reading the password",
		},
		"certificate":   {flags: "--cert " + empty, command: good, want: "key"},
		"authority":     {flags: "--cacert " + empty, command: good, want: "certificate"},
		"long":          {flags: "--run-ttl 24h1s", command: good, want: "--run-ttl: 24h0m1s is more than 24h"},
		"hasty":         {flags: "--evict-after 1s", command: good, want: "1s is less than 2s. Use 2s or more, or 0"},
		"no grace":      {flags: "--worker-grace=-1s", command: good, want: "--worker-grace: -1s is negative. Use"},
		"negative":      {flags: "--evict-after=-1s", command: good, want: "--evict-after: -1s is less than 2s"},
		"short":         {flags: "--run-ttl 1s", command: good, want: "--run-ttl: 1s is less than 2s"},
		"prefix":        {flags: "--prefix=", command: good, want: "--prefix is empty"},
		"bad variable":  {command: good, env: map[string]string{"TEGEN_RENDEZVOUS_RUN_TTL": "x"}, want: "RUN_TTL"},
		"unknown flags": {flags: "--nnodes 2", command: good, want: "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := complete(words(c.flags), words(c.command), c.env)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it shows a password: %v", err)
			}
		})
	}
}

// TestNodes: a proxy evicts no node that a world of the command needs, and none if it cannot know how many nodes that
// needs. It does not change the command's own interval.
func TestNodes(t *testing.T) {
	const torchrun = "torchrun --rdzv_id=a --rdzv_endpoint=e "
	for name, c := range map[string]struct {
		command  string
		env      map[string]string
		least    int // 0: unknown
		interval string
	}{
		"range":            {command: torchrun + "--nnodes=2:4 --monitor-interval 3 t.py", least: 2},
		"number":           {command: torchrun + "--nnodes 3 t.py", least: 3, interval: "0.1"},
		"torchrun's own 1": {command: torchrun + "t.py", least: 1, interval: "0.1"},
		"no number":        {command: torchrun + "--nnodes=x:4 t.py", interval: "0.1"},
		"no nodes":         {command: torchrun + "--nnodes=0:4 t.py", interval: "0.1"},
		"variable": {
			command: torchrun + "t.py", env: map[string]string{"PET_NNODES": "2:3"}, least: 2, interval: "0.1",
		},
		"option before variable": {
			command: torchrun + "--nnodes=3 t.py", env: map[string]string{"PET_NNODES": "2"}, least: 3, interval: "0.1",
		},
		"script": {command: "./train.sh", interval: "0.1"},
		"script and variable": {
			command: "./train.sh", env: map[string]string{"PET_NNODES": "2:4"}, least: 2, interval: "0.1",
		},
		"shell": {command: "sh -c ./train.sh", interval: "0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"PET_RDZV_ID": "a", "PET_RDZV_ENDPOINT": "e"}
			maps.Copy(env, c.env)
			o, err := complete(nil, words(c.command), env)
			if err != nil {
				t.Fatal(err)
			}
			_, list := o.launcher.through(7, nil)
			interval := ""
			for _, v := range list {
				if text, ok := strings.CutPrefix(v, "PET_MONITOR_INTERVAL="); ok {
					interval = text
				}
			}
			if o.minNodes != c.least || interval != c.interval {
				t.Errorf("got at least %d nodes and interval %q, want %d and %q", o.minNodes, interval, c.least,
					c.interval)
			}
			if evicts := o.engine(nil).Silence > 0; evicts != (c.least > 0) {
				t.Errorf("at least %d nodes are needed, and silent ones are evicted: %v", c.least, evicts)
			}
		})
	}
}
