//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/rendezvous/daemon"
	"github.com/tegen-dev/tegen/rendezvous/internal/names"
	"github.com/tegen-dev/tegen/rendezvous/proxy"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
	"github.com/tegen-dev/tegen/rendezvous/test/tegen"
)

const installed = "/tegen/bin/" + names.Rendezvous

// renderedPod is what the manifests say of a pod that this program runs in.
type renderedPod struct {
	Grace      *int64              `yaml:"terminationGracePeriodSeconds"`
	Init       []renderedContainer `yaml:"initContainers"`
	Containers []renderedContainer `yaml:"containers"`
	Volumes    []renderedVolume
}

type renderedVolume struct {
	Name   string
	Secret struct {
		Name  string `yaml:"secretName"`
		Items []struct{ Key, Path string }
	}
}

type renderedContainer struct {
	Name, Image   string
	Command, Args []string
	Env           []renderedVariable
	Ports         []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Startup   renderedProbe `yaml:"startupProbe"`
	Readiness renderedProbe `yaml:"readinessProbe"`
	Liveness  renderedProbe `yaml:"livenessProbe"`
	Mounts    []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type renderedVariable struct {
	Name, Value string
	ValueFrom   map[string]any `yaml:"valueFrom"`
}

type renderedProbe struct {
	Get probed `yaml:"httpGet"`
}

type probed struct{ Path, Port string }

// ours says which of the program's commands a container runs, "" for none.
func (c *renderedContainer) ours() string {
	words := slices.Concat(c.Command, c.Args)
	switch {
	case len(words) > 1 && words[0] == installed:
		return words[1]
	case len(c.Command) == 0 && len(words) > 0 && strings.Contains(c.Image, names.Rendezvous+":"):
		return words[0]
	}
	return ""
}

// renderedPods are the pods of manifests, and for each what a controller adds to it.
func renderedPods(t *testing.T, text []byte) (pods []renderedPod) {
	t.Helper()
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		if err := in.Decode(&doc); errors.Is(err, io.EOF) {
			return pods
		} else if err != nil {
			t.Fatal(err)
		}
		found := podsBelow(t, &doc)
		for i := range found {
			addControllers(t, &doc, &found[i])
		}
		pods = append(pods, found...)
	}
}

func podsBelow(t *testing.T, n *yaml.Node) (pods []renderedPod) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "containers" {
			var pod renderedPod
			if err := n.Decode(&pod); err != nil {
				t.Fatal(err)
			}
			pods = append(pods, pod)
		}
		pods = append(pods, podsBelow(t, child)...)
	}
	return pods
}

// addControllers adds the words that TorchElastic's controller puts before the arguments, and the variables that the
// training operator makes of an elastic policy.
func addControllers(t *testing.T, doc *yaml.Node, pod *renderedPod) {
	t.Helper()
	var object struct{ Kind string }
	var elastic struct {
		Spec struct {
			Endpoint string `yaml:"rdzvEndpoint"`
			Min      int    `yaml:"minReplicas"`
			Max      int    `yaml:"maxReplicas"`
		}
	}
	var operated struct {
		Spec struct {
			Policy struct {
				Min      int                           `yaml:"minReplicas"`
				Max      int                           `yaml:"maxReplicas"`
				Backend  string                        `yaml:"rdzvBackend"`
				Host     string                        `yaml:"rdzvHost"`
				Port     int                           `yaml:"rdzvPort"`
				ID       string                        `yaml:"rdzvId"`
				Restarts int                           `yaml:"maxRestarts"`
				Conf     []struct{ Key, Value string } `yaml:"rdzvConf"`
			} `yaml:"elasticPolicy"`
			Processes string `yaml:"nprocPerNode"`
		}
	}
	if err := doc.Decode(&object); err != nil {
		t.Fatal(err)
	}
	c := &pod.Containers[0]
	switch object.Kind {
	case "ElasticJob":
		if err := doc.Decode(&elastic); err != nil {
			t.Fatal(err)
		}
		s := elastic.Spec
		c.Args = slices.Concat([]string{
			"--rdzv_backend=etcd", "--rdzv_endpoint=" + s.Endpoint, "--rdzv_id=j",
			fmt.Sprintf("--nnodes=%d:%d", s.Min, s.Max),
		}, c.Args)
	case "PyTorchJob":
		if err := doc.Decode(&operated); err != nil {
			t.Fatal(err)
		}
		p, conf := operated.Spec.Policy, []string{}
		for _, pair := range p.Conf {
			conf = append(conf, pair.Key+"="+pair.Value)
		}
		for name, value := range map[string]string{
			"PET_RDZV_BACKEND": p.Backend, "PET_RDZV_ENDPOINT": fmt.Sprintf("%s:%d", p.Host, p.Port),
			"PET_RDZV_ID":   p.ID,
			"PET_RDZV_CONF": strings.Join(conf, ","), "PET_NNODES": fmt.Sprintf("%d:%d", p.Min, p.Max),
			"PET_MAX_RESTARTS": fmt.Sprint(p.Restarts), "PET_NPROC_PER_NODE": operated.Spec.Processes,
		} {
			c.Env = append(c.Env, renderedVariable{Name: name, Value: value})
		}
	}
}

