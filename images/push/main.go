// Command push takes images from the layouts that images/build has written to a registry, with their SBOMs, and prints
// the reference and digest of each. Credentials are those of docker or podman.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var r registry
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	flags.StringVar(&r.prefix, "registry", "", "host and path, such as ghcr.io/acme")
	flags.StringVar(&r.tag, "tag", "", "tag (default: the one that the images were built with)")
	flags.BoolVar(&r.plainHTTP, "plain-http", false, "speak HTTP to a registry without TLS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.prefix == "" {
		return errors.New("no registry: make push REGISTRY=ghcr.io/acme")
	}
	if flags.NArg() == 0 {
		return errors.New("no layouts named, such as dist/images/tegen")
	}
	for _, dir := range flags.Args() {
		reference, err := r.push(ctx, dir)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(stdout, reference); err != nil {
			return err
		}
	}
	return nil
}
