package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

// TestCodeNotes: only a whole commit is the same for all pods of a run.
func TestCodeNotes(t *testing.T) {
	whole := strings.Repeat("0123456789", 4)
	for ref, want := range map[string]bool{
		"": true, "main": true, "v1.2.0": true, whole: false, whole + whole[:24]: false,
	} {
		code := "code: {mountPath: /w, git: {repository: 'https://host/a.git'"
		if ref != "" {
			code += ", ref: '" + ref + "'"
		}
		notes := note.CodeNotes(&loadOne(t, jobHead+"workers: {replicas: 1}, "+code+"}}}\n").Spec)
		if got := len(notes) == 1 && strings.HasPrefix(notes[0], "spec.code.git.ref: "); got != want {
			t.Errorf("%q: notes %q", ref, notes)
		}
	}
	if notes := note.CodeNotes(&loadOne(t,
		jobHead+"workers: {replicas: 1}, kubernetesVersion: '1.35', code: {mountPath: /w, "+
			"image: 'a/b:1'}}\n").Spec); notes != nil {
		t.Errorf("an image: notes %q", notes)
	}
}

// TestCodePort: network.allowTo must open the port that the URL names.
func TestCodePort(t *testing.T) {
	for repository, want := range map[string]int32{
		"https://host/a.git": 443, "https://host:8443/a.git": 8443, "ssh://git@host/a.git": 22,
		"ssh://git@host:2222/a.git": 2222, "git@host:a/b.git": 22,
	} {
		if got := (&job.Git{Repository: repository}).Port(); got != want {
			t.Errorf("%s: port %d, not %d", repository, got, want)
		}
	}
}
