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
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

var at = time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("east", 3600))

// sample is what a program records whose modules have all that makes identifiers and URLs difficult.
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

// read decodes a document, into a form that is independent of the one that it was written from.
func read(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func packages(d map[string]any) (all []map[string]any) {
	for _, p := range d["packages"].([]any) {
		all = append(all, p.(map[string]any))
	}
	return all
}

// requireValid asserts what chapters 6, 7 and 11 of the SPDX specification 2.3 demand.
func requireValid(t *testing.T, d map[string]any) {
	t.Helper()
	matches := func(what, pattern string, value any) {
		t.Helper()
		if text, ok := value.(string); !ok || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(text) {
			t.Errorf("%s is %v, want %s", what, value, pattern)
		}
	}
	const id, license = `SPDXRef-[A-Za-z0-9.-]+`, `NOASSERTION|NONE|[A-Za-z0-9.+-]+`
	matches("spdxVersion", `SPDX-2\.3`, d["spdxVersion"])
	matches("dataLicense", `CC0-1\.0`, d["dataLicense"])
	matches("SPDXID", "SPDXRef-DOCUMENT", d["SPDXID"])
	matches("name", ".+", d["name"])
	matches("documentNamespace", `https://[^#\s]+`, d["documentNamespace"])
	creation := d["creationInfo"].(map[string]any)
	matches("created", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, creation["created"])
	for _, creator := range creation["creators"].([]any) {
		matches("creator", `(Person|Organization|Tool): \S+`, creator)
	}
	known := map[any]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range packages(d) {
		matches("name of a package", ".+", p["name"])
		matches("identifier of a package", id, p["SPDXID"])
		if known[p["SPDXID"]] {
			t.Errorf("two packages are %s", p["SPDXID"])
		}
		known[p["SPDXID"]] = true
		matches("downloadLocation", `NOASSERTION|NONE|(git\+)?https://\S+`, p["downloadLocation"])
		matches("licenseConcluded", license, p["licenseConcluded"])
		matches("licenseDeclared", license, p["licenseDeclared"])
		matches("copyrightText", ".+", p["copyrightText"])
		matches("primaryPackagePurpose", "APPLICATION|LIBRARY|OTHER", p["primaryPackagePurpose"])
		if p["filesAnalyzed"] != false { // else a verification code of the files would have to be here
			t.Errorf("%s: filesAnalyzed is %v", p["name"], p["filesAnalyzed"])
		}
		references, _ := p["externalRefs"].([]any)
		for _, r := range references {
			r := r.(map[string]any)
			matches("category", "PACKAGE-MANAGER", r["referenceCategory"])
			matches("type", "purl", r["referenceType"])
			matches("locator", `pkg:golang/[^\sA-Z+]+(@[^\s+]+)?`, r["referenceLocator"])
		}
	}
	described := false
	for _, r := range d["relationships"].([]any) {
		r := r.(map[string]any)
		matches("relationship", "DESCRIBES|DEPENDS_ON", r["relationshipType"])
		if !known[r["spdxElementId"]] || !known[r["relatedSpdxElement"]] {
			t.Errorf("a relationship leads nowhere: %v", r)
		}
		described = described || r["relationshipType"] == "DESCRIBES" && r["spdxElementId"] == "SPDXRef-DOCUMENT"
	}
	if !described {
		t.Error("the document describes nothing")
	}
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
	requireValid(t, d)
	if created := d["creationInfo"].(map[string]any)["created"]; d["name"] != "tegen v1.2.3 linux/arm64" ||
		created != "2026-01-02T03:04:05Z" {
		t.Errorf("%s of %v", d["name"], d["creationInfo"])
	}
	type line struct{ ID, Version, License, Download, Locator string }
	var got []line
	for _, p := range packages(d) {
		l := line{
			ID: p["SPDXID"].(string), Version: p["versionInfo"].(string), License: p["licenseDeclared"].(string),
			Download: p["downloadLocation"].(string),
		}
		if references, ok := p["externalRefs"].([]any); ok {
			l.Locator = references[0].(map[string]any)["referenceLocator"].(string)
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
	if err != nil || read(t, text)["documentNamespace"] == d["documentNamespace"] {
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
	requireValid(t, d)
	if d["name"] != "tegen linux/arm64" || packages(d)[0]["downloadLocation"] != "NOASSERTION" {
		t.Errorf("%s is from %s", d["name"], packages(d)[0]["downloadLocation"])
	}
}
