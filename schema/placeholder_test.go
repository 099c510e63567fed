package schema

import "testing"

// TestPlaceholders: what nobody has filled in is found, and a model's tokens are not taken for it.
func TestPlaceholders(t *testing.T) {
	for text, want := range map[string][2]int{ // how many anywhere, and how many in a program
		"<YOUR-BUCKET>":                    {1, 1},
		"s3://<bucket_name>/data":          {1, 1},
		"/data/<user_name>":                {1, 1},
		"--user=<your_name>":               {1, 1},
		"registry/<a name>":                {1, 1},
		"<image>":                          {1, 0},
		"<end_of_turn>":                    {1, 0},
		"--mask=<extra_id_0>":              {1, 0},
		"--pad=<PAD>":                      {1, 0},
		"a < b > c":                        {0, 0},
		"<s>,<unk>,<NAME>":                 {3, 1},
		"--tokens=<PAD>,<REGISTRY>/<MASK>": {3, 1},
	} {
		if got := [2]int{len(Placeholders(text, false)), len(Placeholders(text, true))}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
