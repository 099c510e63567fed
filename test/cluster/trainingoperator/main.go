//go:build ignore

// Command trainingoperator is the training operator's controller of PyTorchJobs, with the address of its health as its
// argument. It has no webhook, which refuses and writes nothing, and whose certificate the operator looks for in a
// folder that all processes of a machine would share. It is built by its name under operators.mod.
package main

import (
	"log"
	"os"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(health string) error {
	ctrl.SetLogger(zap.New())
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubeflowv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	kubeconfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme: scheme, HealthProbeBindAddress: health, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	reconciler := pytorch.NewReconciler(m, common.GenNonGangSchedulerSetupFunc())
	if err := reconciler.SetupWithManager(m, 1); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
