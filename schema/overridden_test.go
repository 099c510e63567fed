package schema

import "testing"

// TestOverridden: what the author says in a field and again in podTemplate is told, and the rest of podTemplate is not.
func TestOverridden(t *testing.T) {
	const at = "spec.podTemplate.spec."
	for _, c := range []struct{ job, container, pod, want string }{
		{
			"env: [{name: A, value: x}]", "env: [{name: A, value: y}]", "",
			"containers[0].env: A is used in place of that in spec.env",
		},
		{"env: [{name: A, value: x}]", "env: [{name: B, value: y}]", "", ""},
		{"command: [a]", "command: [b]", "", "containers[0].command: is used in place of spec.command"},
		{
			"resources: {cpu: 2}", "resources: {limits: {cpu: 3}}", "",
			"containers[0].resources.limits: cpu is used in place of that in spec.resources",
		},
		{"resources: {cpu: 2}", "resources: {limits: {example.com/nic: 1}}", "", ""},
		{
			"placement: {tolerations: [{key: a}]}", "tty: true", "tolerations: [{key: b}]",
			"tolerations: is used in place of spec.placement.tolerations",
		},
		{
			"placement: {nodeSelector: {a: b}}", "tty: true", "nodeSelector: {a: c}",
			"nodeSelector: a is used in place of that in spec.placement.nodeSelector",
		},
		{"placement: {nodeSelector: {a: b}}", "tty: true", "nodeSelector: {b: c}", ""},
		{"args: [a]", "tty: true", "priorityClassName: a, serviceAccountName: b", ""},
		{
			"identity: {serviceAccount: a}", "tty: true", "serviceAccountName: b",
			"serviceAccountName: is used in place of spec.identity",
		},
	} {
		spec := "workers: {replicas: 1}, " + c.job + ", podTemplate: {spec: {containers: [{name: worker, " +
			c.container + "}], " + c.pod + "}}"
		job := expect(t, spec, "")
		if job == nil {
			continue
		}
		var want []string
		if c.want != "" {
			want = []string{at + c.want}
		}
		if got := job.asked.overrides; len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s\nnotes %q\nwant  %q", spec, got, want)
		}
	}
}

// TestNotOverridden: containers of the author's own have variables of their own.
func TestNotOverridden(t *testing.T) {
	job := expect(t, "workers: {replicas: 1}, env: [{name: A, value: x}], "+
		"podTemplate: {spec: {containers: [{name: x, image: 'a:1', env: [{name: A}]}]}}", "")
	if job != nil && len(job.asked.overrides) > 0 {
		t.Errorf("%q", job.asked.overrides)
	}
}
