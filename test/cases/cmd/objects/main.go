// Command objects writes the objects that golden/objects.txt lists below a directory, each to a file of its own, so
// that two versions of tegen can be compared. It runs in the root of the repository.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/test/cases"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: objects DIR")
	}
	all, err := cases.All(".")
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.InFull() {
			continue
		}
		text, err := c.Render(".")
		if err != nil {
			return err
		}
		objects, err := golden.Objects(text)
		if err != nil {
			return err
		}
		dir := filepath.Join(args[0], c.Fixture, c.Overlay)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, o := range objects {
			file := filepath.Join(dir, fmt.Sprintf("%s.%s.%s.yaml", o.Kind, o.Namespace, o.Name))
			if err := os.WriteFile(file, []byte(o.Text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