// TestRendered: what the manifests tell the program it understands, and what probes and Services ask of it is there.
func TestRendered(t *testing.T) {
	text := slices.Concat(tegen.Render(t, "*"), []byte("---\n"), tegen.Render(t, "*", "--overlay=overlays/kind"),
		[]byte("---\n"), tegen.Run(t, "install", "rendezvous", "--clients", "training",
			"--image", "example.com/"+names.Rendezvous+":v1"))
	seen := map[string]int{}
	for _, pod := range renderedPods(t, text) {
		for i, c := range slices.Concat(pod.Init, pod.Containers) {
			command := c.ours()
			if command == "" {
				continue
			}
			seen[command]++
			var err error
			switch words := slices.Concat(c.Command, c.Args); command {
			case "serve":
				err = checkServe(&c, words[1:], pod.grace())
			case "proxy":
				err = checkProxy(&c, words[2:])
			case "certificates":
				o := newCertificatesCmd()
				err = errors.Join(o.ParseFlags(words[1:]), o.ValidateArgs(o.Flags().Args()))
			case "install":
				if i >= len(pod.Init) || len(words) != 2 || words[1] != installed {
					err = fmt.Errorf("installs %q", words)
				}
			default:
				err = errors.New("there is no such command")
			}
			if err != nil {
				t.Errorf("%s of container %s with %q: %v", command, c.Name, slices.Concat(c.Command, c.Args), err)
			}
		}
	}
	for _, command := range []string{"serve", "proxy", "install", "certificates"} {
		if seen[command] == 0 {
			t.Errorf("%s is not rendered anywhere", command)
		}
	}
}

func (p *renderedPod) grace() time.Duration {
	if p.Grace == nil {
		return 30 * time.Second // Kubernetes' own
	}
	return time.Duration(*p.Grace) * time.Second
}

func checkServe(c *renderedContainer, args []string, grace time.Duration) error {
	var o daemon.Options
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return fmt.Errorf("arguments %q are left", rest)
	}
	env := map[string]string{}
	for _, v := range c.Env {
		switch {
		case v.Name == names.RendezvousPassword && v.ValueFrom != nil:
			env[v.Name] = "from a Secret"
		case strings.HasPrefix(v.Name, "TEGEN_RENDEZVOUS_"):
			return fmt.Errorf("variable %s has value %q", v.Name, v.Value)
		}
	}
	o.Etcd, o.TLS = server.Files{}, server.Files{} // which are in Secrets
	if err := o.Complete(flags, lookup(env)); err != nil {
		return err
	}
	if _, err := o.Config(slog.New(slog.DiscardHandler), zap.NewNop()); err != nil {
		return err
	}
	ports := map[string]string{"status": o.ListenStatus, "rendezvous": o.ListenClient}
	if o.ListenClient == "" {
		ports["rendezvous"] = o.ListenC10d + o.ListenProxies
	}
	for _, p := range c.Ports {
		if _, port, _ := net.SplitHostPort(ports[p.Name]); port != fmt.Sprint(p.Port) {
			return fmt.Errorf("port %s is %d, and it listens on %q", p.Name, p.Port, ports[p.Name])
		}
	}
	listeners := slices.DeleteFunc([]string{o.ListenClient, o.ListenC10d, o.ListenProxies},
		func(l string) bool { return l == "" })
	if len(listeners) != 1 || len(c.Ports) != 2 {
		return fmt.Errorf("it listens at %q, and ports are %v", listeners, c.Ports)
	}
	for _, raw := range o.AdvertiseClientURLs {
		if u, err := url.Parse(raw); err != nil || !strings.HasSuffix(o.ListenClient, ":"+u.Port()) {
			return fmt.Errorf("it listens on %s and tells %s", o.ListenClient, raw)
		}
	}
	want := []renderedProbe{
		{probed{"/readyz", "status"}},
		{probed{"/readyz", "status"}},
		{probed{"/healthz", "status"}},
	}
	if diff := cmp.Diff(want, []renderedProbe{c.Startup, c.Readiness, c.Liveness}); diff != "" {
		return fmt.Errorf("probes (-want +got):\n%s", diff)
	}
	if o.ListenC10d != "" && grace <= o.DrainTimeout {
		return fmt.Errorf("it is killed after %s, and drains for %s", grace, o.DrainTimeout)
	}
	return nil
}

// checkProxy holds what stands before a torchrun to what a proxy understands.
func checkProxy(c *renderedContainer, args []string) error {
	var o proxy.Options
	flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	o.AddFlags(flags)
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = "from a Secret"
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, file := range []string{"cacert", "cert", "key"} { // which are in Secrets
		if err := flags.Set(file, ""); err != nil {
			return err
		}
	}
	return o.Complete(flags, flags.Args(), lookup(env))
}

