package gitops

import (
	"errors"
	"strings"
	"testing"
)

var (
	someCommit = strings.Repeat("0a", 20)
	someDigest = "sha256:" + strings.Repeat("0a", 32)
)

// TestSource: what is taken for a source has one meaning in both controllers; what has none, or another, is refused.
func TestSource(t *testing.T) {
	const jobs = "oci://registry.example/team/jobs"
	for _, tc := range []struct{ repo, revision, want string }{
		{"https://git.example/team/jobs", "", "https://git.example/team/jobs main"},
		{"ssh://git@git.example/team/jobs", "release/1", "ssh://git@git.example/team/jobs release/1"},
		{"file:///srv/jobs.git", "refs/tags/v1.0", "file:///srv/jobs.git refs/tags/v1.0"},
		{"https://git.example/jobs", "refs/heads/v1.0", "https://git.example/jobs refs/heads/v1.0"},
		{"https://git.example/jobs", someCommit, "https://git.example/jobs " + someCommit},
		{"https://git.example/jobs", "v2-next", "https://git.example/jobs v2-next"},
		{jobs + ":eks", "", jobs + " eks"},
		{jobs, "eks", jobs + " eks"},
		{jobs, "v1.0", jobs + " v1.0"},
		{jobs, someDigest, jobs + " " + someDigest},
		{jobs + "@" + someDigest, "", jobs + " " + someDigest},
		{jobs + ":eks@" + someDigest, "", jobs + " " + someDigest}, // as publish prints it
		{"oci://localhost:5000/jobs:eks", "", "oci://localhost:5000/jobs eks"},
		{"oci://localhost:5000/jobs", "eks", "oci://localhost:5000/jobs eks"},
		{"oci://registry:5000/a/b.c_d", "eks", "oci://registry:5000/a/b.c_d eks"},
	} {
		s := Source{URL: tc.repo, Revision: tc.revision}
		if err := errors.Join(s.Check()...); err != nil {
			t.Errorf("%s %s: %v", tc.repo, tc.revision, err)
		}
		if got := s.address() + " " + s.revision(); got != tc.want {
			t.Errorf("%s %s: got %s", tc.repo, tc.revision, got)
		}
	}
	const git = "https://git.example/jobs"
	for _, tc := range []struct{ repo, revision, want string }{
		{"", "", "--repo: is missing"},
		{"git@git.example:team/jobs", "", "write ssh://git@git.example/team/jobs"},
		{"git.example/team/jobs", "", "--repo: must be the address"},
		{"https:///jobs", "", "--repo: must be the address"},
		{"https://git.example", "", "--repo: must be the address"},
		{"https://me:s3cret@git.example/jobs", "", "--repo: must have no password, and no user but with ssh://"},
		{"https://s3cret@git.example/jobs", "", "and no user but with ssh://"},
		{"HTTP://s3cret@git.example/jobs?ref=main", "", "and no user but with ssh://"},
		{"ssh://git:s3cret@git.example/jobs", "", "must have no password"},
		{"https://s3cret@git.example", "", "and no user but with ssh://"},
		{"https://me:s3/cret@git.example/jobs", "", "without a user"},
		{"s3cret@git.example/jobs", "", "without a user"},
		{git + "?ref=main", "", "--revision names a branch"},
		{git, "-main", "--revision: must be a branch, refs/tags/TAG or a commit of 40 digits"},
		{git, "a..b", "--revision: must be a branch"},
		{git, "HEAD", "--revision: must be a branch"},
		{git, "main:jobs", "--revision: must be a branch"},
		{git, "v1.0", "write refs/tags/v1.0, refs/heads/v1.0 or the commit's 40 digits"},
		{git, "v1", "may be a tag"},
		{git, "1.4.0-rc.1", "write refs/tags/1.4.0-rc.1"},
		{git, someCommit[:7], "a part of a commit"},
		{git, someCommit + "00", "a part of a commit"},
		{jobs, "", "--repo: has no tag: write what 'tegen publish' was given, such as " + jobs + ":eks"},
		{jobs + ":eks", "eks", "--revision: --repo names eks already"},
		{jobs + "@" + someDigest, "eks", "--repo names " + someDigest + " already"},
		{jobs, "refs/tags/v1", "--revision: must be the tag or digest of an artifact"},
		{jobs + "@sha256:0a", "", "must be the tag or digest"},
		{jobs + ":", "", "--repo: has no tag"},
		{"oci://", "eks", "--repo: must be the address"},
		{"oci://registry.example", "eks", "--repo: must be the address"},
		{"oci://registry.example:eks", "", "--repo: must be the address"},
		{"oci://team/jobs", "eks", "--repo: must be the address"}, // which Flux would look for at Docker Hub
		{"oci://registry.example/Team/jobs", "eks", "in lower case"},
		{"oci://me:s3cret@registry.example/jobs", "eks", "--repo: must have no password"},
		{"oci://s3cret@registry.example/jobs", "eks", "--repo: must have no password"},
	} {
		err := errors.Join(Source{URL: tc.repo, Revision: tc.revision}.Check()...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "s3") {
			t.Errorf("%s %s: %v, want %q", tc.repo, tc.revision, err, tc.want)
		}
	}
}

// TestJobFile: the plugin is told a path that is there.
func TestJobFile(t *testing.T) {
	for folder, want := range map[string]string{
		"jobs": "{{.path.path}}/{{.path.filename}}", ".": "{{.path.filename}}",
	} {
		a := argocd(func(a *ArgoCD) { a.Path, a.Plugin = folder, true })
		if got := a.rendering().Plugin.Env[0].Value; got != want {
			t.Errorf("of %s: %q, want %q", folder, got, want)
		}
	}
}
