package gitops

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRequests: requests are told apart by their sender, and a dry run is no change.
func TestRequests(t *testing.T) {
	const log = `{"verb":"patch","requestURI":"/apis/batch/v1/namespaces/a/jobs/x?dryRun=All&force=true",` +
		`"user":{"username":"system:serviceaccount:flux-system:kustomize-controller"},` +
		`"objectRef":{"resource":"jobs","namespace":"a","name":"x"},"responseStatus":{"code":200}}
{"verb":"patch","requestURI":"/apis/batch/v1/namespaces/a/jobs/x/status","objectRef":` +
		`{"resource":"jobs","subresource":"status","namespace":"a","name":"x"},` +
		`"user":{"username":"system:serviceaccount:flux-system:kustomize-controller"},"responseStatus":{"code":409}}
{"verb":"delete","user":{"username":"system:serviceaccount:argocd:argocd-application-controller"},` +
		`"objectRef":{"resource":"pods","namespace":"a","name":"y"},"responseStatus":{"code":200}}
{"verb":"get","requestReceivedTimestamp":"2026-11-22T20:41:10.500000Z",` +
		`"user":{"username":"system:serviceaccount:flux-system:kustomize-controller"},` +
		`"objectRef":{"resource":"secrets","namespace":"b","name":"z"},"responseStatus":{"code":404}}
{"verb":"get","us`
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := requestsOf(file, "flux-system:")
	if err != nil {
		t.Fatal(err)
	}
	status := Request{Verb: "patch", Resource: "jobs/status", Namespace: "a", Name: "x", Code: 409}
	want := Requests{
		{Verb: "patch", Resource: "jobs", Namespace: "a", Name: "x", DryRun: true, Code: 200},
		status,
		{
			Verb: "get", Resource: "secrets", Namespace: "b", Name: "z", Code: 404,
			At: time.Date(2026, 11, 22, 20, 41, 10, 5e8, time.UTC),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Requests{status}, got.In("a").Changing()); diff != "" {
		t.Errorf("what may have changed an object of a namespace (-want +got)\n%s", diff)
	}
	if _, err := requestsOf(file+"2", "flux-system:"); err == nil {
		t.Error("a log that is not there has no request")
	}
}
