//go:build ignore

// Command trainingoperator is the training operator of Kubeflow with the kinds that it is asked for:
//
//	trainingoperator HEALTH WEBHOOKS FOLDER KIND...
//
// HEALTH and WEBHOOKS are addresses, FOLDER has the certificate of the second. The operator's own main makes a
// certificate by itself, and looks for it in a folder that all processes of a machine would share. It is built by its
// name under operators.mod, and under trainingoperator18.mod of the last release that has MXJobs.
package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	if len(os.Args) < 5 {
		log.Fatal("usage: trainingoperator HEALTH WEBHOOKS FOLDER KIND...")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}

func run(health, hooks, folder string, kinds []string) error {
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
	host, text, err := net.SplitHostPort(hooks)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme: scheme, HealthProbeBindAddress: health, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: host, Port: port, CertDir: folder}),
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if controllers.SupportedSchemeReconciler[kind] == nil {
			return fmt.Errorf("%s is no kind of this release", kind)
		}
		if err := controllers.SupportedSchemeReconciler[kind](m, common.GenNonGangSchedulerSetupFunc(), 1); err != nil {
			return err
		}
		if err := webhooks.SupportedSchemeWebhook[kind](m); err != nil {
			return err
		}
	}
	if err := m.AddReadyzCheck("readyz", m.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
