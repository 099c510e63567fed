package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// certificatesIn has the command make certificates for these hosts in a new directory.
func certificatesIn(t *testing.T, words ...string) string {
	t.Helper()
	dir := t.TempDir()
	var errs bytes.Buffer
	if code := run(slices.Concat([]string{"certificates", dir}, words), nil, &errs, &errs); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	return dir
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// TestCertificates: a client's certificate is of use to no server, and nothing that could sign another one is left.
func TestCertificates(t *testing.T) {
	dir := certificatesIn(t, "--host=meet,meet.ml.svc", "--host=127.0.0.1")
	files := filesIn(t, dir)
	var patch []struct {
		Op, Path string
		Value    map[string]string
	}
	if err := json.Unmarshal([]byte(files["patch.json"]), &patch); err != nil {
		t.Fatal(err)
	}
	if len(patch) != 2 || patch[0].Op+patch[0].Path != "test/data" || patch[0].Value != nil ||
		patch[1].Op+patch[1].Path != "add/data" { // only if the Secret has none
		t.Fatalf("the patch: %s", files["patch.json"])
	}
	delete(files, "patch.json")
	encoded, keys := map[string]string{}, 0
	for name, text := range files {
		encoded[name] = base64.StdEncoding.EncodeToString([]byte(text))
		if strings.Contains(text, "PRIVATE KEY") {
			keys++
		}
	}
	if diff := cmp.Diff(encoded, patch[1].Value); diff != "" {
		t.Errorf("the patch (-files +patch):\n%s", diff)
	}
	if len(files) != 5 || keys != 2 {
		t.Errorf("%d files with %d keys, want 5 and those of server and client", len(files), keys)
	}
	for _, name := range []string{"server.key", "client.key", "patch.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(files["ca.crt"])) {
		t.Fatal("no certificate of an authority")
	}
	for _, c := range []struct {
		name, host string
		usage      x509.ExtKeyUsage
		want       bool
	}{
		{"server", "meet", x509.ExtKeyUsageServerAuth, true},
		{"server", "meet.ml.svc", x509.ExtKeyUsageServerAuth, true},
		{"server", "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{"server", "other", x509.ExtKeyUsageServerAuth, false},
		{"server", "", x509.ExtKeyUsageClientAuth, true}, // members of an etcd dial each other with it
		{"client", "", x509.ExtKeyUsageClientAuth, true},
		{"client", "", x509.ExtKeyUsageServerAuth, false},
	} {
		pair, err := tls.X509KeyPair([]byte(files[c.name+".crt"]), []byte(files[c.name+".key"]))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{
			Roots: authorities, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage},
			CurrentTime: time.Now().AddDate(5, 0, 0),
		})
		if (err == nil) != c.want {
			t.Errorf("the %s's as %q for usage %d: %v", c.name, c.host, c.usage, err)
		}
	}
}

