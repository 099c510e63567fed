package bundles

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// catches shows that the server refuses or warns of what it is here for, and
// that it gets; a green TestBundles is worth nothing without it. That
// namespaces enforce their standard is shown whenever one is labelled.
func (s *server) catches(t *testing.T) {
	const (
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot, namespace: training, " +
			"labels: {team: a}}\n"
		job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: demo, " +
			"namespace: training}\nspec:\n  backoffLimit: 6\n  template:\n    spec:\n" +
			"      restartPolicy: Never\n      securityContext: {runAsNonRoot: true, " +
			"seccompProfile: {type: RuntimeDefault}}\n" +
			"      containers: [{name: c, image: 'c:1', securityContext: {allowPrivilegeEscalation: false, " +
			"capabilities: {drop: [ALL]}}}]\n"
		pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: demo, " +
			"namespace: training}\nspec:\n  serviceAccountName: default\n  containers: [{name: c, image: 'c:1'}]\n"
		nobodies = "apiVersion: example.com/v1\nkind: Probe\nmetadata: {name: demo, namespace: training}\n"
	)
	ctx := t.Context()
	if err := s.enforce(ctx, "training", restricted); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, text, refusal, warning string }{
		{"nothing", job, "", ""},
		{"another owner's field", strings.Replace(account, "team: a", "team: b", 1), `conflict with "other"`, ""},
		{
			"an unknown field", strings.Replace(job, "backoffLimit", "backoffLimt", 1),
			`.spec.backoffLimt: field not declared in schema`, "",
		},
		{
			"a duplicate field", strings.Replace(job, "  backoffLimit: 6\n", "  backoffLimit: 6\n  backoffLimit: 6\n",
				1),
			`"backoffLimit" already set`, "",
		},
		{
			"a pod before its account", strings.Replace(pod, "default", "nobody", 1),
			`serviceaccount "nobody" not found`,
			"",
		},
		{"an unrestricted pod", pod, `violates PodSecurity "restricted:latest"`, ""},
		{
			"an unrestricted template", strings.Replace(job, "runAsNonRoot: true", "runAsNonRoot: false", 1), "",
			`would violate PodSecurity "restricted:latest"`,
		},
		{"a kind without a definition", nobodies, "no matches for kind", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			all, err := objects.Read("catches.yaml", []byte(row.text))
			if err != nil {
				t.Fatal(err)
			}
			if all[0].GetKind() == "ServiceAccount" {
				s.ownedByOther(t, account)
			}
			_, warnings, err := s.apply(t.Context(), all[0])
			if refusal := message(err); !strings.Contains(refusal, row.refusal) ||
				(refusal == "") != (row.refusal == "") {
				t.Errorf("got the refusal %q, want %q", refusal, row.refusal)
			}
			if warning := strings.Join(warnings, "\n"); !strings.Contains(warning, row.warning) ||
				(warning == "") != (row.warning == "") {
				t.Errorf("got the warning %q, want %q", warning, row.warning)
			}
			if _, missing := s.resource(all[0]); missing != nil {
				return
			}
			if err := s.removeObject(t.Context(), all[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// ownedByOther applies an object as somebody else.
func (s *server) ownedByOther(t *testing.T, text string) {
	t.Helper()
	all, err := objects.Read("other.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.applyAs(t.Context(), "other", all[0]); err != nil {
		t.Fatal(err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
