package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/upstream"
)

const (
	// requestTimeout is for one request, poll for what follows from one; each takes some milliseconds.
	requestTimeout = 30 * time.Second
	pollInterval   = 10 * time.Millisecond
	// writers is how many requests are under way at a time, where their order does not matter.
	writers = 8
)

// server is an API server that has seen every bundle so far.
type server struct {
	*cluster.Cluster
	client      dynamic.Interface // whose warnings go to the context's collection
	mapper      meta.RESTMapper
	definitions definitions
	noCRDs      bool                 // the definitions of other projects are not on this machine
	standards   map[string]string    // by namespace: what it enforces
	going       map[string]time.Time // namespaces, by when they were deleted
	counts      counts
	skipped     map[string][]string // by reason: objects that were not applied
}

// newServer starts the control plane, with all that bundles expect of a cluster.
func newServer(t *testing.T, all []*bundle) *server {
	t.Helper()
	ctx := t.Context()
	c := cluster.Start(t, options)
	config := c.Config()
	config.WarningHandlerWithContext = collector{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		Cluster: c, client: client,
		standards: map[string]string{},
		going:     map[string]time.Time{},
		counts:    counts{cases: map[string]bool{}},
		skipped:   map[string][]string{},
	}
	s.definitions, err = definitionsFor(all)
	if s.noCRDs = errors.Is(err, upstream.ErrAbsent); err != nil && !s.noCRDs {
		t.Fatal(err)
	}
	if err := s.define(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.expect(ctx, all); err != nil {
		t.Fatal(err)
	}
	return s
}

// collector hands a response's warnings to whoever made the request.
type collector struct{}

type warningsKey struct{}

func (collector) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if warnings, ok := ctx.Value(warningsKey{}).(*[]string); ok {
		*warnings = append(*warnings, text)
	}
}

// request bounds a request, and returns what the server warns of in its answer.
func request(ctx context.Context) (context.Context, *[]string, context.CancelFunc) {
	warnings := new([]string)
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no answer within %v", requestTimeout))
	return context.WithValue(ctx, warningsKey{}, warnings), warnings, cancel
}

// inParallel calls a function for every item.
func inParallel[T any](items []T, call func(T)) {
	slots := make(chan struct{}, writers)
	var wg sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			call(item)
			<-slots
		})
	}
	wg.Wait()
}

// resource is where an object lies. An error says that the server has no such kind.
func (s *server) resource(o *object) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.client.Resource(mapping.Resource), nil
	}
	return s.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// excuse is why the server cannot have the object's kind, or nothing.
func (s *server) excuse(o *object) string {
	if reason := unserved[o.GroupVersionKind().GroupVersion()]; reason != "" {
		return reason
	}
	if s.noCRDs && s.foreign(o) {
		return upstream.ErrAbsent.Error()
	}
	return ""
}

// existing is an object as the server has it.
type existing struct {
	*object
	is *unstructured.Unstructured
}

// applyAll applies a bundle's objects in their order and returns those that the server has now.
func (s *server) applyAll(t *testing.T, b *bundle) []existing {
	t.Helper()
	ctx := t.Context()
	var applied []existing
	for _, o := range b.objects {
		_, missing := s.resource(o)
		if reason := s.excuse(o); reason != "" {
			if missing == nil {
				t.Errorf("%s: the server has the kind, although %s", o, reason)
			}
			s.skipped[reason] = append(s.skipped[reason], o.String())
			continue
		}
		is, warnings, err := s.apply(ctx, o)
		if err != nil {
			t.Errorf("%s: %v", o, err)
			continue
		}
		for _, w := range warnings {
			t.Errorf("%s: the server warns: %s", o, w)
		}
		if o.IsNamespace() {
			if is, err = s.watchOver(ctx, is, b); err != nil {
				t.Errorf("%s: %v", o, err)
				continue
			}
		}
		if isToken(is) {
			if is, err = s.awaitToken(ctx, o); err != nil {
				t.Errorf("%s: %v", o, err)
				continue
			}
		}
		applied = append(applied, existing{o, is})
		s.counts.objects++
		if s.custom(o) {
			s.counts.custom++
		}
	}
	return applied
}

// isToken says whether an object is a Secret into which Kubernetes writes the token of an account.
func isToken(o *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	return o.GetKind() == "Secret" && kind == string(corev1.SecretTypeServiceAccountToken)
}

// awaitToken returns such a Secret when it has the token: whoever reads it finds one, and an apply leaves it.
func (s *server) awaitToken(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	at, err := s.resource(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		is, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("waiting for its token: %w", err)
		}
		if token, _, _ := unstructured.NestedString(is.Object, "data", corev1.ServiceAccountTokenKey); token != "" {
			return is, nil
		}
		time.Sleep(pollInterval)
	}
}

// apply sends the text of the golden and returns the object that came of it and
// what the server warns of.
func (s *server) apply(ctx context.Context, o *object) (*unstructured.Unstructured, []string, error) {
	return s.applyAs(ctx, "tegen", o)
}

