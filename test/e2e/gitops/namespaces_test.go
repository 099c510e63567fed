package gitops

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// severalNamespaces: jobs of one tree may be in several namespaces, which nobody makes but a person.
func severalNamespaces(p *place) {
	other := p.namespace + "-2"
	p.job("resnet")
	p.job("bert")
	p.jobs["bert"] = strings.ReplaceAll(p.jobs["bert"], "namespace: "+p.namespace, "namespace: "+other)
	p.commit("Train resnet and bert")
	t := p.generate("namespaces")
	p.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := p.client.CoreV1().Namespaces().Delete(ctx, other, metav1.DeleteOptions{}); err != nil {
			p.Error(err)
		}
	})
	t.of("resnet").synced()
	p.running(2)
	bert := t.of("bert")
	bert.namespace = other
	bert.says(fmt.Sprintf("namespaces %q not found", other))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}
	if _, err := p.client.CoreV1().Namespaces().Create(p.Context(), namespace, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	bert.mended()
	bert.running(2)
}