// TestCertificatesOfMembers: two members of an etcd serve their clients and each other by the server's certificate, as
// tegen renders it. A client's is none of a member.
func TestCertificatesOfMembers(t *testing.T) {
	t.Parallel()
	dir := certificatesIn(t, "--host=127.0.0.1")
	own := transport.TLSInfo{
		CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key"),
		TrustedCAFile: filepath.Join(dir, "ca.crt"), ClientCertAuth: true,
	}
	address := func() url.URL { return url.URL{Scheme: "https", Host: ports.Address(t)} }
	clients, peers := []url.URL{address(), address()}, []url.URL{address(), address()}
	started := make(chan *embed.Etcd, len(peers))
	for i := range peers {
		c := embed.NewConfig()
		c.Name, c.Dir, c.LogLevel = fmt.Sprint("m", i), t.TempDir(), "error"
		c.ListenClientUrls, c.AdvertiseClientUrls = clients[i:i+1], clients[i:i+1]
		c.ListenPeerUrls, c.AdvertisePeerUrls = peers[i:i+1], peers[i:i+1]
		c.InitialCluster = fmt.Sprintf("m0=%s,m1=%s", &peers[0], &peers[1])
		c.ClientTLSInfo, c.PeerTLSInfo = own, own
		c.PeerTLSInfo.AllowedCNs = []string{"server"}
		go func() {
			server, err := embed.StartEtcd(c)
			if err != nil {
				t.Error(err)
			}
			started <- server
		}()
	}
	for range peers {
		server := <-started
		if server == nil {
			t.FailNow()
		}
		select {
		case <-server.Server.ReadyNotify():
			t.Cleanup(server.Close)
		case <-time.After(time.Minute):
			t.Fatal("the members found no leader")
		}
	}
	client := func(name string) *tls.Config {
		config, err := server.ClientTLS(server.Files{
			CA: own.TrustedCAFile, Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	s, err := (store.External{Endpoints: []string{clients[0].String()}, TLS: client("client")}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is written
	if _, err := s.Put(t.Context(), "a", "b"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{"server": true, "client": false} {
		get := http.Client{Transport: &http.Transport{TLSClientConfig: client(name)}}
		r, err := get.Get(peers[0].String() + "/version")
		if (err == nil) != want {
			t.Errorf("the %s is let in among the members: %v", name, err)
		}
		if err == nil {
			_ = r.Body.Close()
		}
		get.CloseIdleConnections()
	}
}

// TestCertificatesExist: certificates that a Secret has already are neither replaced nor made a second time.
func TestCertificatesExist(t *testing.T) {
	first := certificatesIn(t, "--host=meet")
	empty := certificatesIn(t, "--host=meet", "--existing="+filepath.Join(first, "nothing"))
	if len(filesIn(t, empty)) != 6 {
		t.Errorf("without any, it made %v", filesIn(t, empty))
	}
	second := certificatesIn(t, "--host=meet", "--existing="+first)
	if diff := cmp.Diff(map[string]string{"patch.json": "[]\n"}, filesIn(t, second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var errs bytes.Buffer
	if code := run([]string{"certificates", t.TempDir()}, nil, &errs, &errs); code != cli.ExitUsage ||
		!strings.Contains(errs.String(), "--host") {
		t.Errorf("without a host: exit code %d: %s", code, errs.String())
	}
}

// mutual are the flags of serve and of a proxy for certificates of a directory.
func mutual(dir string) (serve, proxy []string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	return []string{"--tls-cert", at("server.crt"), "--tls-key", at("server.key"), "--tls-client-ca", at("ca.crt")},
		[]string{"--cacert", at("ca.crt"), "--cert", at("client.crt"), "--key", at("client.key")}
}

// TestMutualTLS: the store answers proxies of its own authority and nobody else, and a proxy trusts no other store.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	own, other := certificatesIn(t, "--host=127.0.0.1"), certificatesIn(t, "--host=127.0.0.1")
	named := certificatesIn(t, "--host=elsewhere")
	serveWith := func(dir string) string {
		at := ports.Address(t)
		flags, _ := mutual(dir)
		p := serve(t, append(flags, "--data-dir", t.TempDir(), "--listen-client=", "--listen-c10d=",
			"--listen-proxies", at)...)
		expectReady(t, p)
		return at
	}
	at, elsewhere := serveWith(own), serveWith(named)
	_, words := mutual(own)
	_, foreign := mutual(other)
	_, misnamed := mutual(named)
	start := func(at string, flags []string) []string {
		return slices.Concat([]string{"proxy", "--endpoints", at}, flags, []string{"--"})
	}

	env := []string{"PET_RDZV_ID=imagenet"}
	a, b := startProxyBy(t, env, start(at, words)...), startProxyBy(t, env, start(at, words)...)
	a.askAdd("/n")
	a.expect(1)
	b.askAdd("/n")
	b.expect(2)

	var waiting sync.WaitGroup
	defer waiting.Wait()
	for name, c := range map[string]struct {
		at    string
		flags []string
		why   string
	}{
		"no certificate":               {at, nil, "the server requires TLS: give --cacert, --cert and --key"},
		"the authority alone":          {at, words[:2], "tls: certificate required"},
		"a certificate of another one": {at, slices.Concat(words[:2], foreign[2:]), "unknown certificate authority"},
		"another authority":            {at, slices.Concat(foreign[:2], words[2:]), "signed by unknown authority"},
		"a server of another name":     {elsewhere, misnamed, "cannot validate certificate for 127.0.0.1"},
	} {
		waiting.Go(func() {
			text := refusedProxy(t, env, start(c.at, c.flags)...)
			if strings.Contains(text, "started") || strings.Count(text, c.why) < 2 {
				t.Errorf("with %s, want no command and twice %q:\n%s", name, c.why, text)
			}
		})
	}
	for name, flags := range map[string][]string{
		"no certificate": words[:2], "a certificate of another one": slices.Concat(words[:2], foreign[2:]),
	} {
		config, err := server.ClientTLS(server.Files{CA: flags[1]})
		if len(flags) > 2 {
			config, err = server.ClientTLS(server.Files{CA: flags[1], Cert: flags[3], Key: flags[5]})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if s, err := (store.External{Endpoints: []string{at}, TLS: config}).Open(ctx); err == nil {
			t.Errorf("with %s a client of etcd is let in", name)
			_ = s.Close()
		}
	}
}

// refusedProxy runs a proxy until it has tried to reach the store twice, and returns what it and its command said.
func refusedProxy(t *testing.T, env []string, words ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append(words, "echo", "started")...)
	cmd.Env = append(os.Environ(), env...)
	said := &watched{tries: 2, then: cancel}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err == nil {
		t.Errorf("%q: the command was started", words)
	}
	return said.text.String()
}

// watched is output of a proxy, and calls a function once that has tried so often.
type watched struct {
	text  bytes.Buffer
	tries int
	then  func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if strings.Count(w.text.String(), "the etcd does not answer yet") >= w.tries {
		w.then()
	}
	return n, err
}
