package operators

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// finalizing is how long a controller may take to let go of what is deleted.
const finalizing = 30 * time.Second

// leave explains a failure and removes everything.
func (p *place) leave() {
	ctx := context.WithoutCancel(p.Context())
	if p.Failed() && p.Context().Err() == nil {
		p.Log(p.explanation(ctx))
	}
	p.delete(ctx, p.applied...)
	for _, namespace := range p.entered {
		p.leaveNamespace(ctx, namespace)
	}
	for _, name := range p.added { // when no pod is left there, which would be gone only when somebody misses the node
		err := p.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			p.Error(err)
		}
	}
}

// leaveNamespace deletes a namespace and waits until it is gone: the next scenario may want its name.
func (p *place) leaveNamespace(ctx context.Context, name string) {
	client := p.client.CoreV1().Namespaces()
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		p.Errorf("deleting the namespace %s: %v", name, err)
		return
	}
	began, released := time.Now(), false
	for {
		namespace, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil || time.Since(began) > patience {
			p.Errorf("deleting the namespace %s: %v after %v: %v", name, err, time.Since(began),
				namespace.Status.Conditions)
			return
		}
		if !released && time.Since(began) > finalizing {
			p.release(ctx, name)
			released = true
		}
		time.Sleep(poll)
	}
}

// release lets go of what nobody lets go of: it takes the finalizers off what was applied in a namespace, and ends pods
// without their nodes.
func (p *place) release(ctx context.Context, namespace string) {
	for _, o := range p.applied {
		live, err := p.get(ctx, o)
		if err != nil || o.GetNamespace() != namespace || len(live.GetFinalizers()) == 0 {
			continue
		}
		p.Errorf("%s %s was not let go within %v by %v; these finalizers are removed now", o.GetKind(), o.GetName(),
			finalizing, live.GetFinalizers())
		client, err := p.on(o)
		if err == nil {
			_, err = client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
				metav1.PatchOptions{})
		}
		if err != nil {
			p.Error(err)
		}
	}
	if err := p.client.CoreV1().Pods(namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
		p.Error(err)
	}
}

// explanation is what became of what was applied: the objects, the pods, the events, and the end of the program's log.
func (p *place) explanation(ctx context.Context) string {
	var text strings.Builder
	for _, o := range p.applied {
		if slices.Contains([]string{"v1", "networking.k8s.io/v1", "policy/v1"}, o.GetAPIVersion()) {
			continue // no controller that is tried here has a part in those
		}
		live, err := p.get(ctx, o)
		if err != nil {
			fmt.Fprintf(&text, "%s %s: %v\n", o.GetKind(), o.GetName(), err)
			continue
		}
		live.SetManagedFields(nil)
		written, err := yaml.Marshal(live.Object)
		if err != nil {
			fmt.Fprintln(&text, err)
		}
		fmt.Fprintf(&text, "%s %s is now:\n%s", o.GetKind(), o.GetName(), indented(string(written)))
	}
	for _, namespace := range p.entered {
		p.explainPods(ctx, &text, namespace)
		p.explainEvents(ctx, &text, namespace)
	}
	text.WriteString(p.logs(ctx, p.program))
	return text.String()
}

func (p *place) explainPods(ctx context.Context, text *strings.Builder, namespace string) {
	pods, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		fmt.Fprintf(text, "namespace %s has no pod%s\n", namespace, because(err))
		return
	}
	fmt.Fprintf(text, "pods of namespace %s:\n", namespace)
	for _, pod := range pods.Items {
		fmt.Fprintf(text, "    %s is %s on node %q\n", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		for _, c := range pod.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				fmt.Fprintf(text, "        %s is %s: %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
}

func (p *place) explainEvents(ctx context.Context, text *strings.Builder, namespace string) {
	events, err := p.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(events.Items) == 0 {
		fmt.Fprintf(text, "namespace %s has no event%s\n", namespace, because(err))
		return
	}
	fmt.Fprintf(text, "events of namespace %s:\n", namespace)
	for _, e := range events.Items {
		fmt.Fprintf(text, "    %s %s: %s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason,
			e.Message)
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// logs are the last lines that the program wrote.
func (s *suite) logs(ctx context.Context, p program) string {
	if dir := os.Getenv("TEGEN_OPERATORS_LOGS"); dir != "" {
		file := filepath.Join(dir, p.log+".log")
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Sprintf("the log of %s is not where TEGEN_OPERATORS_LOGS says: %v", p.name, err)
		}
		written := ""
		if info, err := os.Stat(file); err == nil { // a controller that has stopped says no more
			written = fmt.Sprintf(", last written to %v ago", time.Since(info.ModTime()).Round(time.Second))
		}
		return fmt.Sprintf("%s%s, ends:\n%s", file, written, indented(lastLines(string(text))))
	}
	pods, err := s.controllers(ctx, p)
	if err != nil {
		return err.Error()
	}
	if len(pods) == 0 {
		return fmt.Sprintf("no log of %s: no pod has the labels %q, and TEGEN_OPERATORS_LOGS names no folder with "+
			"%s.log", p.name, p.controller, p.log)
	}
	var all strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&all, "pod %s/%s is %s, and its log ends:\n", pod.Namespace, pod.Name, pod.Status.Phase)
		text, err := s.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			TailLines: new(int64(60)),
		}).DoRaw(ctx)
		if err != nil {
			fmt.Fprintln(&all, err)
			continue
		}
		all.WriteString(indented(lastLines(string(text))))
	}
	return all.String()
}

// lastLines are as many lines, of such a length, as fit into a message, without stacks of functions.
func lastLines(text string) string {
	const lines, columns = 20, 1200
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "\t") && len(all) > 0 {
			all = all[:len(all)-1] // of a stack: the function, and then its file
			continue
		}
		all = append(all, line)
	}
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		if len(line) > columns {
			all[i] = line[:columns] + " …"
		}
	}
	return strings.Join(all, "\n")
}
