package gitops

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/ports"
)

// The programs of Argo CD, which all are one file, and redis.
const (
	applicationController = "argocd-application-controller"
	setController         = "argocd-applicationset-controller"
	repoServer            = "argocd-repo-server"
	pluginServer          = "argocd-cmp-server"
	redisServer           = "redis-server"

	pluginSockets = "plugins" // folder in which repo-server looks for plugins
)

// startArgo starts all of Argo CD but its web server.
func startArgo(ctx context.Context, c *cluster.Cluster, audit string, plugin Plugin) (*Argo, error) {
	a := &Argo{c: c, audit: audit, home: filepath.Join(c.Dir(), "argocd"), processes: map[string]*cluster.Process{}}
	if err := c.ApplyCRDs(ctx, cluster.ArgoCD, "manifests/crds/*.yaml"); err != nil {
		return nil, err
	}
	kubeconfigs := map[string]string{}
	for _, name := range []string{applicationController, setController} {
		var err error
		if kubeconfigs[name], err = c.Account(ctx, argoNamespace, name); err != nil {
			return nil, fmt.Errorf("making the account of %s: %w", name, err)
		}
	}
	if err := a.configure(ctx); err != nil {
		return nil, err
	}
	free, err := ports.Free(7)
	if err != nil {
		return nil, err
	}
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", free[i]) }
	redis, err := c.Run(ctx, redisServer, redisServer, "--bind", "127.0.0.1", "--port", fmt.Sprint(free[0]),
		"--save", "", "--appendonly", "no", "--dir", a.home)
	if err != nil {
		return nil, err
	}
	a.processes[redisServer] = redis
	if plugin != (Plugin{}) {
		if err := a.runPlugin(ctx, plugin); err != nil {
			return nil, err
		}
	}
	kubeconfig := kubeconfigs[applicationController]
	if err := a.run(ctx, repoServer, kubeconfig, address(2)+"/healthz", "--redis="+address(0), "--address=127.0.0.1",
		fmt.Sprintf("--port=%d", free[1]), "--metrics-address=127.0.0.1", fmt.Sprintf("--metrics-port=%d", free[2]),
		"--disable-tls"); err != nil {
		return nil, err
	}
	if err := a.run(ctx, setController, kubeconfigs[setController], address(5)+"/metrics", "--namespace="+argoNamespace,
		"--argocd-repo-server="+address(1), "--repo-server-plaintext", "--probe-addr="+address(4),
		"--metrics-addr="+address(5), "--webhook-addr="+address(6)); err != nil {
		return nil, err
	}
	return a, a.run(ctx, applicationController, kubeconfig, address(3)+"/healthz", "--namespace="+argoNamespace,
		"--kubeconfig="+kubeconfig, "--redis="+address(0), "--repo-server="+address(1), "--repo-server-plaintext",
		fmt.Sprintf("--metrics-port=%d", free[3]))
}

// run starts one of Argo CD's programs and waits until a page is there.
func (a *Argo) run(ctx context.Context, name, kubeconfig, page string, args ...string) error {
	if err := a.start(ctx, name, []string{"KUBECONFIG=" + kubeconfig}, args...); err != nil {
		return err
	}
	return a.processes[name].Ready(ctx, "http://"+page)
}

func (a *Argo) start(ctx context.Context, name string, env []string, args ...string) error {
	program, err := cluster.Program(ctx, io.Discard, cluster.ArgoCD)
	if err != nil {
		return err
	}
	env = append([]string{ // git asks the program argocd for a login
		"PATH=" + filepath.Dir(program) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"ARGOCD_ASK_PASS_SOCK=" + filepath.Join(a.home, "login.sock"),
	}, env...)
	env = append(env,
		"ARGOCD_BINARY_NAME="+name, "HOME="+a.home, "TMPDIR="+a.home, "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_TLS_DATA_PATH="+filepath.Join(a.home, "tls"),
		"ARGOCD_SSH_DATA_PATH="+filepath.Join(a.home, "ssh"), "ARGOCD_PLUGINSOCKFILEPATH="+a.sockets(),
	)
	a.processes[name], err = a.c.RunWith(ctx, append(GitEnv(), env...), name, program, args...)
	return err
}

func (a *Argo) sockets() string { return filepath.Join(a.home, pluginSockets) }

// Plugin is a config management plugin: the folder of its plugin.yaml, and that of its command.
type Plugin struct{ Config, Command string }

// runPlugin starts what Argo CD runs in the container of a plugin, which finds its command and no other, and waits for
// its socket.
func (a *Argo) runPlugin(ctx context.Context, plugin Plugin) error {
	env := []string{"PATH=" + plugin.Command, "ARGOCD_CMP_WORKDIR=" + filepath.Join(a.home, "plugin")}
	if err := a.start(ctx, pluginServer, env, "--config-dir-path="+plugin.Config); err != nil {
		return err
	}
	return eventually(ctx, "the socket of "+pluginServer, func() error {
		sockets, err := os.ReadDir(a.sockets())
		if err == nil && len(sockets) == 0 {
			err = errNotYet
		}
		return err
	})
}
