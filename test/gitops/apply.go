package gitops

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/test/cluster"
)

const (
	// patience is for one sync: seconds for a job, minutes for hundreds of them on a machine that also compiles.
	patience = 8 * time.Minute
	poll     = 250 * time.Millisecond
)

// eventually waits until check has no complaint.
func eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	var last error
	for {
		err := check()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && last != nil {
			err = last // a request that the deadline ends says nothing about what is waited for
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(poll):
		}
	}
}

// conditionOf is a condition; of empty strings where there is none.
func conditionOf(o *unstructured.Unstructured, of string) (status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range all {
		c, _ := entry.(map[string]any)
		if c["type"] == of {
			text := func(key string) string { value, _ := c[key].(string); return value }
			return text("status"), text("reason"), text("message")
		}
	}
	return "", "", ""
}

// field is a string of an object's fields; "" where there is none.
func field(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

// remove deletes an object as kubectl does, with what it owns, and waits until its finalizers have let it go.
func remove(ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace, name string) error {
	client := c.Dynamic().Resource(gvr).Namespace(namespace)
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if err := client.Delete(ctx, name, options); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return eventually(ctx, gvr.Resource+" "+name+" to go", func() error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errNotYet
		}
		return err
	})
}

func memory(processes map[string]*cluster.Process) (map[string]int, error) {
	all := map[string]int{}
	for name, p := range processes {
		mib, err := residentMemory(p.Pid())
		if err != nil {
			return nil, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		all[name] = mib
	}
	return all, nil
}
