// Command up starts the control plane that the tests use, for a person: in go flags, out come variables for a
// shell on standard output, progress on standard error. It runs until it is interrupted and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

type flags struct {
	nodes, gpus int
	gates       []string
	apis        []string
	operators   []string
	noScheduler bool
	kubeconfig  string
	dir         string
	build       bool
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a Kubernetes control plane on this machine until interrupted",
		Long: `Start etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK on free
ports of the loopback interface, without root, and stop them on an interrupt. Nodes and the
pods on them are played by KWOK: no container runs.

A running pod ends when it is annotated ` + cluster.OutcomeAnnotation + `=` + cluster.OutcomeSucceeded +
			` or =` + cluster.OutcomeFailed + `.`,
		Example: `  go run ./test/cluster/cmd/up --nodes 4 --gpus 8
  go run ./test/cluster/cmd/up --gate GenericWorkload=true --gate GangScheduling=true --api scheduling.k8s.io/v1alpha2
  go run ./test/cluster/cmd/up --no-scheduler --kubeconfig /tmp/kubeconfig
  go run ./test/cluster/cmd/up --nodes 0 --operators jobset    # for make e2e-operators
  go run ./test/cluster/cmd/up --build    # build the programs, with progress, and start nothing
  go run ./test/cluster/cmd/up --build kubectl argocd    # the same with these programs`,
		Args: func(_ *cobra.Command, programs []string) error {
			if len(programs) > 0 && !f.build {
				return fmt.Errorf("programs are named with --build alone, got %q", programs)
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, programs []string) error {
			if f.build {
				return cluster.Build(cmd.Context(), cmd.ErrOrStderr(), programs...)
			}
			return run(cmd, f)
		},
	}
	cmd.Flags().IntVar(&f.nodes, "nodes", 4, "number of nodes")
	cmd.Flags().IntVar(&f.gpus, "gpus", 8, "nvidia.com/gpu of each node")
	cmd.Flags().StringSliceVar(&f.gates, "gate", nil, "a feature gate, as Name=true or Name=false; may be repeated")
	cmd.Flags().StringSliceVar(&f.apis, "api", nil, "a group/version to serve besides the default ones; "+
		"may be repeated")
	cmd.Flags().StringSliceVar(&f.operators, "operators", nil, "operators to start besides, in this order: "+
		strings.Join(cluster.Operators(), ", "))
	cmd.Flags().BoolVar(&f.noScheduler, "no-scheduler", false, "leave the stock kube-scheduler out")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "write the kubeconfig to this file too")
	cmd.Flags().StringVar(&f.dir, "dir", "", "keep logs and data in this folder (default a temporary one)")
	cmd.Flags().BoolVar(&f.build, "build", false, "only build the programs of the control plane")
	return cmd
}

func run(cmd *cobra.Command, f flags) (err error) {
	ctx := cmd.Context()
	gates, err := parseGates(f.gates)
	if err != nil {
		return err
	}
	if err := cluster.CheckOperators(f.operators...); err != nil {
		return fmt.Errorf("reading --operators: %w", err)
	}
	c, err := cluster.Up(ctx, cluster.Options{Gates: gates, APIs: f.apis, NoScheduler: f.noScheduler, Dir: f.dir},
		cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() {
		cmd.PrintErrln("stopping")
		err = errors.Join(err, c.Down())
	}()
	if _, err := c.Nodes(ctx, f.nodes, f.gpus); err != nil {
		return err
	}
	if err := c.StartOperators(ctx, cmd.ErrOrStderr(), f.operators...); err != nil {
		return err
	}
	kubeconfig := c.Kubeconfig()
	if f.kubeconfig != "" {
		if kubeconfig, err = copyKubeconfig(kubeconfig, f.kubeconfig); err != nil {
			return err
		}
	}
	cmd.PrintErrf("%d nodes with %d GPUs each; logs are in %s\nrun this elsewhere, and press ^C here to stop:\n",
		f.nodes, f.gpus, filepath.Join(c.Dir(), "logs"))
	text, err := exports(ctx, c, kubeconfig, f.operators)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
		return fmt.Errorf("saying where the kubeconfig is: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-c.Broken():
		return c.Err()
	}
}

// exports are lines for a shell: the kubeconfig, and what make e2e-operators wants to know of operators.
func exports(ctx context.Context, c *cluster.Cluster, kubeconfig string, operators []string) (string, error) {
	text := fmt.Sprintf("export KUBECONFIG=%s\n", kubeconfig)
	if len(operators) == 0 {
		return text, nil
	}
	var versions []string
	for _, name := range operators {
		version, err := cluster.Version(ctx, name)
		if err != nil {
			return "", err
		}
		versions = append(versions, name+"="+version)
	}
	return text + fmt.Sprintf("export TEGEN_OPERATORS_LOGS=%s\nexport TEGEN_OPERATORS_VERSIONS=%s\n",
		filepath.Join(c.Dir(), "logs"), strings.Join(versions, ",")), nil
}

// copyKubeconfig copies it for the user's eyes only and returns where it is.
func copyKubeconfig(from, to string) (string, error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return "", fmt.Errorf("copying the kubeconfig: %w", err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return "", fmt.Errorf("copying the kubeconfig: %w", err)
	}
	path, err := filepath.Abs(to)
	if err != nil {
		return "", fmt.Errorf("copying the kubeconfig: %w", err)
	}
	return path, nil
}

// parseGates reads Name=true and Name=false.
func parseGates(args []string) (map[string]bool, error) {
	gates := map[string]bool{}
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		value, err := strconv.ParseBool(text)
		if name == "" || err != nil {
			return nil, fmt.Errorf("reading --gate %q: want Name=true or Name=false", arg)
		}
		gates[name] = value
	}
	return gates, nil
}
