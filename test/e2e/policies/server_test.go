package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/upstream"
)

const (
	root     = "../../.."
	patience = time.Minute
	poll     = 100 * time.Millisecond
	atOnce   = 6
	eachKind = 40 // objects, for each policy
)

// lab is an API server that knows all kinds of workloads.
type lab struct {
	*cluster.Cluster
	client  dynamic.Interface
	missing map[string]bool // kinds whose definitions are not on this machine
}

func start(t *testing.T) *lab {
	t.Helper()
	if os.Getenv("TEGEN_E2E") != "1" {
		t.Skip("starts a control plane: set TEGEN_E2E=1, as make e2e does")
	}
	c := cluster.Start(t, cluster.Options{NoScheduler: true})
	config := c.Config()
	config.WarningHandlerWithContext = collector{}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{c, client, map[string]bool{}}
	l.define(t)
	return l
}

// define makes the definitions of the workloads' kinds.
func (l *lab) define(t *testing.T) {
	t.Helper()
	for _, w := range custom() {
		l.missing[w.apiVersion+" "+w.kind] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "overlays/crds/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	others, err := upstream.Files(root)
	if err != nil && !errors.Is(err, upstream.ErrAbsent) {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	for _, file := range append(files, others...) {
		if _, aside := upstream.SetAside[filepath.Base(file)]; !aside {
			found = append(found, l.definitionsIn(t, file)...)
		}
	}
	if err := l.Define(t.Context(), found...); err != nil {
		t.Fatal(err)
	}
}

// definitionsIn are those of a file that are missing.
func (l *lab) definitionsIn(t *testing.T, file string) (found []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read(file, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		crd, ok := o.(*unstructured.Unstructured)
		if !ok || crd.GetAPIVersion() != "apiextensions.k8s.io/v1" {
			continue
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			name, _ := v.(map[string]any)
			if key := fmt.Sprintf("%s/%s %s", group, name["name"], kind); l.missing[key] {
				delete(l.missing, key)
				found = append(found, crd)
			}
		}
	}
	return found
}

// collector hands a response's warnings to whoever made the request.
type collector struct{}

type warningsKey struct{}

func (collector) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if to, ok := ctx.Value(warningsKey{}).(*[]string); ok {
		*to = append(*to, text)
	}
}

// namespace makes a namespace with the accounts of the pods.
func (l *lab) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"a", "default"} {
		_, err := l.Client().CoreV1().ServiceAccounts(name).Create(t.Context(), &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: account},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// inForce is the message of a validation that always fails, by which a response shows that a policy is in force.
const inForce = "in force"

// installed is an exported policy on the server, whose messages are the numbers of its validations.
type installed struct {
	*fuzzed
	of        *admissionv1.ValidatingAdmissionPolicy
	rules     map[int]string
	namespace string
}

// install makes the policies of an export that match a resource's kinds; the others stay out.
func (l *lab) install(t *testing.T, f *fuzzed, namespace string) (all []installed) {
	t.Helper()
	l.namespace(t, namespace)
	o := options
	o.Name, o.Namespaces = namespace, []string{namespace}
	exported, bindings := f.exported(t, o)
	for _, p := range exported {
		p.Name = namespace // a response has room for few long names
		sent := p.DeepCopy()
		for i := range sent.Spec.Validations {
			sent.Spec.Validations[i].Message = strconv.Itoa(i)
		}
		sent.Spec.Validations = append(sent.Spec.Validations, admissionv1.Validation{
			Expression: "false", Message: inForce,
		})
		if _, err := l.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), sent,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		all = append(all, installed{f, p, f.rules(p.Spec.Validations), namespace})
	}
	for _, b := range bindings {
		binding, _ := b.(*admissionv1.ValidatingAdmissionPolicyBinding)
		binding.Name, binding.Spec.PolicyName = namespace, namespace
		api := l.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		if _, err := api.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// violated asks the server. ok is false where it refuses the object for another reason.
func (l *lab) violated(t *testing.T, p installed, o map[string]any) (out map[string]bool, ok bool) {
	t.Helper()
	u := &unstructured.Unstructured{Object: o}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	end := time.Now().Add(patience)
	for {
		var warnings []string
		ctx := context.WithValue(t.Context(), warningsKey{}, &warnings)
		_, err := l.client.Resource(gvr).Namespace(p.namespace).Create(ctx, u, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll},
		})
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
			return nil, false
		case err != nil:
			t.Errorf("%s: %v", u.GetKind(), err)
			return nil, false
		}
		if out, ok := p.read(t, warnings); ok {
			return out, true
		}
		if time.Now().After(end) {
			t.Errorf("the policy is not in force within %v: %v", patience, warnings)
			return nil, false
		}
		time.Sleep(poll)
	}
}

// read are the rules that warnings name; ok is false if the policy was not in force.
func (p installed) read(t *testing.T, warnings []string) (out map[string]bool, ok bool) {
	out = map[string]bool{}
	for _, w := range warnings {
		text, ours := strings.CutPrefix(w, fmt.Sprintf(
			"Validation failed for ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s': ", p.of.Name))
		n, err := strconv.Atoi(text)
		switch {
		case !ours:
		case text == inForce:
			ok = true
		case err == nil:
			if rule, compared := p.rules[n]; compared {
				out[rule] = true
			}
		default: // an expression failed, which denies
			i := slices.IndexFunc(p.of.Spec.Validations, func(v admissionv1.Validation) bool {
				return strings.Contains(text, "'"+v.Expression+"'")
			})
			if i < 0 {
				t.Errorf("which rule is this? %s", w)
				continue
			}
			if rule, compared := p.rules[i]; compared {
				out[rule] = true
			}
		}
	}
	return out, ok
}

