package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// launchCommand as the first argument makes the bench a launcher: it starts one program, waits, and prints what that
// took as JSON. A process of its own is needed because Linux counts the memory of whoever starts a program into the
// program's maximum (exec carries the peak of the memory that it replaces, and a Go child shares its parent's until
// then): started by the bench, which has parsed whole manifests, every small program would seem as large as the bench.
// A launcher stays far below any program that is measured.
const launchCommand = "launch"

// sample is what one run took.
type sample struct {
	User time.Duration // in user mode, all threads
	Wall time.Duration
	Peak int64 // bytes resident at most
}

// launch runs a program to its end, with the file output as its standard output.
func launch(ctx context.Context, env []string, output string, program []string) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, fmt.Errorf("finding the launcher: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, append([]string{launchCommand, output}, program...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var s sample
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		return s, fmt.Errorf("reading the launcher's measurement: %w", err)
	}
	return s, nil
}

// launched is the launcher's main: args are the output file and the program with its arguments.
func launched(args []string) (exitCode int) {
	s, err := runOnce(args[0], args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runOnce(output string, program []string) (sample, error) {
	file, err := os.Create(output)
	if err != nil {
		return sample{}, fmt.Errorf("making the output: %w", err)
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = file, os.Stderr // files both: no pipe, no copying
	start := time.Now()
	err = cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return sample{}, err
	}
	if err := file.Close(); err != nil {
		return sample{}, fmt.Errorf("closing the output: %w", err)
	}
	peak, err := peakMemory(cmd.ProcessState)
	return sample{User: cmd.ProcessState.UserTime(), Wall: wall, Peak: peak}, err
}
