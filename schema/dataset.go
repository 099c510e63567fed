package schema

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// The stores of datasets that are no web servers.
const (
	s3Scheme  = "s3://"
	hubScheme = "hf://"
)

// FromS3 says whether a dataset is in a bucket.
func (d *Dataset) FromS3() bool { return strings.HasPrefix(d.URL, s3Scheme) }

// FromHub says whether a dataset is a repository on the Hugging Face Hub.
func (d *Dataset) FromHub() bool { return strings.HasPrefix(d.URL, hubScheme) }

// Tree says whether a dataset is many files, which are fetched one by one and never unpacked.
func (d *Dataset) Tree() bool { return d.FromHub() || d.FromS3() && strings.HasSuffix(d.URL, "/") }

// Repository is a repository of the Hub: its kind, as huggingface_hub calls it, its name, and a revision or "".
func (d *Dataset) Repository() (kind, name, revision string) {
	name, revision, _ = strings.Cut(strings.TrimPrefix(d.URL, hubScheme), "@")
	if rest, ok := strings.CutPrefix(name, "datasets/"); ok {
		return "dataset", rest, revision
	}
	return "model", name, revision
}

// KeysOf are the keys of the Secret of a dataset, which are the variables of who fetches it.
func (d *Dataset) KeysOf() []string {
	switch {
	case d.FromS3():
		return []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	case d.FromHub():
		return []string{"HF_TOKEN"}
	}
	return nil
}

// stores refuses what a store has no use for.
func (r *validation) stores() {
	for i := range r.Spec.Storage {
		if d := r.Spec.Storage[i].Dataset; d != nil {
			r.storeOf(d, fmt.Sprintf("spec.storage[%d].dataset", i))
		}
	}
}

func (r *validation) storeOf(d *Dataset, at string) {
	web := !d.FromS3() && !d.FromHub()
	for field, value := range map[string]string{"endpoint": d.Endpoint, "region": d.Region} {
		if value != "" && !d.FromS3() {
			r.fail(at+"."+field, "requires", "only a bucket has one: leave it out, or give a URL of s3://")
		}
	}
	switch {
	case web && d.Secret != "":
		r.fail(at+".secret", "requires", "curl is given no credentials: leave it out, or fetch from s3:// or hf://")
	case d.FromS3() && d.Secret == "" && r.Spec.Identity == nil:
		r.fail(at+".url", "requires", "reading from S3 needs credentials: set dataset.secret, or spec.identity: one "+
			"of irsa, podIdentity, nodeRole, serviceAccount")
	}
	if d.Tree() && d.SHA256 != "" {
		r.fail(at+".sha256", "requires", "it is the sum of one file, and these are many: leave it out, and name a "+
			"revision where there is one")
	}
	if !web && d.Unpack && r.IsSet(at+".unpack") {
		r.fail(at+".unpack", "requires", "what is in a bucket or a repository stays as it is: leave it out, or fetch "+
			"the archive by https")
	}
}

// wholeCommit is a full name of a commit.
var wholeCommit = lazy.Regexp("^([0-9a-f]{40}|[0-9a-f]{64})$")

// datasetNotes tell of a dataset that is another one when it is fetched for another volume.
func (s *Spec) datasetNotes() (notes []string) {
	for i := range s.Storage {
		d := s.Storage[i].Dataset
		if d == nil || !d.FromHub() {
			continue
		}
		if _, _, revision := d.Repository(); !wholeCommit().MatchString(revision) {
			notes = append(notes, fmt.Sprintf("spec.storage[%d].dataset.url: without a whole commit behind '@' it is "+
				"fetched as it is at the time: another volume may get other files", i))
		}
	}
	return notes
}
