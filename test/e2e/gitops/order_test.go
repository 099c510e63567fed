package gitops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/gitops"
)

// ordered: in which order the objects of a removed job are deleted, and that nothing but data is left of it.
func ordered(p *place) {
	p.job("resnet", volume, etcd("4Gi"))
	p.job("bert")
	p.commit("Train resnet and bert")
	p.followed()
	p.running(5)
	saved, since := p.checkpoint("resnet-data"), len(p.requests())
	delete(p.jobs, "resnet")
	p.commit("Remove resnet")
	p.synced()
	p.running(2)
	p.kept(saved)

	deleted := p.changed(since, "delete")
	at := map[string]int{} // the last of a kind
	for i, r := range deleted {
		p.Logf("%s %s %s", r.At.Format("05.000"), r.Resource, r.Name)
		at[r.Resource] = i
	}
	for _, kind := range []string{"jobs", "statefulsets", "services", "serviceaccounts", "networkpolicies"} {
		if _, ok := at[kind]; !ok {
			p.Errorf("none of the %s was deleted", kind)
		}
	}
	if _, ok := at["persistentvolumeclaims"]; ok {
		p.Errorf("a claim was deleted")
	}
	switch took := deleted[len(deleted)-1].At.Sub(deleted[0].At); {
	case p.Name() == "Argo CD" && took > time.Second:
		p.Errorf("what is said to be deleted at once was within %v", took)
	case p.Name() == "Flux" && !slices.IsSorted([]int{
		at["networkpolicies"], at["jobs"], at["statefulsets"], at["services"], at["serviceaccounts"],
	}):
		p.Errorf("the order is not that of docs/gitops.md: %v", at)
	}
	p.eventually("what is left of resnet", func() error {
		want := []string{"persistentvolumeclaims resnet-data"} // that of etcd goes with its StatefulSet
		if left := p.left("resnet"); !slices.Equal(left, want) {
			return fmt.Errorf("%q, want %q", left, want)
		}
		return nil
	})
}

// changed are the successful requests of a verb since the reconciler had sent as many requests.
func (p *place) changed(since int, verbs ...string) (all gitops.Requests) {
	p.Helper()
	time.Sleep(time.Second) // what was asked for just now
	for _, r := range p.requests()[since:].In(p.namespace).Changing() {
		if slices.Contains(verbs, r.Verb) && r.Code < 300 {
			all = append(all, r)
		}
	}
	return all
}

// left are the objects of a job that are still there, also those that only a finalizer keeps.
func (p *place) left(job string) (all []string) {
	p.Helper()
	for _, kind := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	} {
		objects, err := p.lab.Dynamic().Resource(kind).Namespace(p.namespace).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			p.Fatal(err)
		}
		for _, o := range objects.Items {
			if strings.Contains(o.GetName(), job) { // a claim has no label by which kubectl would delete it
				all = append(all, kind.Resource+" "+o.GetName())
			}
		}
	}
	return all
}

// overlapped: a new image is a new Job, and neither reconciler waits for the end of the old one's pods. Suspending the
// job first, as docs/checkpoints.md says, keeps the pods of two runs apart.
func overlapped(p *place) {
	p.job("resnet", volume)
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	old, since := p.theJob(), len(p.requests())
	p.grace(old.Name, `["tegen.dev/writes-its-checkpoint"]`)
	p.job("resnet", volume, "image: registry.example/resnet:2.0")
	p.commit("Train resnet 2.0")
	if err := p.Ask(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.eventually("the new pods beside the old ones", func() error {
		if ended, runs := p.pods(); ended != 2 || runs != 2 {
			return fmt.Errorf("%d are being deleted, %d run", ended, runs)
		}
		return nil
	})
	// Not p.sync: Argo CD compares with the Job that is being deleted, so it syncs again and again until that is gone.
	p.eventually("the status meanwhile", func() error {
		status, err := p.Status(p.Context(), p.app)
		if err == nil && (status.Synced != (p.Name() == "Flux") ||
			!strings.HasSuffix(status.Revision, p.app.Repository.Head)) {
			err = fmt.Errorf("the old pods write their checkpoint, and %s says %s", p.Name(), status)
		}
		return err
	})
	p.grace(old.Name, "null")
	p.running(2)
	p.synced()
	p.made(old.Name, p.theJob().Name, p.changed(since, "create", "patch", "delete"))

	p.job("resnet", volume, "image: registry.example/resnet:2.0", "suspend: true")
	p.commit("Let resnet 2.0 end")
	p.synced()
	p.running(0)
	p.job("resnet", volume, "image: registry.example/resnet:3.0")
	p.commit("Train resnet 3.0")
	p.synced()
	p.running(2)
}

// made logs how long after the end of the old Job the new one was made: before it by Flux.
func (p *place) made(before, after string, changes gitops.Requests) {
	p.Helper()
	at := func(name string, deletes bool) time.Time {
		i := slices.IndexFunc(changes, func(r gitops.Request) bool {
			return r.Resource == "jobs" && r.Name == name && (r.Verb == "delete") == deletes
		})
		if i < 0 {
			p.Fatalf("%s was not changed: %+v", name, changes)
		}
		return changes[i].At
	}
	later := at(after, false).Sub(at(before, true))
	p.Logf("the new Job is made %v after the old one is deleted", later.Round(time.Millisecond))
	if p.Name() == "Flux" && later > 0 || p.Name() == "Argo CD" && later < 0 {
		p.Errorf("the new Job is made %v after the old one is deleted, against what docs/gitops.md says", later)
	}
}

// grace keeps the pods of a Job as long as a kubelet does, who lets them write a checkpoint: KWOK does not.
func (p *place) grace(job, finalizers string) {
	p.Helper()
	pods := p.client.CoreV1().Pods(p.namespace)
	all, err := pods.List(p.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range all.Items {
		patch := fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, finalizers)
		if _, err := pods.Patch(p.Context(), pod.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// pods counts those that are being deleted, and the others that run.
func (p *place) pods() (ending, running int) {
	p.Helper()
	pods, err := p.client.CoreV1().Pods(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			ending++
		} else if pod.Status.Phase == "Running" {
			running++
		}
	}
	return ending, running
}
