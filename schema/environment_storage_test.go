package schema

import (
	"strings"
	"testing"
)

// TestOnDeleteOfEnvironment: what an environment says is of the volumes of which their job says nothing, also where it
// puts another source in the place of a claim that exists.
func TestOnDeleteOfEnvironment(t *testing.T) {
	const env = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec:\n"
	const volumes = "storage: [{name: own, mountPath: /own, onDelete: retain}, {name: new, mountPath: /new}, " +
		"{name: there, mountPath: /there, claim: x}, {name: scratch, mountPath: /scratch, emptyDir: {}}]"
	const threeGo = "retain delete delete delete"
	text := strings.Replace(small("a"), "workers:", volumes+"\n  workers:", 1)
	for spec, want := range map[string]string{
		"anywhere: true\n":   "retain retain retain retain",
		"onDelete: delete\n": threeGo,
		"onDelete: delete\n  storage: {replace: all, dynamic: {}}\n":                      threeGo,
		"onDelete: delete\n  overrides: {storage: [{mountPath: /v, onDelete: retain}]}":   "retain",
		"onDelete: delete\n  overrides: {storage: [{mountPath: /v, dynamic: {}}]}\n":      "delete",
		"onDelete: retain\n  overrides: {storage: [{mountPath: /v, onDelete: delete}]}\n": "delete",
		"onDelete: delete\n  defaults: {storage: [{mountPath: a}]}\n":                     "storage[0].mountPath",
		"onDelete: remove\n":                    "must be one of",
		"onDelete: delete\n  overrides: {}\n\n": threeGo,
	} {
		jobs, errs := load(t, text, env+"  "+spec)
		if errs != nil {
			if got := errs.Error(); !strings.Contains(got, want) {
				t.Errorf("%s%s", spec, got)
			}
			continue
		}
		var got []string
		for _, v := range jobs[0].Spec.Storage {
			got = append(got, v.OnDelete)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s%s, want %s", spec, got, want)
		}
	}
}
