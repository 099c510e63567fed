package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Failure is why workers failed for good: the first failure, as it mostly causes the later ones.
type Failure struct {
	Rank, LocalRank, Pid int
	Code                 int       // exit code; -n for signal n
	At                   time.Time // of its error file, else of its exit
	File                 string    // the error file that it wrote; "" if none
	Message              string    // from that file
	Others               int       // workers that failed besides
	Err                  error     // why workers could not be started; the fields above but At are empty then

	report map[string]any // the error file
	exit   time.Time
}

func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) Error() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	text := fmt.Sprintf("worker %d (local rank %d, pid %d) %s", f.Rank, f.LocalRank, f.Pid, status{code: f.Code})
	if f.Others > 0 {
		text += fmt.Sprintf(", and %d more failed after it", f.Others)
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	if f.File != "" {
		text += " (" + f.File + ")"
	}
	return text
}

// ExitCode is torchrun's for a failed job, whatever the workers' codes.
func (f *Failure) ExitCode() int { return 1 }

// failure is the first one of a group that has been stopped. A worker that we stopped counts only if it had reported an
// error before: it may have hung on its way out, while others failed for lack of it.
func (g *group) failure() *Failure {
	var first *Failure
	others := -1
	for _, w := range g.workers {
		f := w.failure()
		stopped := w.status.at.After(g.stopped)
		if w.status.code == 0 || stopped && (f.report == nil || !f.At.Before(g.stopped.Truncate(time.Second))) {
			continue
		}
		others++
		if first == nil || f.before(first) {
			first = f
		}
	}
	if first != nil {
		first.Others = others
	}
	return first
}

// before compares whole seconds, as torch writes no more, and then the exits.
func (f *Failure) before(other *Failure) bool {
	if at, than := f.At.Unix(), other.At.Unix(); at != than {
		return at < than
	}
	return f.exit.Before(other.exit)
}

// failure is how this worker failed, by its own report if it left one.
func (w *worker) failure() *Failure {
	f := &Failure{
		Rank: w.rank, LocalRank: w.local, Pid: w.cmd.Process.Pid, Code: w.status.code, At: w.status.at,
		exit: w.status.at,
	}
	f.read(w.errorFile)
	return f
}

// read takes what an error file says, if there is one.
func (f *Failure) read(file string) {
	data, err := os.ReadFile(file)
	var report map[string]any
	if err != nil || json.Unmarshal(data, &report) != nil || report == nil {
		return
	}
	f.File, f.report = file, report
	switch m := report["message"].(type) { // torch/distributed/elastic/multiprocessing/errors/error_handler.py
	case string:
		f.Message = m
	case map[string]any:
		f.Message, _ = m["message"].(string)
		extra, _ := m["extraInfo"].(map[string]any)
		if at, ok := seconds(extra["timestamp"]); ok {
			f.At = at
		}
	}
}

// seconds reads seconds since 1970, which torch writes as text.
func seconds(value any) (at time.Time, ok bool) {
	var n float64
	switch v := value.(type) {
	case string:
		var err error
		if n, err = strconv.ParseFloat(v, 64); err != nil {
			return at, false
		}
	case float64:
		n = v
	default:
		return at, false
	}
	return time.UnixMicro(int64(n * 1e6)), true
}

// write records the failure for the process that started the agent: the worker's own report with the exit code added,
// or one in its form.
func (f *Failure) write(file string) error {
	if file == "" {
		return nil
	}
	report := f.report
	if report == nil {
		stamp := strconv.FormatInt(f.At.Unix(), 10)
		report = map[string]any{"message": map[string]any{
			"message":   f.Error(),
			"extraInfo": map[string]any{"timestamp": stamp},
		}}
	}
	if m, ok := report["message"].(map[string]any); ok && f.Err == nil {
		m["errorCode"] = f.Code
	}
	data, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("writing error file %s: %w", file, err)
	}
	return writeWhole(file, data)
}

// writeWhole writes a file so that a reader finds all of it or none.
func writeWhole(file string, data []byte) (err error) {
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing error file: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".error-")
	if err == nil {
		_, err = temp.Write(data)
		err = errors.Join(err, temp.Close())
		if err == nil {
			err = os.Rename(temp.Name(), file)
		}
		if err != nil {
			if rmErr := os.Remove(temp.Name()); !errors.Is(rmErr, fs.ErrNotExist) {
				err = errors.Join(err, rmErr)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("writing error file %s: %w", file, err)
	}
	return nil
}
