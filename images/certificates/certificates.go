// Package certificates has the root certificates that images carry: Mozilla's, as the Go project publishes them in a
// module. go.sum pins them, so that they are the same on every machine and need no network.
package certificates

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Path is where Go, like others, looks for root certificates.
const Path = "/etc/ssl/certs/ca-certificates.crt"

// Module publishes the certificates, in Version. A test holds it against go.mod: a program's own record of its modules
// is not there in tests.
const (
	Module  = "golang.org/x/crypto/x509roots/fallback"
	Version = "v0.0.0-20261030153154-30a33513ff6d"
)

// PEM returns the certificates. Those that Mozilla trusts under conditions are left out: a file cannot say conditions.
func PEM() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// Notice is what the images' NOTICE says of the certificates.
func Notice() string {
	return fmt.Sprintf("==== %s\n\nThe root certificates of Mozilla, as %s %s has them. They are\n"+
		"under the Mozilla Public License 2.0, https://mozilla.org/MPL/2.0/. Their source is certdata.txt of NSS,\n"+
		"https://hg.mozilla.org/projects/nss/file/tip/lib/ckfw/builtins/certdata.txt.\n\n", Path, Module, Version)
}
