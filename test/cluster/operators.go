package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/test/ports"
)

// operatorNamespace has the accounts of the operators.
const operatorNamespace = "operators"

// operator is a controller of custom resources that StartOperators starts.
type operator struct {
	crds string // the files of its CustomResourceDefinitions, in its module
	// start runs it, with its webhooks, and returns when it is ready. Its log is that of a program of its name.
	start func(ctx context.Context, c *Cluster) error
}

// operators are all of them, by the program's name, which packages has too.
var operators = map[string]operator{
	JobSet:  {"config/components/crd/bases/*.yaml", startJobSet},
	Trainer: {"manifests/base/crds/*.yaml", startTrainer},
	TrainingOperator: {
		"manifests/base/crds/kubeflow.org_pytorchjobs.yaml", startTrainingOperator(TrainingOperator, "PyTorchJob"),
	},
	TrainingOperator18: {
		"manifests/base/crds/kubeflow.org_mxjobs.yaml", startTrainingOperator(TrainingOperator18, "MXJob"),
	},
}

// Operators are the names of those that StartOperators knows.
func Operators() []string { return slices.Sorted(maps.Keys(operators)) }

// CheckOperators refuses a name that is none of Operators, and one that is there twice.
func CheckOperators(names ...string) error {
	for i, name := range names {
		if _, ok := operators[name]; !ok {
			return fmt.Errorf("operator %q is unknown; known are %s", name, strings.Join(Operators(), ", "))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("operator %s is named twice", name)
		}
	}
	return nil
}

// StartOperators builds those that are missing, applies their CustomResourceDefinitions, and starts them with their
// webhooks, in the order of the names. Each is a cluster-admin of its own. Down stops them.
func (c *Cluster) StartOperators(ctx context.Context, progress io.Writer, names ...string) error {
	if err := CheckOperators(names...); err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	if err := ensure(ctx, progress, names...); err != nil {
		return err
	}
	for _, name := range names {
		begin := time.Now()
		if err := c.ApplyCRDs(ctx, name, operators[name].crds); err != nil {
			return err
		}
		if err := operators[name].start(ctx, c); err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
		say(progress, "%s ready after %.1f s", name, time.Since(begin).Seconds())
	}
	return nil
}

// runOperator runs a program with an account of its own and waits until health, an address, says that it is ready.
func (c *Cluster) runOperator(ctx context.Context, name, health string, env []string, args ...string) error {
	kubeconfig, err := c.Account(ctx, operatorNamespace, name)
	if err != nil {
		return fmt.Errorf("making its account: %w", err)
	}
	program, err := Program(ctx, io.Discard, name)
	if err != nil {
		return err
	}
	p, err := c.RunWith(ctx, append(env, "KUBECONFIG="+kubeconfig), name, program, args...)
	if err != nil {
		return err
	}
	return p.Ready(ctx, "http://"+health+"/readyz")
}

// freeAddresses are n free addresses of the loopback interface.
func freeAddresses(n int) ([]string, error) {
	free, err := ports.Free(n)
	var all []string
	for _, port := range free {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return all, err
}
