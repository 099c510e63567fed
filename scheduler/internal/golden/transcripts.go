package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Transcripts plays the .txt files of testdata, each as a test of its name, and compares each with what play makes of
// it. A transcript begins with the reason why it is there.
func Transcripts(t *testing.T, play func(t *testing.T, text string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	transcripts := Open(t, "testdata")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# reason: ") {
				t.Errorf("%s does not begin with its reason", file)
			}
			transcripts.Compare(t, filepath.Base(file), []byte(play(t, string(text))))
		})
	}
}

// Play carries out the commands of a transcript, a line each, and returns the transcript with their answers, which are
// indented by two spaces; those that it has are left out. Empty lines and comments stay as they are.
func Play(transcript string, do func(command string) (answers []string)) string {
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if command, _, _ := strings.Cut(line, "#"); strings.TrimSpace(command) != "" {
			for _, answer := range do(command) {
				out.WriteString("  " + answer + "\n")
			}
		}
	}
	return out.String()
}
