package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

const installLong = `install copies this program to a path, whole or not at all, for anybody to run.

It brings 'tegen-rendezvous proxy' into containers of other images: an init
container installs it into a volume that the workers' container mounts too.`

func newInstallCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copy this program to a path",
		Long:  installLong,
		Example: "  # Into a volume that both containers mount\n" +
			"  tegen-rendezvous install /tegen/bin/tegen-rendezvous\n\n" +
			"  # For this user\n  tegen-rendezvous install ~/.local/bin/tegen-rendezvous",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("%s takes the path to copy to, not %q", cmd.CommandPath(), args)
			}
			return nil
		},
		ValidArgsFunction: anyFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := install(args[0]); err != nil {
				return fmt.Errorf("installing %s: %w", args[0], err)
			}
			return nil
		},
	}
}

// install copies the running program. What it is copied over may be running: the new file takes the old one's name once
// it is complete.
func install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Chmod(0o755), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}