// tally counts verdicts.
type tally struct {
	sync.Mutex
	objects, invalid, verdicts, violations int
	elsewhere                              int // objects that violate the same rules at other positions
	rules                                  map[string]bool
}

// compare sends objects to the policy and compares its verdicts with those of tegen.
func (l *lab) compare(t *testing.T, p installed, objects []map[string]any, sum *tally) {
	t.Helper()
	todo := make(chan map[string]any, len(objects))
	for _, o := range objects {
		todo <- o
	}
	close(todo)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for o := range todo {
				if t.Failed() {
					return
				}
				got, ok := l.violated(t, p, o)
				sum.Lock()
				if !ok {
					sum.invalid++
					sum.Unlock()
					continue
				}
				want := p.byTegen(t, o)
				sum.objects++
				sum.verdicts += len(p.rules)
				sum.violations += len(want)
				for rule := range want {
					sum.rules[p.of.Name+" "+rule] = true
				}
				if !maps.Equal(want, got) {
					sum.elsewhere++
				}
				if !agree(want, got) {
					t.Errorf("%s", difference(t, p.fuzzed, p.of, o, want, got))
				}
				sum.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestParity: an API server's verdicts about random objects, by random policies that were exported, are those of tegen.
func TestParity(t *testing.T) {
	l := start(t)
	policies := 9
	if text := os.Getenv("TEGEN_POLICIES"); text != "" {
		var err error
		if policies, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	g := newGenerator(seedOf(t))
	sums := map[string]*tally{}
	excused := 0
	var all []installed
	for n := range policies {
		f := newPolicy(t, g, func() string { return g.file("pod", podTemplate) })
		all = append(all, l.install(t, f, fmt.Sprintf("p%d", n))...)
		excused += len(f.excused)
	}
	for _, p := range all {
		for _, w := range workloads {
			key := w.apiVersion + " " + w.kind
			if l.missing[key] {
				continue
			}
			var objects []map[string]any
			for range eachKind {
				objects = append(objects, normal(t, w.object(g, "a")))
			}
			if sums[key] == nil {
				sums[key] = &tally{rules: map[string]bool{}}
			}
			if l.compare(t, p, objects, sums[key]); t.Failed() {
				return
			}
		}
	}
	l.report(t, sums)
	t.Logf("%d of %d rules are about what the cluster sets, and not compared", excused, policies*rulesEach)
	if len(l.missing) > 0 {
		t.Skipf("the definitions of %v are not on this machine: run make crds", slices.Sorted(maps.Keys(l.missing)))
	}
}

// TestObjectParity is TestParity for rules about objects themselves.
func TestObjectParity(t *testing.T) {
	l := start(t)
	g := newGenerator(seedOf(t))
	sums := map[string]*tally{}
	for i, kind := range slices.Sorted(maps.Keys(objects)) {
		name, group, _ := strings.Cut(kind, ".")
		w := workload{"v1", name, func(g generator) map[string]any {
			o, _ := g.value(objects[kind], pick(g, 10, 40, 70), 0).(map[string]any)
			return o
		}}
		if group != "" {
			w.apiVersion, w.make = group+"/v1alpha2", withTemplates(w.make)
		}
		if l.missing[w.apiVersion+" "+w.kind] {
			continue
		}
		sums[kind] = &tally{rules: map[string]bool{}}
		for n := range 3 {
			f := newPolicy(t, g, func() string { return g.file(fmt.Sprintf("object: %q", kind), objects[kind]) })
			all := l.install(t, f, fmt.Sprintf("o%d-%d", i, n))
			var sent []map[string]any
			for range 60 {
				sent = append(sent, normal(t, w.object(g, "a")))
			}
			l.compare(t, all[0], sent, sums[kind])
		}
	}
	l.report(t, sums)
}

// withTemplates gives each job of a JobSet the pods without which it is not valid.
func withTemplates(of func(g generator) map[string]any) func(g generator) map[string]any {
	return func(g generator) map[string]any {
		o := of(g)
		jobs, _, _ := unstructured.NestedSlice(normalized(o), "spec", "replicatedJobs")
		for _, j := range jobs {
			job, _ := j.(map[string]any)
			job["template"] = object{"spec": object{"template": object{"spec": object{
				"restartPolicy": "Never", "containers": []any{object{"name": "a", "image": "a"}},
			}}}}
		}
		o["spec"].(map[string]any)["replicatedJobs"] = jobs
		return o
	}
}

func normalized(o map[string]any) map[string]any {
	out, _ := integers(o).(map[string]any)
	return out
}

func (l *lab) report(t *testing.T, sums map[string]*tally) {
	t.Helper()
	var all tally
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		s := sums[key]
		t.Logf("%-40s %6d objects (%d invalid), %7d verdicts, %6d violations, %4d rules fired, %d elsewhere", key,
			s.objects, s.invalid, s.verdicts, s.violations, len(s.rules), s.elsewhere)
		all.objects, all.verdicts = all.objects+s.objects, all.verdicts+s.verdicts
		if s.objects < s.invalid || len(s.rules) < 10 {
			t.Errorf("%s: too few objects are valid, or too few rules are violated, to tell anything", key)
		}
	}
	t.Logf("%d objects, %d verdicts, no difference", all.objects, all.verdicts)
}
