package images

import (
	"bytes"
	"encoding/json"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

var at = time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("east", 3600))

// recorded is what a program records whose modules have all that makes identifiers and URLs difficult.
func recorded() Program {
	return Program{
		Target: Target{Name: "tegen", System: System{"linux", "arm64"}},
		BuildInfo: &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "example.org/tegen/cmd/tegen",
			Main: debug.Module{Path: "example.org/tegen", Version: "v1.2.3"},
			Deps: []*debug.Module{
				{Path: "github.com/NYTimes/gziphandler", Version: "v1.1.1", Sum: "h1:abc="},
				{Path: "github.com/docker/cli", Version: "v29.7.2+incompatible"},
				{Path: "example.org/a_b", Version: "v1.0.0"},
				{Path: "example.org/a-b", Version: "v1.0.0"},
				{
					Path: "example.org/old", Version: "v1.0.0",
					Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0", Sum: "h1:def="},
				},
			},
		},
		SHA256: strings.Repeat("ab", 32), Version: "v1.2.3", Revision: strings.Repeat("01", 20),
	}
}

// read decodes a document and asserts what chapters 6, 7 and 11 of the SPDX specification 2.3 require of its values.
// The library refuses identifiers without a prefix.
func read(t *testing.T, text []byte) (d spdx.Document) {
	t.Helper()
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	requireMatch := func(what, pattern, value string) {
		t.Helper()
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(value) {
			t.Errorf("%s is %q, want %s", what, value, pattern)
		}
	}
	requireMatch("version", `SPDX-2\.3`, d.SPDXVersion)
	requireMatch("data license", `CC0-1\.0`, d.DataLicense)
	requireMatch("namespace", `https://[^#\s]+`, d.DocumentNamespace)
	requireMatch("created", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, d.CreationInfo.Created)
	known := map[common.ElementID]bool{"DOCUMENT": true}
	for _, p := range d.Packages {
		if known[p.PackageSPDXIdentifier] || p.FilesAnalyzed { // analyzed files require a verification code
			t.Errorf("two packages are %s, or its files are analyzed", p.PackageSPDXIdentifier)
		}
		known[p.PackageSPDXIdentifier] = true
		requireMatch("identifier", `[A-Za-z0-9.-]+`, string(p.PackageSPDXIdentifier))
		requireMatch("download location", `NOASSERTION|(git\+)?https://\S+`, p.PackageDownloadLocation)
		requireMatch("license", `[A-Za-z0-9.+-]+`, p.PackageLicenseDeclared)
		requireMatch("purpose", "APPLICATION|LIBRARY|OTHER", p.PrimaryPackagePurpose)
		requireMatch("other values", "NOASSERTION,NOASSERTION", p.PackageLicenseConcluded+","+p.PackageCopyrightText)
		for _, r := range p.PackageExternalReferences {
			requireMatch("locator", `pkg:golang/[^\sA-Z+]+(@[^\s+]+)?`, r.Locator)
		}
	}
	for _, r := range d.Relationships {
		if !known[r.RefA.ElementRefID] || !known[r.RefB.ElementRefID] {
			t.Errorf("a relationship leads nowhere: %v", r)
		}
	}
	if first := d.Relationships[0]; first.Relationship != "DESCRIBES" || first.RefA.ElementRefID != "DOCUMENT" {
		t.Errorf("the document describes nothing: %v", first)
	}
	return d
}

func roots() *spdx.Package {
	return &spdx.Package{
		PackageName: "roots", PackageVersion: "v9", PackageLicenseDeclared: "MPL-2.0", PackageDownloadLocation: unknown,
		PrimaryPackagePurpose: "OTHER",
	}
}

func TestPackages(t *testing.T) {
	text, err := recorded().SBOM(at, roots())
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, text)
	if created := d.CreationInfo.Created; d.DocumentName != "tegen v1.2.3 linux/arm64" ||
		created != "2026-01-02T03:04:05Z" {
		t.Errorf("%s of %v", d.DocumentName, created)
	}
	type line struct{ ID, Version, License, Download, Locator string }
	var got []line
	for _, p := range d.Packages {
		l := line{
			"SPDXRef-" + string(p.PackageSPDXIdentifier), p.PackageVersion, p.PackageLicenseDeclared,
			p.PackageDownloadLocation, "",
		}
		if len(p.PackageExternalReferences) > 0 {
			l.Locator = p.PackageExternalReferences[0].Locator
		}
		got = append(got, l)
	}
	want := []line{
		{
			"SPDXRef-example.org-tegen-cmd-tegen-v1.2.3", "v1.2.3", "Apache-2.0",
			"git+https://example.org/tegen@" + strings.Repeat("01", 20),
			"pkg:golang/example.org/tegen@v1.2.3#cmd/tegen",
		},
		{"SPDXRef-roots-v9", "v9", "MPL-2.0", "NOASSERTION", ""},
		{"SPDXRef-stdlib-go1.26.8", "go1.26.8", "BSD-3-Clause", "https://go.dev/dl/", "pkg:golang/stdlib@1.26.8"},
		{
			"SPDXRef-github.com-NYTimes-gziphandler-v1.1.1", "v1.1.1", "NOASSERTION", "NOASSERTION",
			"pkg:golang/github.com/nytimes/gziphandler@v1.1.1",
		},
		{
			"SPDXRef-github.com-docker-cli-v29.7.2-incompatible", "v29.7.2+incompatible", "NOASSERTION", "NOASSERTION",
			"pkg:golang/github.com/docker/cli@v29.7.2%2Bincompatible",
		},
		{"SPDXRef-example.org-a-b-v1.0.0", "v1.0.0", "NOASSERTION", "NOASSERTION", "pkg:golang/example.org/a_b@v1.0.0"},
		{
			"SPDXRef-example.org-a-b-v1.0.0-2", "v1.0.0", "NOASSERTION", "NOASSERTION",
			"pkg:golang/example.org/a-b@v1.0.0",
		},
		{"SPDXRef-example.org-new-v2.0.0", "v2.0.0", "NOASSERTION", "NOASSERTION", "pkg:golang/example.org/new@v2.0.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if again, err := recorded().SBOM(at, roots()); err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same program has two descriptions: %v", err)
	}
	other := recorded()
	other.SHA256 = strings.Repeat("cd", 32)
	text, err = other.SBOM(at)
	if err != nil || read(t, text).DocumentNamespace == d.DocumentNamespace {
		t.Errorf("two programs have documents of one namespace: %v", err)
	}
}

// TestUnstamped: a document of a program without a version or a commit is valid too.
func TestUnstamped(t *testing.T) {
	info := recorded()
	info.Version, info.Revision = "", ""
	text, err := info.SBOM(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, text)
	if d.DocumentName != "tegen linux/arm64" || d.Packages[0].PackageDownloadLocation != "NOASSERTION" {
		t.Errorf("%s is from %s", d.DocumentName, d.Packages[0].PackageDownloadLocation)
	}
}
