package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const manLong = `man writes the manual pages of all commands into a directory, which it makes: NAME.1 for
this program, and NAME-COMMAND.1 for each of its commands. They say what --help says.`

// Man returns a command that writes manual pages.
func Man(name string) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands",
		Long:    manLong,
		Example: lines(name+" man man1", name+" man share/man/man1 && man -l share/man/man1/"+name+".1"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return Usagef("%s takes the directory to write to, such as /usr/local/share/man/man1",
					cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // people read it
		return fmt.Errorf("making the directory of manual pages: %w", err)
	}
	from := root.Name() + " " + BuildVersion()
	date := buildDate()
	for _, cmd := range available(root) {
		file := filepath.Join(dir, pageName(cmd)+".1")
		if err := os.WriteFile(file, manPage(cmd, from, date), 0o644); err != nil { //nolint:gosec // people read it
			return fmt.Errorf("writing a manual page: %w", err)
		}
	}
	return nil
}

// available are a command and all below it that people may call.
func available(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			all = append(all, available(c)...)
		}
	}
	return all
}

// buildDate is the day of the commit that the program was built of, so that two builds of it write the same pages; ""
// where it is not known.
func buildDate() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
			return at.UTC().Format(time.DateOnly)
		}
	}
	return ""
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the manual page of a command, for man(7). Help is no Markdown: what it says is taken as it stands.
func manPage(cmd *cobra.Command, from, date string) []byte {
	cmd.InitDefaultHelpFlag()
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH %q 1 %q %q %q\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", strings.ToUpper(pageName(cmd)),
		date, from, "User Commands", roff(pageName(cmd)), roff(cmd.Short), roff(cmd.UseLine()))
	if cmd.Long != "" {
		out.WriteString(".SH DESCRIPTION\n")
		paragraphs(&out, cmd.Long)
	}
	options := func(title string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		fmt.Fprintf(&out, ".SH %s\n", title)
		flags.VisitAll(func(f *pflag.Flag) { option(&out, f) })
	}
	options("OPTIONS", cmd.LocalFlags())
	options("OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		out.WriteString(".SH EXAMPLES\n")
		asItStands(&out, cmd.Example)
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			others = append(others, pageName(c))
		}
	}
	for i, name := range others {
		if i == 0 {
			out.WriteString(".SH SEE ALSO\n")
		}
		comma := " ,"
		if i == len(others)-1 {
			comma = ""
		}
		fmt.Fprintf(&out, ".BR %s (1)%s\n", roff(name), comma)
	}
	return out.Bytes()
}

func option(out *bytes.Buffer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		value = " " + value
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(out, ".TP\n.B %s\n%s\n", roff(name+value), roff(usage))
}

// paragraphs fills lines, but for those of paragraphs with an indented one: tables, lists and examples.
func paragraphs(out *bytes.Buffer, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			out.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") ||
			strings.Contains(paragraph, "\t") {
			asItStands(out, paragraph)
			continue
		}
		fmt.Fprintf(out, "%s\n", roff(paragraph))
	}
}

func asItStands(out *bytes.Buffer, text string) {
	fmt.Fprintf(out, ".nf\n%s\n.fi\n", roff(strings.ReplaceAll(strings.Trim(text, "\n"), "\t", "    ")))
}

// roff escapes what means something to roff: a backslash, a dash, which is a hyphen to it, and a dot or quote that
// begins a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
