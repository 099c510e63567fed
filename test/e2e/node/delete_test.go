package node

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/names"
)

// deletions are the commands that docs/remove.md deletes a job with, for this one.
func deletions(t *testing.T, name, namespace string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/remove.md")
	if err != nil {
		t.Fatal(err)
	}
	replacer := strings.NewReplacer("=resnet", "="+name, "=training", "="+namespace, " training ", " "+namespace+" ")
	for _, m := range regexp.MustCompile(`(?m)^kubectl (delete [^#\n]+ -l \S+)`).FindAllStringSubmatch(string(text),
		-1) {
		all = append(all, strings.Fields(replacer.Replace(m[1])))
	}
	if len(all) == 0 {
		t.Fatal("docs/remove.md does not say how a job is deleted")
	}
	return all
}

// object is one of the cluster's, by its kind.
type object struct {
	name     string // Kind/name
	instance string
	home     string // namespace of its job, of objects in no namespace
	owners   []string
}

// everything lists all objects of a namespace, or those in none, of every kind that the cluster serves. Events, which
// say what was, are left out.
func (w *world) everything(ctx context.Context, namespace string) (all []object, err error) {
	lists, err := w.client.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("asking the cluster what it serves: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading a group and version: %w", err)
		}
		for _, r := range list.APIResources {
			if r.Namespaced != (namespace != "") || r.Kind == "Event" || !slices.Contains(r.Verbs, "list") ||
				!slices.Contains(r.Verbs, "delete") {
				continue
			}
			found, err := w.metadata.Resource(gv.WithResource(r.Name)).Namespace(namespace).
				List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for _, o := range found.Items {
				of := object{
					name: r.Kind + "/" + o.Name, instance: o.Labels[instance],
					home: o.Labels[names.LabelNamespace],
				}
				for _, owner := range o.OwnerReferences {
					of.owners = append(of.owners, owner.Kind+"/"+owner.Name)
				}
				all = append(all, of)
			}
		}
	}
	return all, nil
}

// deleteByLabel deletes the job as docs/remove.md says, and returns when nothing is left of it.
func (j *testJob) deleteByLabel(within time.Duration) {
	j.t.Helper()
	claims, err := j.client.CoreV1().PersistentVolumeClaims(j.namespace).List(j.t.Context(),
		metav1.ListOptions{LabelSelector: instance + "=" + j.name})
	if err != nil {
		j.t.Fatalf("listing the claims of %s: %v", j.name, err)
	}
	began := time.Now()
	for _, args := range deletions(j.t, j.name, j.namespace) {
		j.kubectl(j.t, args...)
	}
	eventually(j.t, "nothing to be left of "+j.name, within, func() error {
		left, err := j.left(claims.Items)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return err
	})
	j.deleted = true
	j.took("kubectl delete by label until nothing is left", began, time.Now())
}

// left is what is there of the job: whatever has its label, whatever its namespace did not hold before the first job
// and is of no other, and the volumes that were made for its claims, which have neither.
func (j *testJob) left(claims []corev1.PersistentVolumeClaim) (left []string, err error) {
	ctx := j.t.Context()
	there, err := j.everything(ctx, j.namespace)
	if err != nil {
		return nil, err
	}
	outside, err := j.everything(ctx, "")
	if err != nil {
		return nil, err
	}
	volumes, err := j.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	for _, v := range volumes.Items {
		if slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool {
			return v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID
		}) {
			left = append(left, "PersistentVolume/"+v.Name)
		}
	}
	j.guard.Lock()
	defer j.guard.Unlock()
	for _, o := range there {
		if o.instance == j.name || !j.before[j.namespace][o.name] && !ofOther(o, j.name, j.jobs[j.namespace]) {
			left = append(left, o.name)
		}
	}
	for _, o := range outside {
		if o.instance == j.name && (o.home == "" || o.home == j.namespace) {
			left = append(left, o.name)
		}
	}
	slices.Sort(left)
	return left, nil
}

// ofOther says whether an object is of another job than this: by its label, or its own or its owner's name, which
// begins with the longest name of a job.
func ofOther(o object, job string, jobs []string) bool {
	if o.instance != "" {
		return o.instance != job
	}
	for _, id := range append([]string{o.name}, o.owners...) {
		_, name, _ := strings.Cut(id, "/")
		for _, other := range jobs {
			if other != job && (name == other || strings.HasPrefix(name, other+"-")) &&
				(len(other) > len(job) || !strings.HasPrefix(name, job+"-")) {
				return true
			}
		}
	}
	return false
}
