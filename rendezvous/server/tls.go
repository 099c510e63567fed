package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files name PEM files; empty ones are not used.
type Files struct{ CA, Cert, Key string }

// pair reads certificate and key anew each time, because issuers replace them while a server runs.
func (f Files) pair() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading certificate %s and its key %s: %w", f.Cert, f.Key, err)
	}
	return &c, nil
}

func (f Files) pool() (*x509.CertPool, error) {
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the authority's certificate: %s holds none", f.CA)
	}
	return pool, nil
}

func (f Files) check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("a certificate needs its key, and a key its certificate")
	}
	if f.Cert == "" {
		return nil
	}
	_, err := f.pair()
	return err
}

// ServerTLS is for the keys API: nil without a certificate; with an authority, clients must have a certificate of it.
func ServerTLS(f Files) (*tls.Config, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Cert == "" {
		if f.CA != "" {
			return nil, errors.New("certificates of clients can only be asked for by a server that has its own")
		}
		return nil, nil
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.pair() },
	}
	if f.CA != "" {
		pool, err := f.pool()
		if err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// ClientTLS is towards etcd: nil where nothing is named.
func ClientTLS(f Files) (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.pair() }
	}
	if f.CA != "" {
		pool, err := f.pool()
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	return c, nil
}
