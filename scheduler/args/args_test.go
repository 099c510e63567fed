package args

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestDecode(t *testing.T) {
	type args struct {
		Seed *uint64 `json:"seed,omitempty"`
	}
	seed := func(n uint64) args { return args{&n} }
	for _, c := range []struct {
		reason  string
		object  runtime.Object
		want    args
		problem string // a part of the error, "" for none
	}{
		{"a profile without args", nil, args{}, ""},
		{"args of a file that holds none", &runtime.Unknown{}, args{}, ""},
		{
			"kube-scheduler hands over JSON",
			&runtime.Unknown{Raw: []byte(`{"seed": 7}`), ContentType: runtime.ContentTypeJSON}, seed(7), "",
		},
		{
			"the whole range", &runtime.Unknown{Raw: []byte(`{"seed": 18446744073709551615}`)},
			seed(18446744073709551615), "",
		},
		{"YAML", &runtime.Unknown{Raw: []byte("seed: 7\n"), ContentType: runtime.ContentTypeYAML}, seed(7), ""},
		{"a misspelt field is not ignored", &runtime.Unknown{Raw: []byte(`{"sed": 7}`)}, args{}, `unknown field "sed"`},
		{
			"nor is one that is given twice", &runtime.Unknown{Raw: []byte(`{"seed": 7, "seed": 8}`)},
			args{},
			`"seed" already set`,
		},
		{"one of another case is read", &runtime.Unknown{Raw: []byte(`{"Seed": 7}`)}, seed(7), ""},
		{"below zero", &runtime.Unknown{Raw: []byte(`{"seed": -1}`)}, args{}, "cannot unmarshal number -1"},
		{"a word", &runtime.Unknown{Raw: []byte(`{"seed": "x"}`)}, args{}, "cannot unmarshal string"},
		{"no args but a list", &runtime.Unknown{Raw: []byte(`[7]`)}, args{}, "cannot unmarshal array"},
		{
			"another encoding", &runtime.Unknown{ContentType: runtime.ContentTypeProtobuf},
			args{},
			"application/vnd.kubernetes.protobuf",
		},
		{"another object", &corev1.Pod{}, args{}, "*v1.Pod"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var got args
			err := Decode(c.object, &got)
			switch {
			case c.problem == "" && err != nil:
				t.Fatal(err)
			case c.problem == "":
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			case err == nil || !strings.Contains(err.Error(), c.problem):
				t.Errorf("error %v, want one with %q", err, c.problem)
			}
		})
	}
}
