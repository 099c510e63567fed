package gitops

import (
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tegen-dev/tegen/test/cluster"
)

// unchanged: a commit that changes no manifest changes no object, whichever way they are applied.
func unchanged(p *place) {
	p.job("resnet", volume, etcd("4Gi"))
	p.commit("Train resnet")
	p.followed()
	p.running(3)
	p.undisturbed()
}

// undisturbed checks that a commit elsewhere writes nothing, with server-side apply and without.
func (p *place) undisturbed() {
	p.Helper()
	for _, serverSide := range []bool{false, true} {
		if serverSide && p.Name() == "Argo CD" {
			p.app.Options.ServerSideApply = true
			if err := p.Follow(p.Context(), p.app); err != nil {
				p.Fatal(err)
			}
			p.synced() // what is applied in another way for the first time changes who owns which field
		}
		before := p.changes()
		p.commit("Say something elsewhere")
		p.synced()
		if after := p.changes(); len(after) > len(before) {
			p.Errorf("server-side apply %v: %s wrote again: %+v", serverSide, p.Name(), after[len(before):])
		}
	}
}

// completed: what is done stays done.
func completed(p *place) {
	p.job("resnet")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	p.end(cluster.OutcomeSucceeded)
	p.ended(batchv1.JobComplete)
	p.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
	job := p.theJob()
	p.commit("Say something elsewhere")
	p.synced()
	if again := p.theJob(); again.UID != job.UID {
		p.Errorf("the training runs again")
	}
}

// failed: the job is seen to have failed, and is not run again.
func failed(p *place) {
	p.job("resnet", "failure: {restarts: 0}")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	p.end(cluster.OutcomeFailed)
	p.ended(batchv1.JobFailed)
	p.health(map[string]string{"Argo CD": "Degraded", "Flux": "ReconciliationSucceeded"})
	job := p.theJob()
	p.commit("Say something elsewhere")
	p.sync()
	if again := p.theJob(); again.UID != job.UID {
		p.Errorf("the training runs again")
	}
}

// edited: what a hand changes is put back.
func edited(p *place) {
	p.job("resnet", "workers: {min: 1, max: 4, replicas: 2}")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	p.patchJob(`{"spec":{"parallelism":4,"completions":4}}`)
	p.synced()
	p.running(2)
	p.patchJob(`{"spec":{"suspend":true}}`)
	p.synced()
	p.running(2)
}

// health waits until a user sees the health that is said of the reconciler.
func (p *place) health(want map[string]string) {
	p.Helper()
	p.eventually("health "+want[p.Name()], func() error {
		status, err := p.Status(p.Context(), p.app)
		if err != nil {
			return err
		}
		if status.Health != want[p.Name()] {
			return fmt.Errorf("%s", status)
		}
		return nil
	})
}

// changes are the requests for objects of the namespace that could have changed one.
func (p *place) changes() (all []string) {
	p.Helper()
	time.Sleep(time.Second) // what was asked for just now
	requests, err := p.Requests()
	if err != nil {
		p.Fatal(err)
	}
	for _, r := range requests.In(p.namespace).Changing() {
		all = append(all, fmt.Sprintf("%s %s/%s", r.Verb, r.Resource, r.Name))
	}
	return all
}

func (p *place) patchJob(patch string) {
	p.Helper()
	job := p.theJob()
	if _, err := p.client.BatchV1().Jobs(p.namespace).Patch(p.Context(), job.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		p.Fatal(err)
	}
}

// end ends every pod of the namespace.
func (p *place) end(outcome string) {
	p.Helper()
	p.endOf("", outcome)
}

// endOf ends every pod of a job, or of all.
func (p *place) endOf(job, outcome string) {
	p.Helper()
	options := metav1.ListOptions{}
	if job != "" {
		options.LabelSelector = "tegen.dev/job=" + job
	}
	pods, err := p.client.CoreV1().Pods(p.namespace).List(p.Context(), options)
	if err != nil {
		p.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{cluster.OutcomeAnnotation: outcome}},
	})
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range pods.Items {
		if _, err := p.client.CoreV1().Pods(p.namespace).Patch(p.Context(), pod.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// ended waits until the Job has a condition.
func (p *place) ended(want batchv1.JobConditionType) {
	p.Helper()
	p.eventually("the Job's condition "+string(want), func() error {
		job := p.theJob()
		for _, c := range job.Status.Conditions {
			if c.Type == want && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it has %v", job.Status.Conditions)
	})
}
