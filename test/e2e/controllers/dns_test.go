package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/internal/plan"
)

// zone is what a cluster's DNS publishes of a namespace, by the rules of its specification: for a headless Service an
// address for each endpoint that is ready, under the Service's name and, where the endpoint has one, its host name; for
// any other Service the Service's own. The API server says of an endpoint that is not ready, behind a Service that
// publishes those too, that it is.
type zone struct {
	hosts    map[string][]string    // pods, by full name of a host
	services map[string][]string    // pods, by full name of a Service
	ports    map[string][]plan.Port // of Services with ports, by full name
	unready  int                    // endpoints that serve nothing
}

func (w *world) zone(t *testing.T, b *bundle) (*zone, error) {
	z := &zone{map[string][]string{}, map[string][]string{}, map[string][]plan.Port{}, 0}
	services, err := w.c.Client().CoreV1().Services(b.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=tegen"})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		if err := w.addService(t, z, &s, b.domain); err != nil {
			return nil, err
		}
	}
	for _, pods := range slices.AppendSeq(slices.Collect(maps.Values(z.hosts)), maps.Values(z.services)) {
		slices.Sort(pods)
	}
	return z, nil
}

func (w *world) addService(t *testing.T, z *zone, s *corev1.Service, domain string) error {
	name := strings.Join([]string{s.Name, s.Namespace, "svc", domain}, ".")
	for _, p := range s.Spec.Ports {
		z.ports[name] = append(z.ports[name], plan.Port{Name: p.Name, Port: p.Port, Protocol: string(p.Protocol)})
	}
	list, err := w.c.Client().DiscoveryV1().EndpointSlices(s.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name,
	})
	if err != nil {
		return err
	}
	for _, slice := range list.Items {
		// A port by a name that no pod has would be left out.
		if len(slice.Ports) != len(s.Spec.Ports) && len(slice.Endpoints) > 0 {
			return fmt.Errorf("%s: endpoints with %d of %d ports", name, len(slice.Ports), len(s.Spec.Ports))
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Serving != nil && !*e.Conditions.Serving {
				z.unready++
			}
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			z.services[name] = append(z.services[name], e.TargetRef.Name)
			if e.Hostname != nil && s.Spec.ClusterIP == corev1.ClusterIPNone {
				z.hosts[*e.Hostname+"."+name] = append(z.hosts[*e.Hostname+"."+name], e.TargetRef.Name)
			}
		}
	}
	return nil
}

// checkAddresses holds the addresses of a plan against the records that the cluster's DNS would have: every pod's name
// leads to it and to no other pod, every Service is there with its ports and a pod behind it, and there are no more.
func (w *world) checkAddresses(t *testing.T, b *bundle, pods []member, c *counts) {
	t.Helper()
	hosts, services := map[string][]string{}, map[string][]plan.Port{}
	for _, m := range pods {
		if m.want.Address != "" && m.Spec.Subdomain != "" {
			hosts[m.want.Address] = []string{m.Name}
		}
		c.count("addresses of pods", min(1, len(m.want.Address)))
	}
	for _, j := range b.jobs {
		for _, s := range j.Services {
			services[s.Address] = s.Ports
		}
	}
	eventually(t, "the records of "+b.namespace, func() error {
		z, err := w.zone(t, b)
		if err == nil {
			err = z.leadsTo(pods)
		}
		if err != nil {
			return err
		}
		for address := range services {
			if len(z.services[address]) == 0 {
				return fmt.Errorf("%s leads to no pod", address)
			}
		}
		if diff := cmp.Diff(hosts, z.hosts) + cmp.Diff(services, z.ports); diff != "" {
			return fmt.Errorf("hosts and Services with ports (-plan +cluster):\n%s", diff)
		}
		return nil
	})
	c.count("Services", len(services))
}

// leadsTo says which pod is not found at its address.
func (z *zone) leadsTo(pods []member) error {
	for _, m := range pods {
		if m.want.Address == "" {
			continue
		}
		records := z.services
		if m.Spec.Subdomain != "" {
			records = z.hosts
		}
		if got := records[m.want.Address]; !slices.Equal(got, []string{m.Name}) {
			return fmt.Errorf("%s is %v, want %s", m.want.Address, got, m.Name)
		}
	}
	return nil
}

// checkUnready makes every pod unready, as pods are that wait for each other: they keep their addresses, and what only
// ready pods serve has none behind it.
func (w *world) checkUnready(t *testing.T, b *bundle, pods []member, c *counts) {
	t.Helper()
	const patch = `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	named := slices.DeleteFunc(slices.Clone(pods), func(m member) bool { return m.want.Address == "" })
	for _, m := range named {
		_, err := w.c.Client().CoreV1().Pods(m.Namespace).Patch(t.Context(), m.Name, types.StrategicMergePatchType,
			[]byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the records of "+b.namespace+" while no pod is ready", func() error {
		z, err := w.zone(t, b)
		if err != nil {
			return err
		}
		if z.unready < len(named) {
			return fmt.Errorf("%d of %d endpoints are known to be unready", z.unready, len(named))
		}
		return z.leadsTo(named)
	})
	c.count("addresses of unready pods", len(named))
}
