package images

import (
	"encoding/json"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// sbomType is the media type of an SBOM.
const sbomType = "application/spdx+json"

// unknown is the value of required fields that nothing provides.
const unknown = "NOASSERTION"

// SBOM describes the program, and other packages beside it, as SPDX 2.3 in JSON. It lists the modules that the
// program's file records and nothing that another tool found, so that equal programs have equal descriptions.
func (p Program) SBOM(created time.Time, beside ...*spdx.Package) ([]byte, error) {
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: strings.Join(strings.Fields(p.Name+" "+p.Version+" "+p.System.String()), " "),
		// Unique to the program.
		DocumentNamespace: "https://" + p.Main.Path + "/spdx/" + p.Name + "-" + p.SHA256,
		CreationInfo: &spdx.CreationInfo{Created: created.UTC().Format(time.RFC3339), Creators: []common.Creator{
			{CreatorType: "Organization", Creator: p.Main.Path},
			{CreatorType: "Tool", Creator: p.Main.Path + "/images"},
		}},
	}
	main := &spdx.Package{
		PackageName: p.Path, PackageVersion: p.Version, PrimaryPackagePurpose: "APPLICATION",
		PackageDownloadLocation: unknown, PackageLicenseDeclared: License,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}},
		PackageExternalReferences: purl(p.Main.Path, p.Version, "#"+strings.TrimPrefix(p.Path, p.Main.Path+"/")),
	}
	if p.Revision != "" {
		main.PackageDownloadLocation = "git+https://" + p.Main.Path + "@" + p.Revision
	}
	add(d, d.SPDXIdentifier, "DESCRIBES", main)
	for _, b := range beside {
		add(d, d.SPDXIdentifier, "DESCRIBES", b)
	}
	add(d, main.PackageSPDXIdentifier, "DEPENDS_ON", &spdx.Package{
		PackageName: "stdlib", PackageVersion: p.GoVersion, PrimaryPackagePurpose: "LIBRARY",
		PackageDownloadLocation: "https://go.dev/dl/", PackageLicenseDeclared: "BSD-3-Clause",
		PackageExternalReferences: purl("stdlib", strings.TrimPrefix(p.GoVersion, "go"), ""),
	})
	for _, m := range p.Deps {
		add(d, main.PackageSPDXIdentifier, "DEPENDS_ON", library(m))
	}
	return json.MarshalIndent(d, "", " ")
}

// library is the package of a linked module: of its replacement if it has one.
func library(m *debug.Module) *spdx.Package {
	if m.Replace != nil {
		m = m.Replace
	}
	l := &spdx.Package{
		PackageName: m.Path, PackageVersion: m.Version, PrimaryPackagePurpose: "LIBRARY",
		PackageDownloadLocation: unknown, PackageLicenseDeclared: unknown,
		PackageExternalReferences: purl(m.Path, m.Version, ""),
	}
	if m.Sum != "" {
		l.PackageSourceInfo = "go.sum: " + m.Sum
	}
	return l
}

// purl is the package URL by which scanners look up a module. The specification requires lower case for Go.
func purl(module, version, subpath string) []*spdx.PackageExternalReference {
	locator := "pkg:golang/" + strings.ToLower(module)
	if version != "" {
		locator += "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	}
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator + subpath,
	}}
}

var notOfID = regexp.MustCompile(`[^A-Za-z0-9.]`)

// add adds a package with a relationship to another element.
func add(d *spdx.Document, from common.ElementID, relationship string, p *spdx.Package) {
	stem := notOfID.ReplaceAllString(strings.TrimSuffix(p.PackageName+"-"+p.PackageVersion, "-"), "-")
	for slices.ContainsFunc(d.Packages, func(o *spdx.Package) bool { return string(o.PackageSPDXIdentifier) == stem }) {
		stem += "-2" // of a_b beside a-b
	}
	p.PackageSPDXIdentifier = common.ElementID(stem)
	p.PackageLicenseConcluded, p.PackageCopyrightText = unknown, unknown
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", stem),
		Relationship: relationship,
	})
}
