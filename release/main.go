// Command release makes the container images of this repository, pushes them, or makes all files of a release of the
// commit that is checked out: archives of the programs, images, manifests, SBOMs, notes, provenance and checksums. Two
// clones of one commit give the same bytes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // removes temporary files
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are what the flags define.
type options struct {
	root, dir     string // of the repository, and for what is made
	registry, tag string
	plainHTTP     bool
	systems       []images.System
	images        []images.Image
	created       time.Time // of images, default: the time of the commit
	progress      *log.Logger
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o := options{root: ".", progress: log.New(stdout, "", 0)}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "dist/release", "folder of the images or of the release")
	flags.StringVar(&o.registry, "registry", "", "host and path of the images' names, such as ghcr.io/acme")
	flags.StringVar(&o.tag, "tag", "", "tag of images, or of a release's commit (default: the version)")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "push to a registry without TLS")
	only := flags.String("images", "", "images (default all)")
	platforms := flags.String("platforms", "", "platforms, such as linux/amd64 (default all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	action, known := map[string]func(context.Context) error{
		"images": o.buildImages, "push": o.pushImages, "release": o.makeRelease,
	}[flags.Arg(0)]
	if !known || flags.NArg() > 1 {
		return fmt.Errorf("unknown arguments %q: want images, push or release", flags.Args())
	}
	if err := o.parse(*only, *platforms, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if flags.Arg(0) == "release" && o.tag != "" &&
		(len(o.systems) < len(images.Systems()) || len(o.images) < len(images.All())) {
		return fmt.Errorf("the release %s must have all platforms and images: leave -platforms and -images out, or "+
			"leave the tag out for a snapshot", o.tag)
	}
	return action(ctx)
}

// parse reads the flags that have a list, and checks the others before anything is compiled.
func (o *options) parse(only, platforms, epoch string) (err error) {
	if o.images, err = images.Choose("image", only, images.All()); err != nil {
		return err
	}
	if o.systems, err = images.Choose("platform", platforms, images.Systems()); err != nil {
		return err
	}
	if !slices.ContainsFunc(o.systems, func(s images.System) bool { return s.OS == "linux" }) {
		return errors.New("images are for Linux: name linux/amd64 or linux/arm64 too")
	}
	if epoch != "" { // https://reproducible-builds.org/specs/source-date-epoch
		n, err := strconv.ParseUint(epoch, 10, 40)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH must be seconds since 1970: %w", err)
		}
		o.created = time.Unix(int64(n), 0)
	}
	_, err = images.Reference(o.registry, o.images[0].Name, cmp.Or(o.tag, "dev"))
	return err
}
