package operators

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// records are the pods that the cluster's DNS leads to, by its specification, by HOST.SERVICE.NAMESPACE and
// SERVICE.NAMESPACE: the endpoints that are ready, or are published all the same.
type records map[string][]string

func (p *place) records(namespace string) (records, error) {
	found := records{}
	services, err := p.client.CoreV1().Services(namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		slicesOf, err := p.client.DiscoveryV1().EndpointSlices(namespace).List(p.Context(), metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name,
		})
		if err != nil {
			return nil, err
		}
		for _, slice := range slicesOf.Items {
			found.add(&s, slice.Endpoints)
		}
	}
	return found, nil
}

func (r records) add(s *corev1.Service, endpoints []discoveryv1.Endpoint) {
	name := s.Name + "." + s.Namespace
	for _, e := range endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready || e.TargetRef == nil {
			continue
		}
		r[name] = append(r[name], e.TargetRef.Name)
		if e.Hostname != nil && s.Spec.ClusterIP == corev1.ClusterIPNone {
			host := *e.Hostname + "." + name
			r[host] = append(r[host], e.TargetRef.Name)
		}
	}
}

// reachable checks that the address of each pod leads to it alone, and that every name that one of them dials leads to
// a pod.
func (p *place) reachable(pods []foretoldPod) error {
	all := map[string]records{}
	for _, pod := range pods {
		if all[pod.Namespace] == nil {
			found, err := p.records(pod.Namespace)
			if err != nil {
				return err
			}
			all[pod.Namespace] = found
		}
		of := all[pod.Namespace]
		address, _, ok := strings.Cut(pod.want.Address, ".svc.")
		if ok && !slices.Equal(of[address], []string{pod.Name}) {
			return fmt.Errorf("%s leads to %v, and the plan says to %s", address, of[address], pod.Name)
		}
		for _, name := range dialled(&pod.Pod) {
			if len(of[name]) == 0 {
				return fmt.Errorf("pod %s dials %s, which leads to no pod", pod.Name, name)
			}
		}
	}
	return nil
}

var (
	// word is what may be a host, and a port, in a value or an argument. A word with a variable in it has no match.
	word = regexp.MustCompile(`[^\s,=/"';@()\[\]]+`)
	host = regexp.MustCompile(`^([a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*)\.?(:\d+)?$`)
)

// dialled are the names in the pod's namespace that its containers' variables and arguments have, as records have them:
// those with .svc, those with a port, and what variables that end in _ADDR or _URI hold.
func dialled(pod *corev1.Pod) (names []string) {
	note := func(text string, address bool) {
		for _, w := range word.FindAllString(text, -1) {
			match := host.FindStringSubmatch(w)
			if match == nil || match[1] == "localhost" {
				continue
			}
			name, _, full := strings.Cut(match[1]+".", ".svc.")
			name = strings.TrimSuffix(name, ".")
			if full && !strings.HasSuffix(name, "."+pod.Namespace) || !full && match[2] == "" && !address {
				continue // in another namespace, or no name of a host
			}
			if !full {
				name = strings.TrimSuffix(name, "."+pod.Namespace) + "." + pod.Namespace
			}
			names = append(names, name)
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, v := range c.Env {
			note(v.Value, strings.HasSuffix(v.Name, "_ADDR") || strings.HasSuffix(v.Name, "_URI"))
		}
		for _, text := range slices.Concat(c.Command, c.Args) {
			note(text, false)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestDialled(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Namespace = "training"
	pod.Spec.InitContainers = []corev1.Container{{Args: []string{"--wait", "a-0.a.training.svc:2379,b.training.svc"}}}
	pod.Spec.Containers = []corev1.Container{{
		Env: []corev1.EnvVar{
			{Name: "PET_RDZV_ENDPOINT", Value: "c-0.c.training.svc.cluster.local:29400"},
			{Name: "ETCD", Value: "http://d.training.svc.cluster.local.:2379"},
			{Name: "MASTER_ADDR", Value: "e-worker-0"},
			{Name: "DMLC_PS_ROOT_URI", Value: "f.training"},
			{Name: "OTHER", Value: "etcd.infra.svc.cluster.local:2379"},
			{Name: "POD", Value: "$(POD_NAME).g.training.svc:1"},
			{Name: "HERE", Value: "localhost:1 127.0.0.1:2"},
			{Name: "IMAGE", Value: "not.a-host"},
		},
		Command: []string{"horovodrun", "-H", "h-0.h.training.svc:4,i:1"},
	}}
	want := []string{
		"a-0.a.training", "b.training", "c-0.c.training", "d.training", "e-worker-0.training", "f.training",
		"h-0.h.training", "i.training",
	}
	if diff := cmp.Diff(want, dialled(pod)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
