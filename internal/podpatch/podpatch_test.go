package podpatch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestValidate(t *testing.T) {
	for patch, want := range map[string][]Mistake{
		`{"spec":{"containers":[{"name":"worker","tty":true}],"hostIPC":false}}`: nil,
		`{"spec":{"hostIpc":true,"containers":[{"name":"worker","ty":1}]}}`: {
			{"spec.containers[0].ty", "no pod template has this field"},
			{"spec.hostIpc", "no pod template has this field"},
		},
		`{"spec":{"containers":[{"name":"worker","ports":[` + strings.Repeat(`{"containerPort":1},`, mostItems) +
			`{"containerPort":2}]}]}}`: {
			{"spec.containers[0].ports", "must have at most 500 items"},
		},
		`{"spec":{"containers":[{"name":"worker","args":[` + strings.Repeat(`"a",`, mostItems) + `"b"]}]}}`: nil,
		`{"spec":{"containers":[{"name":"worker","resources":{"limits":{"$retainKeys":"1"},` +
			`"requests":{"$patch":1}}}]}}`: {
			{`spec.containers[0].resources.limits["$retainKeys"]`, directive("$retainKeys")},
			{`spec.containers[0].resources.requests["$patch"]`, directive("$patch")},
		},
		`{"spec":{"nodeSelector":{"$patch":"replace","zone":"a"}}}`: {
			{`spec.nodeSelector["$patch"]`, directive("$patch")},
		},
		`{"metadata":{"labels":{"$setElementOrder/a":"b"}}}`: {
			{`metadata.labels["$setElementOrder/a"]`, directive("$setElementOrder/a")},
		},
		`{"spec":{"overhead":{"cpu":"1e-9999999"}}}`: {
			{
				"spec.overhead.cpu",
				"the exponent of quantity 1e-9999999 exceeds the limit of 3 digits: write a smaller number",
			},
		},
		`{"spec":{"tolerations":"x"}}`:        {{"spec.tolerations", "must be a list, not a string"}},
		`{"metadata":{"labels":["a"]}}`:       {{"metadata.labels", "must be a mapping, not a list"}},
		`{"spec":{"restartPolicy":"Always"}}`: {{"spec.restartPolicy", "is set by tegen"}},
		`{"spec":{"containers":[{"name":"two"}]}}`: {
			{"spec.containers[0].image", `required field is missing: "two" is a container of its ` +
				`own; tegen's is called "worker" here`},
		},
		`{"spec":{"containers":[{"name":"two","image":"registry:5000/x"}]}}`: {
			{"spec.containers[0].image", `must be an image with a tag other than latest, or a digest, not ` +
				`"registry:5000/x"`},
		},
		`{"spec":{"containers":[{"name":"two","image":"registry:5000/x:1"}]}}`: nil,
		`{"spec":{"initContainers":[{"name":"proxy","tty":true}]}}`:            nil,
		`{"spec":{"initContainers":[{"name":"proxy","image":"a/b:1"}]}}`: {
			{"spec.initContainers[0].image", `the image of sidecar "proxy" is in spec.sidecars`},
		},
	} {
		got := Validate([]byte(patch), "worker", "spec.image", "proxy")
		slices.SortFunc(got, func(a, b Mistake) int { return strings.Compare(a.Path, b.Path) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", patch, diff)
		}
	}
}

func directive(key string) string {
	return `key "` + key + `" is a directive of a patch, which a podTemplate cannot contain: remove it`
}

// TestApply: containers and volumes merge by name, what the patch does not name stays.
func TestApply(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "worker", Image: "x:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}},
		Volumes:    []corev1.Volume{{Name: "tmp"}},
	}}
	got := Apply(template, []byte(`{"spec":{"containers":[{"name":"worker","env":[{"name":"B","value":"2"}]},`+
		`{"name":"side","image":"y:1"}],"volumes":[{"name":"own"}]}}`))
	var names, env, volumes []string
	for _, c := range got.Spec.Containers {
		names = append(names, c.Name+" "+c.Image)
		for _, e := range c.Env {
			env = append(env, e.Name)
		}
	}
	for _, v := range got.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range []struct{ got, want []string }{
		{names, []string{"worker x:1", "side y:1"}},
		{env, []string{"B", "A"}},
		{volumes, []string{"own", "tmp"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if len(template.Spec.Containers) != 1 {
		t.Error("the template itself was changed")
	}
}
