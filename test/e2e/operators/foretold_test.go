package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/plan"
	tegen "github.com/tegen-dev/tegen/schema"
)

// foretold waits until all pods run that 'tegen plan' foretells of a fixture, and no other in their namespaces, and
// returns them in the plan's order. Each has the name, the owner, the role, the labels and the ports of the plan, and
// its address leads to it alone; every name that a container dials leads to a pod. The golden file of the fixture's
// name was applied and started before, and there are nodes for it.
func (p *place) foretold(fixture string) (pods []corev1.Pod) {
	p.Helper()
	file := filepath.Join(root, "fixtures/valid", fixture+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	jobs, err := tegen.Load([]tegen.Source{{Name: file, Data: text}})
	if err != nil {
		p.Fatal(err)
	}
	var plans []*plan.Job
	for _, j := range jobs {
		plans = append(plans, plan.Of(j, generators.Generate(j)))
	}
	var found []foretoldPod
	p.eventually("the pods that the plan of "+fixture+" foretells", func() error {
		found, err = p.match(plans)
		return err
	})
	for _, f := range found {
		p.compare(f)
		pods = append(pods, f.Pod)
	}
	p.eventually("the names of pods", func() error { return p.reachable(found) })
	return pods
}

// eachForetold applies golden files that are not suspended, one after the other, and finds their pods foretold.
func (p *place) eachForetold(fixtures ...string) {
	p.Helper()
	for _, fixture := range fixtures {
		objects := p.golden(fixture)
		p.apply(objects...)
		p.foretold(fixture)
		p.delete(p.Context(), objects...)
		for _, namespace := range p.entered {
			p.gone(namespace)
		}
	}
}

// foretoldPod is a pod with its place in a plan.
type foretoldPod struct {
	corev1.Pod
	job  *plan.Job
	set  *plan.PodSet
	want plan.Pod
}

// match finds a running pod for every place in the plans.
func (p *place) match(plans []*plan.Job) (found []foretoldPod, err error) {
	left := map[string][]corev1.Pod{}
	for _, job := range plans {
		if left[job.Namespace], err = p.pods(job.Namespace, ""); err != nil {
			return nil, err
		}
	}
	for _, job := range plans {
		for _, set := range job.PodSets {
			for _, want := range set.Pods {
				pods := left[job.Namespace]
				i := slices.IndexFunc(pods, func(pod corev1.Pod) bool {
					return isNamed(pod.Name, want.Name) && roleOf(&pod) == set.Role
				})
				if i < 0 {
					return nil, fmt.Errorf("no %s is named %s; there are %s", set.Role, want.Name, podNames(pods))
				}
				if pods[i].Status.Phase != corev1.PodRunning {
					return nil, fmt.Errorf("%s is %s", pods[i].Name, pods[i].Status.Phase)
				}
				found = append(found, foretoldPod{pods[i], job, set, want})
				left[job.Namespace] = slices.Delete(pods, i, i+1)
			}
		}
	}
	for _, pods := range left {
		if len(pods) > 0 {
			return nil, fmt.Errorf("the plan does not have %s", podNames(pods))
		}
	}
	return found, nil
}

// compare holds a pod against its place.
func (p *place) compare(f foretoldPod) {
	p.Helper()
	if key, value, _ := strings.Cut(f.job.Selector, "="); f.Labels[key] != value {
		p.Errorf("pod %s: the plan's selector %s does not select it: %v", f.Name, f.job.Selector, f.Labels)
	}
	ports := []plan.Port{}
	for _, c := range slices.Concat(f.Spec.InitContainers, f.Spec.Containers) {
		for _, port := range c.Ports {
			ports = append(ports, plan.Port{Name: port.Name, Port: port.ContainerPort, Protocol: string(port.Protocol)})
		}
	}
	if diff := cmp.Diff(f.set.Ports, ports); diff != "" {
		p.Errorf("pod %s: ports (-plan +pod):\n%s", f.Name, diff)
	}
	owners := p.owners(&f.Pod)
	if f.set.Owner == "Pod" && len(owners) > 0 || f.set.Owner != "Pod" && !slices.Contains(owners, f.set.Owner) {
		p.Errorf("pod %s: it comes of %v, and the plan says %s", f.Name, owners, f.set.Owner)
	}
	made := func(job string) bool { return slices.Contains(owners, "Job/"+job) }
	if len(f.set.Jobs) > 0 && !slices.ContainsFunc(f.set.Jobs, made) {
		p.Errorf("pod %s: it comes of %v, and the plan says of the Jobs %v", f.Name, owners, f.set.Jobs)
	}
}

// owners are the objects that a pod comes of, its controller first, as a plan calls them: each as Kind/name, and as
// Kind.group/name.
func (p *place) owners(pod *corev1.Pod) (names []string) {
	p.Helper()
	owner := metav1.GetControllerOf(pod)
	if owner == nil && len(pod.OwnerReferences) > 0 { // as DLRover's master says of its workers
		owner = &pod.OwnerReferences[0]
	}
	for owner != nil {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(owner.APIVersion)
		o.SetKind(owner.Kind)
		o.SetNamespace(pod.Namespace)
		o.SetName(owner.Name)
		names = append(names, owner.Kind+"/"+owner.Name, o.GroupVersionKind().GroupKind().String()+"/"+owner.Name)
		owner = metav1.GetControllerOf(p.live(o))
	}
	return names
}

// letters are those of names that Kubernetes makes up.
const letters = "[bcdfghjklmnpqrstvwxz2456789]"

// isNamed says whether a plan means a name: a * stands for letters that are unknown beforehand.
func isNamed(name, want string) bool {
	pattern := regexp.QuoteMeta(want)
	pattern = strings.Replace(pattern, `-\*-\*`, "-"+letters+"{6,10}-"+letters+"{5}", 1)
	pattern = strings.Replace(pattern, `-\*`, "-"+letters+"{5}", 1)
	return regexp.MustCompile("^" + pattern + "$").MatchString(name)
}

// roleOf is a pod's role in the words of a plan.
func roleOf(pod *corev1.Pod) string {
	if role := pod.Labels["app.kubernetes.io/component"]; role != "" {
		return role
	}
	return "pod"
}

func podNames(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "none"
	}
	var names []string
	for _, pod := range pods {
		names = append(names, fmt.Sprintf("%s (%s)", pod.Name, roleOf(&pod)))
	}
	return strings.Join(names, ", ")
}
