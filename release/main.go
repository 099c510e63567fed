// Command release makes all files of a release of the commit that is checked out: archives of the programs, container
// images, what installs them in a cluster, SBOMs, notes, provenance and checksums. Two clones of one commit give the
// same bytes. It publishes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

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
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.root, err = program.Root(ctx); err != nil {
		return err
	}
	return o.make(ctx, stdout)
}

// platforms are those that archives are made for.
func platforms() []platform {
	var all []platform
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range images.Architectures() {
			all = append(all, platform{system, arch})
		}
	}
	return all
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.out, "o", "dist/release", "folder of the release")
	flags.StringVar(&o.version, "version", "", "tag of the commit (default: a snapshot of it, or its tag's release)")
	flags.StringVar(&o.registry, "registry", "ghcr.io/tegen-dev", "host and path that its images will be pushed to")
	wanted := flags.String("platforms", "", "platforms, such as linux/amd64, with commas between them (default all)")
	only := flags.String("images", "", "images, with commas between them (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown arguments %q", flags.Args())
	}
	var err error
	if o.images, err = images.Named(*only); err != nil {
		return o, err
	}
	if _, err := images.Reference(o.registry, o.images[0].Name, "dev"); err != nil {
		return o, err
	}
	if o.platforms, err = choose(*wanted); err != nil {
		return o, err
	}
	if o.version != "" && (len(o.platforms) < len(platforms()) || len(o.images) < len(images.All())) {
		return o, fmt.Errorf("the release %s must have all platforms and images: leave -platforms and -images out, or "+
			"leave the version out for a snapshot", o.version)
	}
	return o, nil
}

// choose finds the named platforms, all without names.
func choose(names string) ([]platform, error) {
	all := platforms()
	if names == "" {
		return all, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(names, ",") {
		n := slices.IndexFunc(all, func(p platform) bool { return p.String() == name })
		if n < 0 {
			return nil, fmt.Errorf("there is no release for %q: there are %s", name, words(all))
		}
		chosen = append(chosen, all[n])
	}
	if !slices.ContainsFunc(chosen, func(p platform) bool { return p.system == "linux" }) {
		return nil, errors.New("a release has images, which are Linux's: name linux/amd64 or linux/arm64 too")
	}
	return chosen, nil
}

func words(all []platform) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}
