package main

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

// after is an annotation of jobs: how long workers may be missing before Prometheus alerts. Default: 10m.
const after = "alerts.example.com/after"

// prometheusRule is the custom resource of the Prometheus operator, with the fields that this program sets.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ruleSpec `json:"spec"`
}

type ruleSpec struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// DeepCopyObject makes it a runtime.Object. Nothing changes an object after a generator has returned it, so the copy
// may share what it points to.
func (r *prometheusRule) DeepCopyObject() runtime.Object {
	c := *r
	return &c
}

// alerts returns a PrometheusRule for a job whose workers Prometheus scrapes by the PodMonitor that tegen renders. It
// alerts if fewer workers answer than the job needs.
func alerts(j *job.Job) ([]runtime.Object, error) {
	if j.Spec.Metrics == nil || !j.Spec.Metrics.PodMonitor {
		return nil, nil
	}
	wait, set := j.Metadata.Annotations[after]
	if !set {
		wait = "10m"
	}
	if number := strings.TrimRight(wait, "smhd"); number == "" || strings.Trim(number, "0123456789") != "" ||
		len(wait) != len(number)+1 {
		return nil, fmt.Errorf("metadata.annotations[%s]: %q is not a duration of Prometheus. Use a number and s, m, "+
			"h or d, such as 10m", after, wait)
	}
	// The name that Prometheus has for the pods of a PodMonitor.
	pods := fmt.Sprintf("%s/%s-%s", j.Metadata.Namespace, j.Metadata.Name, job.RoleWorker)
	return []runtime.Object{&prometheusRule{
		TypeMeta:   metav1.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"},
		ObjectMeta: generators.Meta(j, j.Metadata.Name+"-alerts", "alerts"),
		Spec: ruleSpec{Groups: []ruleGroup{{Name: j.Metadata.Name, Rules: []rule{{
			Alert:  "TrainingWorkersMissing",
			Expr:   fmt.Sprintf("sum(up{job=%q}) < %d or absent(up{job=%[1]q})", pods, j.Spec.Workers.Min),
			For:    wait,
			Labels: map[string]string{"severity": "warning", "job_name": j.Metadata.Name},
			Annotations: map[string]string{
				"summary": fmt.Sprintf("Fewer than %d workers of %s answer.", j.Spec.Workers.Min, j.Metadata.Name),
			},
		}}}}},
	}}, nil
}
