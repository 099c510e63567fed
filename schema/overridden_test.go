package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOverridden: what the author says in a field and again in podTemplate is told, and the rest of podTemplate is not.
func TestOverridden(t *testing.T) {
	const at = "spec.podTemplate.spec."
	for _, c := range []struct{ job, container, pod, want string }{
		{
			"env: [{name: A, value: x}]", "env: [{name: A, value: y}]", "",
			"containers[0].env: A is used in place of that in spec.env",
		},
		{"env: [{name: A, value: x}]", "env: [{name: B, value: y}]", "", ""},
		{"env: [{name: A, value: x}]", "env: []", "", ""},
		{"command: [a]", "command: [b]", "", "containers[0].command: is used in place of spec.command"},
		{
			"resources: {cpu: 2}", "resources: {limits: {cpu: 3}}", "",
			"containers[0].resources.limits: cpu is used in place of that in spec.resources",
		},
		{
			"resources: {ephemeralStorage: 2Gi}", "resources: {requests: {ephemeral-storage: 3Gi}}", "",
			"containers[0].resources.requests: ephemeralStorage is used in place of that in spec.resources",
		},
		{"resources: {cpu: 2}", "resources: {limits: {example.com/nic: 1}}", "", ""},
		{"resources: {cpu: 2}", "resources: {limits: {}}", "", ""},
		{
			"placement: {tolerations: [{key: a}]}", "tty: true", "tolerations: [{key: b}]",
			"tolerations: is used in place of spec.placement.tolerations",
		},
		{
			"placement: {tolerations: [{key: a}]}", "tty: true", "tolerations: []",
			"tolerations: is used in place of spec.placement.tolerations",
		},
		{
			"placement: {nodeSelector: {a: b}}", "tty: true", "nodeSelector: {a: c}",
			"nodeSelector: a is used in place of that in spec.placement.nodeSelector",
		},
		{"placement: {nodeSelector: {a: b}}", "tty: true", "nodeSelector: {b: c}", ""},
		{"placement: {nodeSelector: {a: b}}", "tty: true", "nodeSelector: {}", ""},
		{
			"storage: [{name: v, mountPath: /a, claim: c}]", "tty: true", "volumes: [{name: v, emptyDir: {}}]",
			"volumes: v is used in place of that in spec.storage",
		},
		{
			"security: {runAsUser: 5}", "securityContext: {runAsUser: 6}", "",
			"containers[0].securityContext: runAsUser is used in place of that in spec.security",
		},
		{"args: [a]", "tty: true", "priorityClassName: a, serviceAccountName: b", ""},
		{
			"identity: {serviceAccount: a}", "tty: true", "serviceAccountName: b",
			"serviceAccountName: is used in place of spec.identity",
		},
		{
			"imagePullPolicy: Always", "imagePullPolicy: Never", "",
			"containers[0].imagePullPolicy: is used in place of spec.imagePullPolicy",
		},
		{"imagePullPolicy: Always", "imagePullPolicy: Always", "", ""},
	} {
		spec := "workers: {replicas: 1}, " + c.job + ", podTemplate: {spec: {containers: [{name: worker, " +
			c.container + "}], " + c.pod + "}}"
		j := expect(t, spec, "")
		if j == nil {
			continue
		}
		var want []string
		if c.want != "" {
			want = []string{at + c.want}
		}
		if diff := cmp.Diff(want, j.Origin.Asked.Overrides); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// TestOverriddenElsewhere: groups have podTemplates of their own, and containers of the author's own have variables of
// their own.
func TestOverriddenElsewhere(t *testing.T) {
	for spec, want := range map[string]string{
		"workers: {replicas: 1}, env: [{name: A, value: x}], " +
			"podTemplate: {spec: {containers: [{name: x, image: 'a:1', env: [{name: A}]}]}}": "",
		"workers: {replicas: 1}, args: [x], sidecars: [{name: s, image: 'a/s:1', command: [a]}], " +
			"podTemplate: {spec: {initContainers: [{name: s, command: [b]}]}}": "spec.podTemplate.spec." +
			"initContainers[0].command: is used in place of spec.sidecars[0].command",
		"workers: {replicas: 1}, target: jobset, args: [a], groups: [{name: eval, command: [a], podTemplate: {spec: " +
			"{containers: [{name: eval, command: [b]}]}}}]": "spec.groups[0].podTemplate.spec.containers[0].command: " +
			"is used in place of spec.groups[0].command",
	} {
		if j := expect(t, spec, ""); j != nil && strings.Join(j.Origin.Asked.Overrides, "\n") != want {
			t.Errorf("%s\n got %q\nwant %q", spec, j.Origin.Asked.Overrides, want)
		}
	}
}
