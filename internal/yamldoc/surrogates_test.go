package yamldoc

import "testing"

func TestJoinSurrogates(t *testing.T) {
	for what, c := range map[string]struct{ in, want string }{
		"a pair":                      {`{"a": "\ud83d\ude00!"}`, `{"a": "😀!"}`},
		"large letters":               {`{"a": "\uD83D\uDE00"}`, `{"a": "😀"}`},
		"a key":                       {`{"\ud83d\ude00": 1}`, `{"😀": 1}`},
		"a backslash before":          {`{"a": "\\ud83d\\ude00"}`, `{"a": "\\ud83d\\ude00"}`},
		"two backslashes and a pair":  {`{"a": "\\\ud83d\ude00"}`, `{"a": "\\😀"}`},
		"a half":                      {`{"a": "\ud83d"}`, `{"a": "\ud83d"}`},
		"two halves":                  {`{"a": "\ud83d\ud83d\ude00"}`, `{"a": "\ud83d😀"}`},
		"an escape that is no half":   {`{"a": "\u00e9\ud83d\ude00"}`, `{"a": "\u00e9😀"}`},
		"a text of YAML":              {"a: '\\ud83d\\ude00'\n", "a: '\\ud83d\\ude00'\n"},
		"a flow mapping that is YAML": {"{a: '\\ud83d\\ude00'}\n", "{a: '\\ud83d\\ude00'}\n"},
		"several documents": {
			"a: '\\ud83d\\ude00'\n---\n{\"a\": \"\\ud83d\\ude00\"}\n---\nb: \\ud83d\n",
			"a: '\\ud83d\\ude00'\n---\n{\"a\": \"😀\"}\n---\nb: \\ud83d\n",
		},
		"nothing": {"", ""},
	} {
		if got := string(JoinSurrogates([]byte(c.in))); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
