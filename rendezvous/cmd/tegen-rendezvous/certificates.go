package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

const certificatesLong = `certificates writes what 'serve --listen-proxies' and its proxies need to verify
each other by TLS: ca.crt, server.crt and server.key for serve, and ca.crt,
client.crt and client.key for the proxies. The key of the authority is not
written, so that nobody can issue another certificate. They are valid for ten
years.

patch.json is a JSON patch that stores all five in a Kubernetes Secret without
data. The API server refuses it if the Secret has data, such as certificates of
another authority. If the directory that --existing names contains server.key,
the patch is empty and nothing else is written.`

const certificatesExample = `  tegen-rendezvous certificates /etc/rendezvous --host rendezvous.example
  tegen-rendezvous serve --listen-client= --listen-c10d= --listen-proxies=:29400 \
    --tls-cert /etc/rendezvous/server.crt --tls-key /etc/rendezvous/server.key \
    --tls-client-ca /etc/rendezvous/ca.crt
  tegen-rendezvous proxy --cacert ca.crt --cert client.crt --key client.key -- torchrun \
    --rdzv_backend c10d --rdzv_endpoint rendezvous.example:29400 --rdzv_id a --nnodes 2 train.py`

func newCertificatesCmd() *cobra.Command {
	var hosts []string
	var existing string
	cmd := &cobra.Command{
		Use:     "certificates DIRECTORY",
		Short:   "Make certificates for TLS between serve and its proxies",
		Long:    certificatesLong,
		Example: certificatesExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || len(hosts) == 0 {
				return cli.Usagef("%s requires one directory, and --host with the names that proxies dial",
					cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: directories,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writeCertificates(args[0], existing, hosts); err != nil {
				return fmt.Errorf("making certificates: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "DNS names or IP addresses that proxies dial")
	cmd.Flags().StringVar(&existing, "existing", "", "directory in which an earlier run may have stored them")
	completeBy(cmd, "existing", directories)
	return cmd
}

func writeCertificates(dir, existing string, hosts []string) error {
	if existing != "" {
		if _, err := os.Stat(filepath.Join(existing, "server.key")); err == nil {
			return os.WriteFile(filepath.Join(dir, "patch.json"), []byte("[]\n"), 0o600)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	files, err := makeCertificates(hosts)
	if err != nil {
		return err
	}
	type operation struct {
		Op    string            `json:"op"`
		Path  string            `json:"path"`
		Value map[string][]byte `json:"value"` // in base64, as a Secret has it
	}
	// To an API server null is what is not there. Without the test the last of two authorities would win, and those who
	// trust the first would refuse it.
	patch, err := json.Marshal([]operation{{"test", "/data", nil}, {"add", "/data", files}})
	if err != nil {
		return err
	}
	files["patch.json"] = patch
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// makeCertificates makes an authority that signs two certificates. Its key is not kept.
func makeCertificates(hosts []string) (map[string][]byte, error) {
	authority := certificate("ca", x509.ExtKeyUsageAny)
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero = true, true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	// Members of an etcd dial each other with it.
	server := certificate("server", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	files := map[string][]byte{}
	var by *ecdsa.PrivateKey
	client := certificate("client", x509.ExtKeyUsageClientAuth)
	for _, c := range []*x509.Certificate{authority, server, client} {
		key, err := issue(files, c, authority, by)
		if err != nil {
			return nil, err
		}
		by = cmp.Or(by, key)
	}
	delete(files, "ca.key")
	return files, nil
}

// certificate is one of ten years. It begins an hour ago, because the clocks of two nodes may differ.
func certificate(name string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name, Organization: []string{"tegen-rendezvous"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usage,
	}
}

// issue adds a new key and its certificate to the files, signed by a key of the authority or, without one, by itself.
func issue(files map[string][]byte, c, authority *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signed, err := x509.CreateCertificate(rand.Reader, c, authority, key.Public(), cmp.Or(by, key))
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	name := c.Subject.CommonName
	files[name+".crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	files[name+".key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return key, err
}
