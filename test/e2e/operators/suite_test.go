package operators

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	cluster *cluster.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	results []result
}

// newSuite connects to the cluster of KUBECONFIG.
func newSuite(t *testing.T) *suite {
	t.Helper()
	path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" {
		t.Fatal("set KUBECONFIG to the file of an admin of a cluster for tests: jobs are made and deleted there")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatalf("reading the kubeconfig: %v", err)
	}
	config.QPS, config.Burst = -1, -1 // no limit on the side of the client
	config.WarningHandler = rest.NoWarnings{}
	s := &suite{}
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.cluster, err = cluster.At(t.TempDir(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Discovery().ServerVersion(); err != nil {
		t.Fatalf("asking the cluster of %s for its version: %v", path, err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	return s
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

// version is what TEGEN_OPERATORS_VERSIONS says of a program that runs beside the cluster ("jobset=v0.12.0,…"), or the
// tag of the image of one that runs in it.
func (s *suite) version(p program) string {
	for entry := range strings.SplitSeq(os.Getenv("TEGEN_OPERATORS_VERSIONS"), ",") {
		if name, version, ok := strings.Cut(entry, "="); ok && name == p.log {
			return version
		}
	}
	pods, err := s.controllers(context.Background(), p)
	if err != nil || len(pods) == 0 {
		return "unknown"
	}
	_, tag, _ := strings.Cut(filepath.Base(pods[0].Spec.Containers[0].Image), ":")
	return tag
}

// logs are the last lines that the program wrote.
func (s *suite) logs(ctx context.Context, p program) string {
	const bytes = 8 << 10
	if dir := os.Getenv("TEGEN_OPERATORS_LOGS"); dir != "" {
		file := filepath.Join(dir, p.log+".log")
		text, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s ends:\n%s", file, text[max(0, len(text)-bytes):])
	}
	pods, err := s.controllers(ctx, p)
	if err != nil {
		return err.Error()
	}
	if len(pods) == 0 {
		return fmt.Sprintf("no pod has the labels %q, and TEGEN_OPERATORS_LOGS names no folder with %s.log",
			p.controller, p.log)
	}
	var all strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&all, "pod %s/%s is %s, and its log ends:\n", pod.Namespace, pod.Name, pod.Status.Phase)
		stream, err := s.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			TailLines: new(int64(60)),
		}).Stream(ctx)
		if err != nil {
			fmt.Fprintln(&all, err)
			continue
		}
		if _, err := io.Copy(&all, stream); err != nil {
			fmt.Fprintln(&all, err)
		}
		stream.Close() //nolint:errcheck // it was read
	}
	return all.String()
}
