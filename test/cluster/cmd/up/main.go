// Command up starts the control plane that the tests use, for a person: in go flags, out come variables for a
// shell on standard output, progress on standard error. It runs until it is interrupted, or until a command has ended,
// and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	noControl   bool
	args        []string
	kubeconfig  string
	dir         string
	build       bool
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "up [flags] [-- COMMAND [ARG...]]",
		Short: "Start a Kubernetes control plane on this machine until interrupted",
		Long: `Start etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK on free
ports of the loopback interface, without root, and stop them on an interrupt. Nodes and the
pods on them are played by KWOK: no container runs.

A command runs with the variables that are printed otherwise, and everything stops when it
ends; up fails where it does.

A running pod ends when it is annotated ` + cluster.OutcomeAnnotation + `=` + cluster.OutcomeSucceeded +
			` or =` + cluster.OutcomeFailed + `.`,
		Example: `  go run ./test/cluster/cmd/up --nodes 4 --gpus 8
  go run ./test/cluster/cmd/up --gate GenericWorkload=true --gate GangScheduling=true --api scheduling.k8s.io/v1alpha2
  go run ./test/cluster/cmd/up --no-scheduler --kubeconfig /tmp/kubeconfig
  go run ./test/cluster/cmd/up --nodes 0 --operators jobset -- make e2e-operators
  go run ./test/cluster/cmd/up --build    # build the programs, with progress, and start nothing
  go run ./test/cluster/cmd/up --build kubectl argocd    # the same with these programs`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !f.build && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("programs are named with --build alone, and a command behind --, got %q", args)
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.build {
				return build(cmd, args)
			}
			return run(cmd, f, args)
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
	cmd.Flags().BoolVar(&f.noControl, "no-controllers", false, "leave kube-controller-manager out")
	cmd.Flags().StringArrayVar(&f.args, "arg", nil, "a flag of a program in place of its own, as "+
		"PROGRAM=--FLAG=VALUE; may be repeated")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "write the kubeconfig to this file too")
	cmd.Flags().StringVar(&f.dir, "dir", "", "keep logs and data in this folder (default a temporary one)")
	cmd.Flags().BoolVar(&f.build, "build", false, "only build the programs of the control plane")
	return cmd
}

func run(cmd *cobra.Command, f flags, command []string) (err error) {
	ctx := cmd.Context()
	gates, err := parseGates(f.gates)
	if err != nil {
		return err
	}
	if err := cluster.CheckOperators(f.operators...); err != nil {
		return fmt.Errorf("reading --operators: %w", err)
	}
	args, err := parseArgs(f.args)
	if err != nil {
		return err
	}
	c, err := cluster.Up(ctx, cluster.Options{
		Gates: gates, APIs: f.apis, NoScheduler: f.noScheduler, NoControllers: f.noControl, Args: args, Dir: f.dir,
	}, cmd.ErrOrStderr())
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
	variables, err := variables(ctx, c, kubeconfig, f.operators)
	if err != nil {
		return err
	}
	cmd.PrintErrf("%d nodes with %d GPUs each; logs are in %s\n", f.nodes, f.gpus, filepath.Join(c.Dir(), "logs"))
	if len(command) > 0 {
		return errors.Join(runCommand(cmd, command, variables), c.Err())
	}
	cmd.PrintErrln("run this elsewhere, and press ^C here to stop:")
	for _, v := range variables {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "export %s\n", v); err != nil {
			return fmt.Errorf("saying where the kubeconfig is: %w", err)
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case <-c.Broken():
		return c.Err()
	}
}

// build builds programs and prints the paths of those that are named.
func build(cmd *cobra.Command, names []string) error {
	if err := cluster.Build(cmd.Context(), cmd.ErrOrStderr(), names...); err != nil {
		return err
	}
	for _, name := range names {
		path, err := cluster.Program(cmd.Context(), cmd.ErrOrStderr(), name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), path); err != nil {
			return fmt.Errorf("printing the path of %s: %w", name, err)
		}
	}
	return nil
}

// variables are, as NAME=value, the kubeconfig and what make e2e-operators wants to know of operators.
func variables(ctx context.Context, c *cluster.Cluster, kubeconfig string, operators []string) ([]string, error) {
	all := []string{"KUBECONFIG=" + kubeconfig}
	if len(operators) == 0 {
		return all, nil
	}
	var versions []string
	for _, name := range operators {
		version, err := cluster.Version(ctx, name)
		if err != nil {
			return nil, err
		}
		versions = append(versions, name+"="+version)
	}
	return append(all, "TEGEN_OPERATORS_LOGS="+filepath.Join(c.Dir(), "logs"),
		"TEGEN_OPERATORS_VERSIONS="+strings.Join(versions, ",")), nil
}

// runCommand runs a command until it ends by itself. An interrupt on the terminal reaches it as it reaches us, who wait
// for it: it cleans up in a cluster that still runs.
func runCommand(cmd *cobra.Command, command, variables []string) error {
	child := exec.Command(command[0], command[1:]...)
	child.Env = append(os.Environ(), variables...)
	child.Stdout, child.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := child.Start(); err != nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	defer signal.Stop(terminated)
	ended := make(chan error)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-terminated:
			_ = child.Process.Signal(s) // nobody is there to be told where it has ended meanwhile
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("running %s: %w", strings.Join(command, " "), err)
			}
			return nil
		}
	}
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

// parseArgs reads PROGRAM=--FLAG=VALUE.
func parseArgs(texts []string) (map[string][]string, error) {
	args := map[string][]string{}
	for _, text := range texts {
		program, arg, _ := strings.Cut(text, "=")
		if !strings.HasPrefix(arg, "--") {
			return nil, fmt.Errorf("reading --arg %q: want PROGRAM=--FLAG=VALUE", text)
		}
		args[program] = append(args[program], arg)
	}
	return args, nil
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
