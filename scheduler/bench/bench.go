package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// bench is a control plane, and the schedulers that take turns on it.
type bench struct {
	*cluster.Cluster
	contenders map[string]contender
	nodes      int // that there are
	progress   *log.Logger
	insecure   *http.Client
}

// open starts the control plane: etcd, the API server, and KWOK for as long as it makes nodes. There are no
// controllers, which would watch every pod on the same cores, and take no part in placing one.
func open(ctx context.Context, opts options, progress *log.Logger) (*bench, error) {
	args := []string{
		"--no-controllers", "--api=" + gangAPI,
		// The last one's finalizers wait for a controller; the others are off in a cluster without controllers.
		"--arg=kube-apiserver=--disable-admission-plugins=TaintNodesByCondition,ServiceAccount,PodGroupProtection",
		"--arg=kube-apiserver=--delete-collection-workers=16", // pods go between trials, and one by one take minutes
	}
	for _, gate := range gangGates {
		args = append(args, "--gate="+gate)
	}
	c, err := cluster.Up(ctx, progress.Writer(), args...)
	if err != nil {
		return nil, err
	}
	b := &bench{
		Cluster: c, progress: progress,
		// The schedulers make their certificates at their start; only health and counts are read.
		insecure: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}
	var spoken []string
	for _, r := range opts.rivals {
		if !slices.Contains(spoken, r.dialect) {
			spoken = append(spoken, r.dialect)
		}
	}
	if err = define(ctx, c, spoken...); err == nil {
		b.contenders, err = contenders(ctx, c, opts)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error { return errors.Join(b.Err(), b.Down()) }

// grow adds nodes until there are so many, and lets KWOK sleep again: a pod that it played would cost the API server as
// many writes as its placement.
func (b *bench) grow(ctx context.Context, nodes int) error {
	start := time.Now()
	if err := b.Signal("kwok", syscall.SIGCONT); err != nil {
		return err
	}
	more := cluster.NodeOptions{Count: nodes - b.nodes, GPUs: gpusPerNode, Racks: nodesPerRack}
	if _, err := b.AddNodes(ctx, more); err != nil {
		return fmt.Errorf("adding nodes: %w", err)
	}
	b.progress.Printf("%d nodes after %.0f s", nodes, time.Since(start).Seconds())
	b.nodes = nodes
	return b.Signal("kwok", syscall.SIGSTOP)
}
