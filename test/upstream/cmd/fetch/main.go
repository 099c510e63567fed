// Command fetch brings the CustomResourceDefinitions of other projects that tests evaluate by onto this machine, as
// test/upstream/lock.yaml pins them. It runs in the repository's root and says on standard error what it fetched.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/test/upstream"
)

// patience is for all downloads together: 90 MB of modules at most.
const patience = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, patience)
	err := upstream.Fetch(ctx, os.Stderr, ".")
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "all CRDs of other projects are here, with the digests of test/upstream/lock.yaml")
}
