package images

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"
)

// TestCertificates: the file holds valid authorities, and the ones that most sites use.
func TestCertificates(t *testing.T) {
	text := []byte(certificates())
	found := map[string]bool{"ISRG Root X1": false, "Amazon Root CA 1": false, "DigiCert Global Root G2": false}
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !c.IsCA || time.Since(c.NotBefore) < 0 {
			t.Errorf("%s is no authority, or not yet", c.Subject)
		}
		if _, ok := found[c.Subject.CommonName]; ok {
			found[c.Subject.CommonName] = true
		}
		n++
	}
	for name, ok := range found {
		if !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if n < 100 || n > 200 {
		t.Errorf("%d certificates", n)
	}
	if !bytes.Equal(text, []byte(certificates())) {
		t.Error("the order changes")
	}
}

// TestVersion: the version that is named is the one that go.mod pins, and so the one that is linked.
func TestVersion(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\t"+CertificatesModule+" "+CertificatesVersion+"\n") {
		t.Errorf("go.mod does not require %s %s: set CertificatesVersion to what it requires", CertificatesModule,
			CertificatesVersion)
	}
}
