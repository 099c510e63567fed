package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/tegen-dev/tegen/rendezvous/server"
)

// spareHeap is bytes that are allocated and never touched, so that they take no memory, but let as many more bytes of
// garbage come together before they are collected. The heap is a few megabytes, and else a fifth of the processor's
// time goes into that; a higher GOGC would do the same to a heap of half a gigabyte.
const spareHeap = 32 << 20

// Run serves until a signal comes, or serving fails. The options are complete.
func Run(o Options, stderr io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	return run(o, stderr, signals)
}

func run(o Options, stderr io.Writer, signals chan os.Signal) error {
	etcdLevel := zap.NewAtomicLevelAt(zap.WarnLevel) // etcd says much that is of no concern
	log, zapLog, err := o.logs(stderr, etcdLevel)
	if err != nil {
		return err
	}
	config, err := o.Config(log, zapLog)
	if err != nil {
		return err
	}
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	config.Quiet = func() { etcdLevel.SetLevel(zap.DPanicLevel) }
	s, err := start(config, signals)
	if err != nil {
		return err
	}
	select {
	case err = <-s.Failed():
		log.Error("serving failed", "error", err)
	case sig := <-signals:
		log.Info("shutting down", "signal", sig.String(), "timeout", o.DrainTimeout.String())
	}
	return errors.Join(err, shutdown(s, o.DrainTimeout, signals, log))
}

// start gives up where a signal comes first, and leaves the signal in the channel.
func start(config server.Config, signals chan os.Signal) (*server.Server, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	watching, started := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case sig := <-signals:
			signals <- sig
			cancel(fmt.Errorf("received %s while starting", sig))
		case <-started:
		}
	}()
	s, err := server.Start(ctx, config)
	close(started)
	<-watching
	return s, err
}

var (
	errDrained = errors.New("drain timeout exceeded")
	errAgain   = errors.New("second signal received")
)

// shutdown waits for runs. That they have not ended in time is what the timeout is for, and no error.
func shutdown(s *server.Server, limit time.Duration, signals <-chan os.Signal, log *slog.Logger) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errDrained)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-signals:
		cut(errAgain)
		err = <-done
	}
	if errors.Is(err, errDrained) || errors.Is(err, errAgain) {
		log.Warn("runs were cut off", "error", err)
		return nil
	}
	if err == nil {
		log.Info("shutdown complete")
	}
	return err
}
