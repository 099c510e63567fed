// Command build compiles the programs of this repository and writes their images: for each an OCI layout with all
// platforms and their SBOMs, and an archive a platform for container engines. It prints digests and sizes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/program"
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
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	out := flags.String("o", "dist/images", "folder of layouts and archives")
	registry := flags.String("registry", "", "host and path that archives name their images by (default none)")
	tag := flags.String("tag", "", "tag (default: the version, or dev)")
	only := flags.String("images", "", "images, with commas between them (default all)")
	architectures := flags.String("architectures", strings.Join(images.Architectures(), ","), "architectures of Linux")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown arguments %q", flags.Args())
	}
	chosen, err := images.Named(*only)
	if err != nil {
		return err
	}
	// Before anything is compiled, whatever the tag will be.
	if _, err := images.Reference(*registry, chosen[0].Name, cmp.Or(*tag, "dev")); err != nil {
		return err
	}
	o := images.Options{Architectures: strings.Split(*architectures, ",")}
	for _, arch := range o.Architectures {
		if !slices.Contains(images.Architectures(), arch) {
			return fmt.Errorf("no images are made for %q: there are %s", arch,
				strings.Join(images.Architectures(), " and "))
		}
	}
	if o.Root, err = program.Root(ctx); err != nil {
		return err
	}
	if o.Created, err = sourceDate(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	for _, i := range chosen {
		b, err := i.Build(ctx, o)
		if err != nil {
			return err
		}
		if *tag == "" {
			*tag = b.Tag()
		}
		reference, err := images.Reference(*registry, i.Name, *tag)
		if err != nil {
			return err
		}
		if err := b.Write(*out, reference); err != nil {
			return err
		}
		if err := report(stdout, filepath.Join(*out, i.Name), reference.String(), b); err != nil {
			return err
		}
		if err := b.Check(); err != nil {
			return err
		}
	}
	return nil
}

// sourceDate reads what reproducible builds say the time is: https://reproducible-builds.org/specs/source-date-epoch.
func sourceDate(seconds string) (time.Time, error) {
	if seconds == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err == nil && n < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q must be seconds since 1970: %w", seconds, err)
	}
	return time.Unix(n, 0), nil
}

// report prints the image and what its platforms take in a registry.
func report(stdout io.Writer, dir, reference string, b *images.Built) error {
	digest, err := b.Index.Digest()
	if err != nil {
		return err
	}
	var sizes []string
	for _, p := range b.Platforms {
		sizes = append(sizes, fmt.Sprintf("%s %.1f MB", p.Architecture, float64(p.Size)/1e6))
	}
	_, err = fmt.Fprintf(stdout, "%s@%s %s (%s)\n", reference, digest, dir, strings.Join(sizes, ", "))
	if err == nil && b.Version == "" {
		// No reason to stop: it is what somebody tries out.
		_, err = fmt.Fprintf(stdout, "  of no known commit: there is no .git, or this is a worktree, which the go "+
			"command cannot read; release from a clone\n")
	}
	return err
}
