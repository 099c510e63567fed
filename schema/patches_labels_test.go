package schema

import (
	"strings"
	"testing"
)

// TestPodTemplateLabels has labels that an author may put on pods: what nothing of tegen's selects by.
func TestPodTemplateLabels(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: training}
spec:
  image: ghcr.io/acme/resnet:1.4.0
  command: [python, train.py]
  workers: {replicas: 2}
  podTemplate: {metadata: {labels: {KEY: VALUE}}}
`
	for label, refused := range map[string]string{
		"app.kubernetes.io/name=resnet":      "",
		"app.kubernetes.io/part-of=ml":       "",
		"worker=gpu":                         "", // selected by with target pods alone
		"team=vision":                        "",
		"tegen.dev/data=resnet":              "choose another key",
		"tegen.dev/anything=x":               "choose another key",
		"app.kubernetes.io/component=worker": "choose another key",
		"job-name=other":                     "choose another key",
		"controller-uid=other":               "choose another key",
		"not a key=x":                        "is not a key",
	} {
		key, value, _ := strings.Cut(label, "=")
		text := strings.NewReplacer("KEY", `"`+key+`"`, "VALUE", value).Replace(job)
		_, err := Load([]Source{{Name: "job.yaml", Data: []byte(text)}})
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s is refused: %v", label, err)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused) ||
			!strings.Contains(err.Error(), "job.yaml:8:")):
			t.Errorf("%s: want an error with %q and its line, not %v", label, refused, err)
		}
	}
}
