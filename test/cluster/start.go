package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// readyTimeout is for one program: a generous multiple of the seconds it takes, for a machine that also compiles.
	readyTimeout = 2 * time.Minute
	pollInterval = 25 * time.Millisecond
)

var errPortTaken = errors.New("a port was taken by another program")

//go:embed kwok.yaml
var stages []byte

// start brings the programs up in the order in which they need each other.
func (c *Cluster) start(ctx context.Context, o Options, progress io.Writer) error {
	begin := time.Now()
	l, err := newLayout(c.dir, o.Address)
	if err != nil {
		return err
	}
	token, err := l.writeFiles()
	if err != nil {
		return err
	}
	ready := func(what string) {
		say(progress, "%s ready after %.1f s", what, time.Since(begin).Seconds())
	}

	if c.etcd, err = c.startProgram(ctx, etcd, l, o); err != nil {
		return err
	}
	if err := await(ctx, c.etcd, get(http.DefaultClient, loopback("http", l.etcdPort)+"/health")); err != nil {
		return err
	}
	ready(etcd)
	if c.apiserver, err = c.startProgram(ctx, apiserver, l, o); err != nil {
		return err
	}
	if err := await(ctx, c.apiserver, func(ctx context.Context) error { return c.connect(ctx, l, token) }); err != nil {
		return err
	}
	ready(apiserver)
	if err := c.startClients(ctx, l, o, ready); err != nil {
		return err
	}
	for _, p := range c.processes() {
		go c.watch(p)
	}
	return nil
}

// startClients starts the clients of the apiserver all at once and waits for them, and for the first thing that they
// must have done before a pod can be made.
func (c *Cluster) startClients(ctx context.Context, l layout, o Options, ready func(string)) error {
	names := programNames(o)[2:]
	for _, name := range names {
		p, err := c.startProgram(ctx, name, l, o)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, p)
	}
	health := map[string]string{
		controllerManager: loopback("https", l.cmPort) + "/healthz",
		scheduler:         loopback("https", l.schedPort) + "/readyz",
		kwok:              loopback("http", l.kwokPort) + "/readyz",
	}
	// Their certificates are made at their start and known to nobody. Nothing is sent and only a health is read.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for i, name := range names {
		if err := await(ctx, c.clients[i], get(client, health[name])); err != nil {
			return err
		}
		ready(name)
	}
	if o.NoControllers {
		return nil
	}
	err := await(ctx, c.clients[0], func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("making the default ServiceAccount: %w", err)
	}
	ready("ServiceAccount default")
	return nil
}

func (c *Cluster) startProgram(ctx context.Context, name string, l layout, o Options) (*Process, error) {
	program, err := Program(ctx, io.Discard, name)
	if err != nil {
		return nil, err
	}
	return startProcess(name, c.logPath(name), program, l.args(name, o))
}

// watch notes where a program of the control plane ends although nobody stopped it.
func (c *Cluster) watch(p *Process) {
	<-p.done
	if p.expected.Load() {
		return
	}
	c.breakOnce.Do(func() {
		c.brokenName = p.name
		close(c.broken)
	})
}

// connect writes the kubeconfig and makes the clients, once the apiserver is ready. The certificate that the apiserver
// makes for itself is its own authority.
func (c *Cluster) connect(ctx context.Context, l layout, token string) error {
	ca, err := os.ReadFile(l.path("certs", "apiserver.crt"))
	if err != nil {
		return fmt.Errorf("reading the apiserver's certificate: %w", err)
	}
	if err := c.makeClients(&rest.Config{
		Host: l.apiURL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}); err != nil {
		return err
	}
	if err := c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	c.kubeconfig = l.path("kubeconfig")
	if err := clientcmd.WriteToFile(*adminKubeconfig(c.config), c.kubeconfig); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

func (c *Cluster) makeClients(config *rest.Config) (err error) {
	config.QPS, config.Burst, config.UserAgent = -1, -1, "tegen-test"
	c.config = config
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if c.client, err = kubernetes.NewForConfig(typed); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

func adminKubeconfig(config *rest.Config) *clientcmdapi.Config {
	const name = "tegen-test"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	k.CurrentContext = name
	return k
}

// writeFiles writes what the programs read at their start, for the user's eyes only, and returns the admin's token.
func (l layout) writeFiles() (token string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making the key of ServiceAccounts: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("making the key of ServiceAccounts: %w", err)
	}
	token = rand.Text()
	for name, text := range map[string][]byte{
		"service-account.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		"tokens.csv":          []byte(token + ",admin,admin,system:masters\n"),
		"scheduler.yaml":      []byte(l.schedulerConfig()),
		"kwok.yaml":           stages,
	} {
		if err := os.WriteFile(l.path(name), text, 0o600); err != nil {
			return "", fmt.Errorf("preparing the cluster's folder: %w", err)
		}
	}
	return token, nil
}

// get asks for a URL and wants 200 OK.
func get(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("getting %s: %s", url, response.Status)
		}
		return nil
	}
}

// await polls until a program is ready, the program ends, or the time is up.
func await(ctx context.Context, p *Process, probe func(context.Context) error) error {
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	for {
		err := probe(ctx)
		if err == nil && p.alive() {
			return nil
		}
		if err == nil || apierrors.IsNotFound(err) {
			err = errors.New("not ready yet")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w); %s ends:\n%s", p.name, context.Cause(ctx), err,
				p.log, tail(p.log, tailLines))
		case <-deadline.C:
			return fmt.Errorf("waiting for %s: not ready within %v (%w); %s ends:\n%s", p.name, readyTimeout, err,
				p.log, tail(p.log, tailLines))
		case <-p.done:
			text := tail(p.log, tailLines)
			err := fmt.Errorf("waiting for %s: it ended (%s); %s ends:\n%s", p.name, p.cmd.ProcessState, p.log, text)
			if strings.Contains(text, "address already in use") {
				err = fmt.Errorf("%w: %w", errPortTaken, err)
			}
			return err
		case <-time.After(pollInterval):
		}
	}
}
