//go:build linux

package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
	render "github.com/tegen-dev/tegen/rendezvous/test/tegen"
)

// container is what a manifest says of one.
type container struct {
	Command, Args []string
	Env           []struct{ Name, Value string }
}

// TestRendered: the companion and the workers of torchrun behind proxies, by the words and variables that are rendered
// for them. The companion is killed and comes back with its data.
func TestRendered(t *testing.T) {
	start(t)
	companion, worker := rendered(t, "StatefulSet"), rendered(t, "Job")
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			s := renderedServer(t, companion)
			r := newRun(t, v, "c10d", s.address, "")
			lost := r.startRendered(worker)
			r.startRendered(worker)
			r.await("a world of two agents")
			s.kill()
			away(t, 3*time.Second)
			r.mark()
			r.goesOn("while the companion is away")
			s.start()
			r.goesOn("after the companion came back")
			t.Logf("the longest pause between two sums: %v", r.longestPause())
			r.kill(lost)
			r.startRendered(worker)
			r.await("after kill -9 of an agent, for which another came")
			r.finish()
		})
	}
}

// rendered is the container of a kind of workload.
func rendered(t *testing.T, kind string) container {
	t.Helper()
	for in := yaml.NewDecoder(bytes.NewReader(render.Render(t, "proxy-companion"))); ; {
		var object struct {
			Kind     string
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Template struct {
					Spec struct{ Containers []container }
				}
			}
		}
		if err := in.Decode(&object); errors.Is(err, io.EOF) {
			t.Fatalf("there is no %s", kind)
		} else if err != nil {
			t.Fatal(err)
		}
		// The Job that makes certificates is none of the run.
		if object.Kind == kind && object.Metadata.Labels["app.kubernetes.io/component"] != "keygen" {
			return object.Spec.Template.Spec.Containers[0]
		}
	}
}

// renderedServer starts a companion, with addresses and a folder of this machine.
func renderedServer(t *testing.T, c container) *server {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	address, status := ports.Address(t), ports.Address(t)
	certificates := filepath.Join(shared, "certificates") // which all versions see
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		t.Fatal(err)
	}
	maker := exec.Command(program, "certificates", certificates, "--host=127.0.0.1")
	if out, err := maker.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := &server{t: t, address: address, ready: "http://" + status + "/readyz", command: []string{program}}
	for _, word := range c.Args {
		switch flag, _, _ := strings.Cut(word, "="); flag {
		case "--listen-proxies":
			word = flag + "=" + address
		case "--listen-status":
			word = flag + "=" + status
		case "--data-dir":
			word = flag + "=" + t.TempDir() + "/data"
		}
		s.command = append(s.command, strings.Replace(word, "=/tegen/proxies/", "="+certificates+"/", 1))
	}
	s.start()
	return s
}

// startRendered starts an agent by a worker's words, and returns its name.
func (r *run) startRendered(c container) string {
	r.t.Helper()
	var command []string
	for _, word := range slices.Concat(c.Command, c.Args) {
		switch word {
		case "/tegen/bin/tegen-rendezvous":
			command = append(command, r.version.program(r.t))
		case "torchrun":
			command = append(command, "/usr/bin/python3", "-m", "torch.distributed.run")
		case "python":
			command = append(command, "/usr/bin/python3")
		case "train.py":
			command = append(command, r.version.folder()+"/train.py")
		default: // the Secret's files under other names
			certificates := "=" + r.version.folder() + "/certificates/"
			word = strings.Replace(word, "=/tegen/tls/tls.", certificates+"client.", 1)
			command = append(command, strings.Replace(word, "=/tegen/tls/", certificates, 1))
		}
	}
	env := append(r.version.torchrunEnv(), r.version.environment()...)
	for _, v := range c.Env {
		switch v.Name {
		case "PET_RDZV_ID":
			v.Value = r.id
		case "PET_RDZV_ENDPOINT":
			v.Value = r.endpoint
		}
		if strings.HasPrefix(v.Name, "PET_") || strings.HasPrefix(v.Name, "TORCH_") {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	if r.version != torch113 { // which lacks the option
		env = append(env, "PET_LOCAL_ADDR=127.0.0.1")
	}
	r.started++
	name := fmt.Sprintf("rendered-%d", r.started)
	env = append(env, "TEGEN_TORCH_RUN="+r.id, "TEGEN_TORCH_NODE="+name)
	r.agents[name] = &agent{process: r.version.spawn(r.t, r.id+"-"+name, env, command...)}
	return name
}
