// Command floor is the Go program that somebody might write by hand in place of tegen: the objects of the bench's jobs
// as Kubernetes' own types, printed by sigs.k8s.io/yaml. It checks nothing, knows one form of a job, and is what a
// renderer of such objects costs at least when it is written without an eye on cost.
//
//	floor VALUES
//
// Input: the values of helm's chart. Output: the same objects on standard output.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

type values struct {
	Jobs []job `json:"jobs"`
}

type job struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Args    []string `json:"args"`
	Workers struct {
		Replicas int32 `json:"replicas"`
		Min      int32 `json:"min"`
	} `json:"workers"`
}

// object is one of any kind, without the status that the types would print.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Automount *bool `json:"automountServiceAccountToken,omitempty"`
	Spec      any   `json:"spec,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: floor VALUES")
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	err := render(os.Args[1], out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(path string, out io.Writer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}
	var all values
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}
	for i := range all.Jobs {
		for _, o := range all.Jobs[i].objects() {
			text, err := yaml.Marshal(o)
			if err != nil {
				return fmt.Errorf("printing a %s: %w", o.Kind, err)
			}
			if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
	}
	return nil
}

// version is the image's tag.
func (j *job) version() string { return j.Image[strings.LastIndexByte(j.Image, ':')+1:] }

// meta is that of an object; labels of what runs the image have its version too.
func (j *job) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{
		"app.kubernetes.io/component":  component,
		"app.kubernetes.io/instance":   j.Name,
		"app.kubernetes.io/managed-by": "tegen",
		"app.kubernetes.io/name":       "torchelastic",
		"tegen.dev/job":                j.Name,
	}}
}

func (j *job) selector() map[string]string {
	return map[string]string{"app.kubernetes.io/component": "worker", "tegen.dev/job": j.Name}
}

func (j *job) env() []corev1.EnvVar {
	worker := j.Name + "-worker"
	return []corev1.EnvVar{
		{Name: "TEGEN_RUN_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']",
		}}},
		{Name: "PET_RDZV_ID", Value: j.Name + "-$(TEGEN_RUN_UID)"},
		{Name: "PET_RDZV_BACKEND", Value: "c10d"},
		{Name: "PET_RDZV_ENDPOINT", Value: worker + "-0." + worker + ".default.svc.cluster.local:29400"},
		{Name: "PET_RDZV_CONF", Value: "join_timeout=600,last_call_timeout=30"},
		{Name: "PET_NNODES", Value: fmt.Sprintf("%d:%d", j.Workers.Min, j.Workers.Replicas)},
		{Name: "PET_NPROC_PER_NODE", Value: "1"},
		{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(3)},
		{Name: "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", Value: "1"},
		{Name: "HOME", Value: "/tmp"},
		{Name: "PYTHONUNBUFFERED", Value: "1"},
	}
}
