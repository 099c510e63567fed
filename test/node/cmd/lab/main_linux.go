// Command lab runs a Kubernetes cluster with a real node on this machine, around a command or until it is interrupted,
// and leaves the machine as it was.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/node"
	"github.com/tegen-dev/tegen/test/node/image"
)

// programs are those that the lab itself runs; the control plane has its own.
var programs = []string{cluster.Kubelet, cluster.KubeProxy, cluster.CoreDNS, cluster.Kubectl}

func main() {
	ctx := context.Background()
	var status int
	var err error
	switch {
	// The lab's own executable, started again inside namespaces.
	case len(os.Args) == 3 && os.Args[1] == node.InsideArg:
		status, err = node.Inside(ctx, os.Args[2], os.Stderr)
	case len(os.Args) == 3 && os.Args[1] == node.NodeArg:
		err = node.NodeInit(os.Args[2])
	default:
		err = command(&status).ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func command(status *int) *cobra.Command {
	var build, keep bool
	var shipped string
	cmd := &cobra.Command{
		Use:   "lab [flags] [-- COMMAND [ARG...]]",
		Short: "Run a Kubernetes cluster with a real node on this machine",
		Long: `Run a control plane, containerd, a kubelet, kube-proxy and CoreDNS in namespaces of their
own, and in them the command, or wait for an interrupt. The command finds the cluster by
KUBECONFIG, and the lab by ` + node.LabEnv + `. It has no network but the lab's. Its exit status is lab's.

Needs root on Linux, the packages that test/node/setup.sh installs, and the archives that make
images writes: nodes import them as they are.`,
		Example: `  make images ARCHITECTURES=$(go env GOARCH) && go run ./test/node/cmd/lab
  go run ./test/node/cmd/lab -- kubectl get nodes
  go run ./test/node/cmd/lab --build    # build programs and test images, with progress, and start nothing`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			spec, err := prepare(cmd, shipped)
			if err != nil || build {
				return errors.Join(err, os.RemoveAll(spec.Dir))
			}
			spec.Command = args
			*status, err = node.Run(cmd.Context(), spec, cmd.ErrOrStderr())
			switch {
			case keep:
				cmd.PrintErrln("the lab's folder is kept:", spec.Dir)
				return err
			case err != nil || *status == 1 || *status == 2: // the command's, of go test among others
				cmd.PrintErrln("logs are kept in", spec.Dir)
				return errors.Join(err, node.KeepLogs(spec.Dir))
			}
			return errors.Join(err, os.RemoveAll(spec.Dir))
		},
	}
	cmd.Flags().BoolVar(&build, "build", false, "only build what the lab needs")
	cmd.Flags().StringVar(&shipped, "images", "dist/images", "folder that make images has written to")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the lab's folder")
	return cmd
}

// prepare builds what is missing, where there is a network, and makes the lab's folder.
func prepare(cmd *cobra.Command, shipped string) (spec node.Spec, err error) {
	spec.Programs = map[string]string{}
	if os.Geteuid() != 0 {
		return spec, errors.New("starting a lab: this needs root, for namespaces, mounts and containers")
	}
	if spec.Shipped, err = image.Shipped(shipped); err != nil {
		return spec, err
	}
	// Run has its own way with signals.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	progress := cmd.ErrOrStderr()
	if err := cluster.Build(ctx, progress, append(cluster.RealNodes(), programs...)...); err != nil {
		return spec, err
	}
	for _, name := range programs {
		path, err := cluster.Program(ctx, progress, name)
		if err != nil {
			return spec, err
		}
		spec.Programs[name] = path
	}
	cache, err := image.CacheDir()
	if err != nil {
		return spec, err
	}
	archives, err := image.Build(ctx, progress, cache)
	if err != nil {
		return spec, err
	}
	if spec.Template, err = node.Template(ctx, progress, cache, archives); err != nil {
		return spec, err
	}
	// Sockets are in it, whose names may have 107 bytes.
	if spec.Dir, err = os.MkdirTemp(node.TempDir(), "tegen-lab-"); err != nil {
		return spec, fmt.Errorf("making the lab's folder: %w", err)
	}
	return spec, nil
}