// applyAs is apply by the owner of fields. Without force, another owner of one of them is an error.
func (s *server) applyAs(ctx context.Context, owner string, o *object) (*unstructured.Unstructured, []string, error) {
	at, err := s.resource(o)
	if err != nil {
		return nil, nil, err
	}
	ctx, warnings, cancel := request(ctx)
	defer cancel()
	is, err := at.Patch(ctx, o.GetName(), types.ApplyYAMLPatchType, o.Text,
		metav1.PatchOptions{FieldManager: owner, FieldValidation: metav1.FieldValidationStrict})
	return is, *warnings, err
}

// applyAgain applies an object once more, which must change nothing.
func (s *server) applyAgain(ctx context.Context, before existing) error {
	again, _, err := s.apply(ctx, before.object)
	if err != nil {
		return err
	}
	rewritten := again.GetResourceVersion() != before.is.GetResourceVersion()
	kind := before.GroupVersionKind().GroupKind()
	if expected := slices.Contains(writtenTwice, kind); rewritten != expected {
		return fmt.Errorf("written once more: %t, want %t (-before +after):\n%s", rewritten, expected,
			cmp.Diff(before.is.Object, again.Object))
	} else if !expected {
		return nil
	}
	if diff := cmp.Diff(withoutVersion(before.is), withoutVersion(again)); diff != "" {
		return fmt.Errorf("more than the resourceVersion changes (-before +after):\n%s", diff)
	}
	third, _, err := s.apply(ctx, before.object)
	if err != nil {
		return fmt.Errorf("a third time: %w", err)
	}
	if third.GetResourceVersion() != again.GetResourceVersion() {
		return fmt.Errorf("a third time: it is written again (-before +after):\n%s",
			cmp.Diff(again.Object, third.Object))
	}
	return nil
}

func withoutVersion(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	return u.Object
}

// remove deletes what a bundle and prepare made, and returns when the server
// has none of it but the namespaces; those that prepare made stay.
func (s *server) remove(ctx context.Context, b *bundle) error {
	var mu sync.Mutex
	var errs []error
	clear := func(o *object) {
		if err := s.removeObject(ctx, o); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("deleting %s: %w", o, err))
		}
	}
	var inside, namespaces []*object
	for _, o := range b.objects {
		if o.IsNamespace() {
			namespaces = append(namespaces, o)
		} else if s.excuse(o) == "" {
			inside = append(inside, o)
		}
	}
	inParallel(inside, clear)
	errs = append(errs, s.deleteAccounts(ctx, b))
	for _, o := range namespaces {
		if err := s.deleteObject(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", o, err))
		}
		delete(s.standards, o.GetName())
		s.going[o.GetName()] = time.Now()
	}
	return errors.Join(errs...)
}

// next takes the first bundle whose namespaces are not still going: their controller gives each five seconds.
func (s *server) next(t *testing.T, all []*bundle) (*bundle, []*bundle) {
	t.Helper()
	for ; ; time.Sleep(pollInterval) {
		s.look(t)
		for i, b := range all {
			if !slices.ContainsFunc(b.objects, func(o *object) bool {
				return !s.going[o.GetNamespace()].IsZero() || o.IsNamespace() && !s.going[o.GetName()].IsZero()
			}) {
				return b, slices.Delete(all, i, i+1)
			}
		}
	}
}

// awaitGone returns when the server has none of the deleted namespaces.
func (s *server) awaitGone(t *testing.T) {
	t.Helper()
	for len(s.going) > 0 {
		s.look(t)
		time.Sleep(pollInterval)
	}
}

// look forgets the namespaces that are gone. One that stays fails the test.
func (s *server) look(t *testing.T) {
	t.Helper()
	for name, since := range s.going {
		is, err := s.Client().CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			delete(s.going, name)
		case err != nil:
			t.Fatal(err)
		case time.Since(since) > requestTimeout:
			t.Fatalf("namespace %s is not gone %v after it was deleted: %v", name, requestTimeout, is.Status)
		}
	}
}

// deleteObject asks the server to delete an object.
func (s *server) deleteObject(ctx context.Context, o *object) error {
	at, err := s.resource(o)
	if err != nil {
		return err
	}
	ctx, _, cancel := request(ctx)
	defer cancel()
	now, background := int64(0), metav1.DeletePropagationBackground
	return at.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background})
}

// removeObject deletes an object and returns when it is gone.
func (s *server) removeObject(ctx context.Context, o *object) error {
	at, err := s.resource(o)
	if err != nil {
		return err
	}
	err = s.deleteObject(ctx, o)
	ctx, _, cancel := request(ctx)
	defer cancel()
	var left *unstructured.Unstructured
	for err == nil {
		left, err = at.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err == nil {
			time.Sleep(pollInterval)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if left != nil {
		return fmt.Errorf("waiting for it to go: %w: %w; it is %v", context.Cause(ctx), err, left)
	}
	return err
}
