package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// farm is a program of two commands, one of which has another below it.
func farm(out *bytes.Buffer, args ...string) error {
	milk := &cobra.Command{
		Use: "milk", Short: "Milk", SuggestFor: []string{"squeeze"},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	milk.Flags().StringP("output", "o", "", strings.Repeat("where the milk goes ", 20))
	milk.Flags().String("overflow", "", "where the rest goes")
	milk.Flags().String("secret", "", "")
	if err := milk.Flags().MarkHidden("secret"); err != nil {
		return err
	}
	sell := &cobra.Command{
		Use: "sell", Short: "Sell", Args: OneOf("thing"), RunE: func(*cobra.Command, []string) error { return nil },
	}
	cow := &cobra.Command{Use: "cow", Run: func(*cobra.Command, []string) {}}
	sell.AddCommand(cow, &cobra.Command{Use: "farm", Hidden: true, Run: cow.Run})
	root := Root(Streams{In: strings.NewReader(""), Out: out, Err: out}, "farm", "Keep cows", "", "",
		Group{"Every day", []*cobra.Command{milk}}, Group{"Once", []*cobra.Command{sell}})
	root.SetArgs(args)
	return root.Execute()
}

// TestMistakes: what is mistyped is named with what was meant, and is a usage error.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"mlik":             `unknown command "mlik"; did you mean "milk"?`,
		"squeeze":          `unknown command "squeeze"; did you mean "milk"?`,
		"help mlik":        `unknown command "mlik"; did you mean "milk"?`,
		"help sell cwo":    `unknown command "cwo"; did you mean "cow"?`,
		"nothing":          `unknown command "nothing"`,
		"sell":             "farm sell needs a thing; there is: cow",
		"sell cows":        `farm sell has no thing "cows"; there is: cow; did you mean "cow"?`,
		"sell pig":         `farm sell has no thing "pig"; there is: cow`,
		"milk --ouptut=x":  `unknown flag: --ouptut; did you mean "--output"?`,
		"milk --secrt x":   "unknown flag: --secrt",
		"milk --x":         "unknown flag: --x",
		"milk -x":          "unknown shorthand flag: 'x' in -x",
		"milk -verflow=x":  `unknown shorthand flag: 'v' in -verflow=x; did you mean "--overflow"?`,
		"milk -output x":   `-output is read as -o with the value "utput": write --output`,
		"milk -overflow=x": `-overflow is read as -o with the value "verflow=x": write --overflow`,
		"--milk":           `unknown flag: --milk; did you mean "farm milk"?`,
		"completion bsh": "farm completion has no shell \"bsh\"; " +
			`there is: bash, fish, powershell, zsh; did you mean "bash"?`,
		"completion bash x":     `farm completion bash takes no arguments, not "x"`,
		"milk -o":               "flag needs an argument: 'o' in -o",
		"completion fish --nod": "unknown flag: --nod",
	} {
		var out bytes.Buffer
		err := farm(&out, strings.Fields(args)...)
		var usage UsageError
		if !errors.As(err, &usage) || err.Error() != want || out.Len() > 0 {
			t.Errorf("%s: %T: %v, want %s; printed %q", args, err, err, want, out.String())
		}
	}
}

// TestHelp: help has its commands in groups, and no line is wider than a terminal.
func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"":                "\nEvery day:\n  milk        Milk\n\nOnce:\n  completion ",
		"help sell":       "\n  cow ",
		"help milk":       "      --overflow string   where the rest goes\n",
		"help completion": "  farm completion zsh\n",
		"completion":      "\n  powershell  Print the script of powershell\n",
		"milk -o utter":   "",
	} {
		var out bytes.Buffer
		if err := farm(&out, strings.Fields(args)...); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", args, err, out.String(), want)
		}
		for line := range strings.Lines(out.String()) {
			if len(line) > 101 {
				t.Errorf("%s: %d columns: %s", args, len(line), line)
			}
		}
	}
}