// lookup is os.LookupEnv of another environment.
func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// here makes rendered arguments of serve start on any machine.
func here(t *testing.T, args []string) (out []string) {
	t.Helper()
	for _, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		switch {
		case strings.HasPrefix(flag, "--listen-") && value != "":
			arg = flag + "=127.0.0.1:0"
		case flag == "--data-dir":
			arg = flag + "=" + filepath.Join(t.TempDir(), "data")
		case flag == "--advertise-client-urls":
			continue // the port is not known yet
		}
		out = append(out, arg)
	}
	return out
}

// rendered is a container of a fixture by the command that it runs, and its pod.
func rendered(t *testing.T, fixture, command string) (renderedContainer, renderedPod) {
	t.Helper()
	for _, pod := range renderedPods(t, tegen.Render(t, fixture)) {
		for _, c := range slices.Concat(pod.Init, pod.Containers) {
			if c.ours() == command {
				return c, pod
			}
		}
	}
	t.Fatalf("%s has no %s", fixture, command)
	return renderedContainer{}, renderedPod{}
}

// withSecret gives the words of a container the paths of a Secret's files on this machine, as its pod mounts them.
func withSecret(t *testing.T, words []string, c *renderedContainer, pod *renderedPod, secret string) (out []string) {
	t.Helper()
	out = slices.Clone(words)
	for _, v := range pod.Volumes {
		if len(v.Secret.Items) == 0 {
			continue
		}
		dir := t.TempDir()
		for _, item := range v.Secret.Items {
			text, err := os.ReadFile(filepath.Join(secret, item.Key))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, item.Path), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range c.Mounts {
			for i := range out {
				if m.Name == v.Name {
					out[i] = strings.Replace(out[i], "="+m.Path+"/", "="+dir+"/", 1)
				}
			}
		}
	}
	return out
}

// TestRenderedProxies: what is rendered before a worker's torchrun reaches the companion that is rendered with it, and
// again once that was killed and is back. Nobody else does without a certificate that is made as rendered.
func TestRenderedProxies(t *testing.T) {
	t.Parallel()
	companion, serves := rendered(t, "proxy-companion", "serve")
	worker, works := rendered(t, "proxy-companion", "proxy")
	maker, _ := rendered(t, "proxy-companion", "certificates")
	i := slices.IndexFunc(maker.Args, func(word string) bool { return strings.HasPrefix(word, "--host=") })
	secret := certificatesIn(t, maker.Args[i]+",127.0.0.1")
	at := ports.Address(t)
	args := withSecret(t, here(t, companion.Args[1:]), &companion, &serves, secret)
	for i, arg := range args {
		if strings.HasPrefix(arg, "--listen-proxies=") {
			args[i] = "--listen-proxies=" + at
		}
	}
	p := serve(t, args...)
	expectReady(t, p)
	dialled, env := "", []string(nil)
	for _, v := range worker.Env {
		if v.Name == "PET_RDZV_ENDPOINT" {
			dialled, v.Value = v.Value, at
		}
		if strings.HasPrefix(v.Name, "PET_") {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	if dialled != fmt.Sprintf("%s:%d", strings.TrimPrefix(maker.Args[i], "--host="), companion.Ports[0].Port) {
		t.Errorf("proxies dial %s, the companion has %v and a certificate by %s", dialled, companion.Ports,
			maker.Args[i])
	}
	words := worker.Command[1 : slices.Index(worker.Command, "--")+1]
	stranger := slices.Concat([]string{"proxy", "--endpoints", at}, words[len(words)-1:])
	words = withSecret(t, words, &worker, &works, secret)
	a, b := startProxyBy(t, env, words...), startProxyBy(t, env, words...)
	a.askAdd("/n")
	a.expect(1)
	refusedProxy(t, env, stranger...)
	p.signal(syscall.SIGKILL)
	p.exit()
	b.askAdd("/n")
	expectReady(t, serve(t, args...))
	b.expect(2)
}

// TestRenderedCompanions: a companion for c10d or the keys API alone is ready, and one for c10d writes nothing.
func TestRenderedCompanions(t *testing.T) {
	t.Parallel()
	for fixture, keysAPI := range map[string]bool{"companion-c10d": false, "companion-pods": true} {
		t.Run(fixture, func(t *testing.T) {
			t.Parallel()
			c, _ := rendered(t, fixture, "serve")
			dir := t.TempDir()
			p := serveIn(t, dir, nil, here(t, c.Args[1:])...)
			code, body := ask(t, "GET", p.status, c.Readiness.Get.Path)
			if code != 200 || (p.client != "") != keysAPI || (p.c10d != "") == keysAPI {
				t.Errorf("%d %s, listeners %q and %q", code, body, p.client, p.c10d)
			}
			if entries, err := os.ReadDir(dir); !keysAPI && (err != nil || len(entries) > 0) {
				t.Errorf("it wrote %v, %v", entries, err)
			}
		})
	}
}
