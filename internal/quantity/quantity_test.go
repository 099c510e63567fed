package quantity

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// long are quantities that take the parser of apimachinery seconds to hours.
var long = []string{
	strings.Repeat("1", 1_000_000), "0." + strings.Repeat("0", 1_000_000) + "1", "1e9999999", "1e-9999999",
	"1E+2147483647", "12345678901234567890e9999999",
}

func TestParse(t *testing.T) {
	for _, text := range long {
		start := time.Now()
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%.20s…: %v", text, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%.20s…: took %s", text, took)
		}
	}
	for _, text := range []string{
		"500m", "16Gi", "1e3", "1E18", "0.000000001", "9223372036854775807", "-1", "1e-9", "123456789.123456789",
	} {
		if q, err := Parse(text); err != nil || q.IsZero() {
			t.Errorf("%s: %s, %v", text, &q, err)
		}
	}
}

// TestCheckJSON: the quantities of a pod are found wherever its type has them, and nothing else is taken for one.
func TestCheckJSON(t *testing.T) {
	number := strings.Repeat("7", 100)
	for _, c := range []struct{ text, want string }{
		{`{"spec":{"containers":[{"resources":{"limits":{"cpu":"%s"}}}]}}`, "spec.containers[0].resources.limits.cpu"},
		{
			`{"spec":{"containers":[{"resources":{"requests":{"x.io/y":%s}}}]}}`,
			`spec.containers[0].resources.requests["x.io/y"]`,
		},
		{`{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"%s"}}]}}`, "spec.volumes[0].emptyDir.sizeLimit"},
		{`{"spec":{"Overhead":{"memory":"%s"}}}`, "spec.Overhead.memory"},
		{`{"spec":{"containers":[{"args":["%s"],"env":[{"name":"N","value":"%[1]s"}]}]}}`, ""},
		{`{"metadata":{"labels":{"limits":"%s"}}}`, ""},
		{`{"spec":{"containers":"%s"}}`, ""},
	} {
		at, err := CheckJSON(reflect.TypeFor[corev1.PodTemplateSpec](), fmt.Appendf(nil, c.text, number))
		if at.String() != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%s: %s, %v", c.text, at, err)
		}
	}
}
