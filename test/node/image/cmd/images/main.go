// Images writes the images of tests on a real node as archives, and prints a line for each: its path and the name under
// which it is imported.
//
//	go run ./test/node/image/cmd/images [-dir DIR] [image ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tegen-dev/tegen/test/node/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := flag.String("dir", "", "the `folder` of archives (by default one in the user's cache)")
	flag.Parse()
	if err := run(ctx, os.Stdout, os.Stderr, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, progress io.Writer, dir string, images []string) error {
	if dir == "" {
		var err error
		if dir, err = image.CacheDir(); err != nil {
			return err
		}
	}
	archives, err := image.Build(ctx, progress, dir, images...)
	for _, a := range archives {
		if _, err := fmt.Fprintln(out, a.Path, a.Reference); err != nil {
			return err
		}
	}
	return err
}
