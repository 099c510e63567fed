package objects

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: " +
		"ConfigMap\nmetadata: {name: b, namespace: a}\n" +
		"data:\n  text: |\n    first\n    --- \n    last\n"
	all, err := Read("golden/case/base.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || !all[0].IsNamespace() || all[1].IsNamespace() {
		t.Fatalf("got %v, want a Namespace and what is in it", all)
	}
	if got, want := all[1].String(), "golden/case/base.yaml: ConfigMap a/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.HasSuffix(text, string(all[1].Text)) {
		t.Errorf("the text is not as it was:\n%s", all[1].Text)
	}
	for _, bad := range []string{"", "kind: ConfigMap\n", "a: b: c\n"} {
		if all, err := Read("bad.yaml", []byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, all)
		}
	}
}
