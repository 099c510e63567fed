package operators

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tegen-dev/tegen/test/cluster"
)

// suite is the cluster, and what was seen there.
type suite struct {
	ctx     context.Context // ends with an interrupt
	cluster *cluster.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	results []result
	missing []string // programs, each with what the cluster does not serve and how it is installed
}

// newSuite connects to the cluster of KUBECONFIG.
func newSuite(t *testing.T) *suite {
	t.Helper()
	path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" {
		t.Fatal("set KUBECONFIG to the file of an admin of a cluster for tests: jobs are made and deleted there")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("reading the kubeconfig: %v", err)
	}
	config.QPS, config.Burst = -1, -1 // no limit on the side of the client
	config.WarningHandler = rest.NoWarnings{}
	s := &suite{ctx: interruptible(t)}
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.cluster, err = cluster.At(t.TempDir(), path); err != nil {
		t.Fatal(err)
	}
	if err := reach(s.ctx, config); err != nil {
		t.Fatalf("the cluster of KUBECONFIG=%s does not answer: %v", path, err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	return s
}

// interruptible is a context that ends with an interrupt, so that everything is removed. A second interrupt ends the
// process at once.
func interruptible(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	t.Cleanup(stop)
	return ctx
}

// reach asks a cluster for its version, and gives up before somebody who waits does.
func reach(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = 20 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}

// absent names the first definition of the program that the cluster does not serve; "" where it serves all.
func (s *suite) absent(t *testing.T, p program) string {
	t.Helper()
	for _, definition := range p.definitions {
		name, version, _ := strings.Cut(definition, "/")
		_, group, _ := strings.Cut(name, ".")
		list, err := s.client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if apierrors.IsNotFound(err) {
			return definition
		}
		if err != nil {
			t.Fatalf("asking for %s: %v", definition, err)
		}
		served := false
		for _, r := range list.APIResources {
			served = served || r.Name+"."+group == name
		}
		if !served {
			return definition
		}
	}
	return ""
}

// on is the client for an object's kind and namespace.
func (s *suite) on(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	client := s.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Namespace(o.GetNamespace()), nil
	}
	return client, nil
}

// controllers are the pods of a program that runs in the cluster.
func (s *suite) controllers(ctx context.Context, p program) ([]corev1.Pod, error) {
	if p.controller == "" {
		return nil, nil
	}
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: p.controller})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// stated is the version that TEGEN_OPERATORS_VERSIONS ("jobset=v0.12.0,…") says of a program that runs beside the
// cluster; "" where it says nothing.
func (s *suite) stated(p program) string {
	for entry := range strings.SplitSeq(os.Getenv("TEGEN_OPERATORS_VERSIONS"), ",") {
		if name, version, ok := strings.Cut(entry, "="); ok && name == p.log {
			return version
		}
	}
	return ""
}

// version is what is stated of a program, or the tag of the image of one that runs in the cluster.
func (s *suite) version(p program) string {
	if version := s.stated(p); version != "" {
		return version
	}
	pods, err := s.controllers(context.Background(), p)
	if err != nil || len(pods) == 0 {
		return "unknown"
	}
	_, tag, _ := strings.Cut(filepath.Base(pods[0].Spec.Containers[0].Image), ":")
	return tag
}
