//go:build unix

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// report is an error file as torch's @record writes it.
func report(text string, at int64) string {
	const form = `{"message": {"message": %q, "extraInfo": {"py_callstack": "…", "timestamp": "%d"}}}`
	return fmt.Sprintf(form, text, at)
}

var errorParts = map[string]func(){
	// The two report failures of which the second in rank was the first in time.
	"two report": func() {
		local, at := os.Getenv("LOCAL_RANK"), time.Now().Unix()
		if local == "1" {
			at -= 100
		}
		if err := os.WriteFile(os.Getenv("TORCHELASTIC_ERROR_FILE"), []byte(report("ValueError: of "+local, at)),
			0o600); err != nil {
			say(err)
		}
		if local == "1" {
			time.Sleep(time.Minute) // hangs, and is stopped
		}
		other := filepath.Join(filepath.Dir(os.Getenv("TORCHELASTIC_ERROR_FILE")), "..", "1", "error.json")
		for text := ""; !strings.HasSuffix(text, "}}}"); time.Sleep(10 * time.Millisecond) {
			data, _ := os.ReadFile(other)
			text = string(data)
		}
		os.Exit(7)
	},
	"report when stopped": func() {
		if os.Getenv("LOCAL_RANK") == "0" {
			time.Sleep(200 * time.Millisecond)
			os.Exit(5)
		}
		<-terminated()
		at := time.Now().Unix()
		_ = os.WriteFile(os.Getenv("TORCHELASTIC_ERROR_FILE"), []byte(report("SignalException: 15", at)), 0o600)
		os.Exit(1)
	},
}

func readReport(t *testing.T, file string) (got map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFirstErrorFileIsHandedOn(t *testing.T) {
	cfg, _, _ := config(t, &fake{}, 2, "two report")
	cfg.ErrorFile = filepath.Join(t.TempDir(), "made", "error.json")
	err := runAgent(t, cfg)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Rank != 5 || failure.Message != "ValueError: of 1" || failure.Code != -15 ||
		failure.Others != 1 {
		t.Errorf("got %+v, want worker 5, which failed first", err)
	}
	message, _ := readReport(t, cfg.ErrorFile)["message"].(map[string]any)
	extra, _ := message["extraInfo"].(map[string]any)
	delete(extra, "timestamp")
	want := map[string]any{
		"message": "ValueError: of 1", "errorCode": -15.0,
		"extraInfo": map[string]any{"py_callstack": "…"},
	}
	if diff := cmp.Diff(want, message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsOfStoppedWorkersAreNotTheFirst(t *testing.T) {
	cfg, _, _ := config(t, &fake{}, 2, "report when stopped")
	cfg.ErrorFile = filepath.Join(t.TempDir(), "error.json")
	err := runAgent(t, cfg)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Rank != 4 || failure.Code != 5 {
		t.Errorf("got %v, want worker 4", err)
	}
	message, _ := readReport(t, cfg.ErrorFile)["message"].(map[string]any)
	if text, _ := message["message"].(string); !strings.HasPrefix(text, "worker 4 (local rank 0, pid ") ||
		!strings.HasSuffix(text, ") exited with code 5") {
		t.Errorf("the report says %q", text)
	}
	if message["errorCode"] != 5.0 {
		t.Errorf("errorCode %v, want 5", message["errorCode"])
	}
}

func TestReportsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		text, message string
		seconds       int64
	}{
		"of torch":       {report("E: x", 900), "E: x", 900},
		"a plain text":   {`{"message": "x"}`, "x", 1000},
		"a number":       {`{"message": {"message": "x", "extraInfo": {"timestamp": 12}}}`, "x", 12},
		"no time":        {`{"message": {"message": "x", "extraInfo": {"timestamp": "soon"}}}`, "x", 1000},
		"other types":    {`{"message": {"message": 5, "extraInfo": []}}`, "", 1000},
		"a list":         {`[]`, "", 1000},
		"nothing":        {`null`, "", 1000},
		"broken":         {`{"message": `, "", 1000},
		"empty":          {``, "", 1000},
		"without either": {`{}`, "", 1000},
	} {
		file := filepath.Join(dir, "error.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &Failure{At: at}
		f.read(file)
		if f.Message != c.message || f.At.Unix() != c.seconds {
			t.Errorf("%s: message %q at %d, want %q at %d", name, f.Message, f.At.Unix(), c.message, c.seconds)
		}
	}
}
