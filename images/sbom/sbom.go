// Package sbom describes a program as SPDX 2.3 in JSON. What it lists is what the program's file itself records of the
// modules that it was built of, and nothing that another tool found: equal programs have equal descriptions.
package sbom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/images/program"
)

// MediaType is that of a document.
const MediaType = "application/spdx+json"

// unknown says that nobody has looked.
const unknown = "NOASSERTION"

// Beside is something that comes with the program.
type Beside struct {
	Name, Version string
	License       string // as SPDX calls it
	Source        string // where it is from, a sentence
}

type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []pkg          `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type pkg struct {
	Name             string      `json:"name"`
	ID               string      `json:"SPDXID"`
	Version          string      `json:"versionInfo,omitempty"`
	Purpose          string      `json:"primaryPackagePurpose"`
	Download         string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	Checksums        []checksum  `json:"checksums,omitempty"`
	SourceInfo       string      `json:"sourceInfo,omitempty"`
	LicenseConcluded string      `json:"licenseConcluded"`
	LicenseDeclared  string      `json:"licenseDeclared"`
	Copyright        string      `json:"copyrightText"`
	References       []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const documentID = "SPDXRef-DOCUMENT"

// Of describes a program of this repository, for a system such as linux/arm64, and what comes with it.
func Of(info program.Info, license, platform string, created time.Time, beside ...Beside) ([]byte, error) {
	name := path.Base(info.Path)
	d := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID,
		Name: strings.Join(strings.Fields(name+" "+info.Version+" "+platform), " "),
		// Another program has another one.
		Namespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + info.SHA256,
		Creation: creation{
			Created:  created.UTC().Format(time.RFC3339),
			Creators: []string{"Organization: " + info.Main.Path, "Tool: " + info.Main.Path + "/images/sbom"},
		},
	}
	ids := map[string]bool{}
	main := d.add(ids, pkg{
		Name: info.Path, Version: info.Version, Purpose: "APPLICATION", Download: download(info),
		LicenseDeclared: license, Checksums: []checksum{{"SHA256", info.SHA256}},
		References: purl(info.Main.Path, info.Version, strings.TrimPrefix(info.Path, info.Main.Path+"/")),
	})
	d.relate(documentID, "DESCRIBES", main)
	for _, b := range beside {
		d.relate(documentID, "DESCRIBES", d.add(ids, pkg{
			Name: b.Name, Version: b.Version, Purpose: "OTHER", Download: unknown, LicenseDeclared: b.License,
			SourceInfo: b.Source,
		}))
	}
	d.relate(main, "DEPENDS_ON", d.add(ids, pkg{
		Name: "stdlib", Version: info.GoVersion, Purpose: "LIBRARY", Download: "https://go.dev/dl/",
		LicenseDeclared: "BSD-3-Clause", References: purl("stdlib", strings.TrimPrefix(info.GoVersion, "go"), ""),
	}))
	for _, m := range info.Deps {
		d.relate(main, "DEPENDS_ON", d.add(ids, module(m)))
	}
	return d.json()
}

// module is a package of the module that was linked: the one that replaces another, where one does.
func module(m *debug.Module) pkg {
	if m.Replace != nil {
		m = m.Replace
	}
	p := pkg{
		Name: m.Path, Version: m.Version, Purpose: "LIBRARY", Download: unknown, LicenseDeclared: unknown,
		References: purl(m.Path, m.Version, ""),
	}
	if m.Sum != "" {
		p.SourceInfo = "go.sum: " + m.Sum
	}
	return p
}

// download is where the commit is, for a program that names one.
func download(info program.Info) string {
	if info.Revision == "" {
		return unknown
	}
	return "git+https://" + info.Main.Path + "@" + info.Revision
}

// purl is the package URL by which scanners look for what is known of a module. Its specification has golang's names in
// lower case.
func purl(module, version, subpath string) []reference {
	locator := "pkg:golang/" + strings.ToLower(module)
	if version != "" {
		locator += "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	}
	if subpath != "" {
		locator += "#" + subpath
	}
	return []reference{{"PACKAGE-MANAGER", "purl", locator}}
}

// add adds a package and returns its identifier, which takes letters, digits, dots and dashes.
func (d *document) add(ids map[string]bool, p pkg) string {
	stem := "SPDXRef-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.TrimSuffix(p.Name+"-"+p.Version, "-"))
	p.ID = stem
	for n := 2; ids[p.ID]; n++ { // a_b beside a-b
		p.ID = fmt.Sprint(stem, "-", n)
	}
	ids[p.ID] = true
	p.LicenseConcluded, p.Copyright = unknown, unknown
	d.Packages = append(d.Packages, p)
	return p.ID
}

func (d *document) relate(from, kind, to string) {
	d.Relationships = append(d.Relationships, relationship{from, kind, to})
}

func (d *document) json() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("writing the SBOM: %w", err)
	}
	return out.Bytes(), nil
}
