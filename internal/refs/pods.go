package refs

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
)

// workload is an object that makes pods, or a Pod, and what its pods look like.
type workload struct {
	object
	path string // of the pod spec
	pod  *metav1.ObjectMeta
	spec *corev1.PodSpec
	set  *apis.PodSet
}

// container is a container with the list it is in.
type container struct {
	*corev1.Container
	w    *workload
	list string // "containers" or "initContainers"
}

func (t container) at(part, item string) place {
	return place{t.w.path, t.list, t.Name, part, item}
}

func (c *checker) workload(w *workload) {
	c.annotation(&w.object)
	c.ownSelector(w)
	c.governing(w)
	c.podGroup(w)
	for i := range w.spec.Volumes {
		c.podVolume(w, &w.spec.Volumes[i])
	}
	for _, s := range w.spec.ImagePullSecrets {
		c.need(&w.object, place{path: w.path, list: "imagePullSecrets", name: s.Name},
			id{"Secret", w.namespace, s.Name})
	}
	for _, r := range w.spec.ResourceClaims {
		at := place{path: w.path, list: "resourceClaims", name: r.Name}
		if r.ResourceClaimTemplateName != nil {
			c.need(&w.object, at, id{"ResourceClaimTemplate", w.namespace, *r.ResourceClaimTemplateName})
		}
		if r.ResourceClaimName != nil {
			c.need(&w.object, at, id{"ResourceClaim", w.namespace, *r.ResourceClaimName})
		}
	}
	c.need(&w.object, place{path: w.path, list: "serviceAccountName"},
		id{"ServiceAccount", w.namespace, w.spec.ServiceAccountName})
	for _, d := range w.set.Dials {
		c.qualified(w, place{path: d.Path}, d.Address)
		c.addresses(w, place{path: d.Path}, d.Address, true)
	}
	for i := range w.spec.InitContainers {
		c.container(container{&w.spec.InitContainers[i], w, "initContainers"})
	}
	for i := range w.spec.Containers {
		c.container(container{&w.spec.Containers[i], w, "containers"})
	}
}

// ownSelector compares with the template alone, as the API server does: labels
// that the controller adds come later.
func (c *checker) ownSelector(w *workload) {
	selector := w.set.Selector
	if selector == nil {
		return
	}
	template := &workload{pod: w.pod, set: &apis.PodSet{}}
	if !template.matches(selector) {
		c.broken(ruleSelector, &w.object, place{path: strings.TrimSuffix(w.path, "template.spec") + "selector"},
			"pods "+w.namespace+"/"+formatSelector(selector),
			"the selector does not match the template's labels ("+labels.Set(w.pod.Labels).String()+"), "+
				"so the API server refuses the object; make them agree")
	}
}

// governing checks the Service that names the pods in DNS.
func (c *checker) governing(w *workload) {
	name := w.set.Subdomain
	if name == "" {
		c.ownService(w)
		return
	}
	at, consequence := place{path: w.path + ".subdomain"}, "without it hostname.subdomain does not resolve"
	headless := true
	if w.kind == "StatefulSet" {
		at, consequence = place{path: "spec.serviceName"}, "without it the pods have no names in DNS"
		headless = false
	}
	to := id{"Service", w.namespace, name}
	c.link(&w.object, to, Named, "")
	if !c.has(to) {
		c.missing(&w.object, at, to, consequence)
		return
	}
	svc, ok := c.objects[to].(*corev1.Service)
	if !ok {
		return
	}
	switch {
	case headless && svc.Spec.ClusterIP != corev1.ClusterIPNone:
		c.refuse(&w.object, at, to, "the Service is not headless, and without a headless one hostname.subdomain does "+
			"not resolve; set its clusterIP to None")
	case len(svc.Spec.Selector) == 0 || !w.matches(&metav1.LabelSelector{MatchLabels: svc.Spec.Selector}):
		c.refuse(&w.object, at, to, "its selector ("+labels.Set(svc.Spec.Selector).String()+
			") does not select these pods ("+labels.Set(w.pod.Labels).String()+
			"), so they get no names in DNS; make them agree")
	}
}

// ownService requires the Service that carries the hostname of a bare worker:
// its peers dial it by that name.
func (c *checker) ownService(w *workload) {
	if w.kind != "Pod" || w.pod.Labels[names.LabelManagedBy] != names.ManagedBy ||
		w.pod.Labels["worker"] == "" {
		return
	}
	to := id{"Service", w.namespace, w.name}
	c.link(&w.object, to, Named, "")
	if !c.has(to) {
		c.missing(&w.object, place{path: "metadata.name"}, to,
			"without a headless Service of that name its peers cannot dial this worker")
	}
}

func (c *checker) podVolume(w *workload, v *corev1.Volume) {
	at := place{path: w.path, list: "volumes", name: v.Name}
	switch {
	case w.claimTemplate(v.Name):
		// The StatefulSet controller replaces this volume by its own claim.
	case v.PersistentVolumeClaim != nil:
		at.part = "persistentVolumeClaim"
		c.need(&w.object, at, id{"PersistentVolumeClaim", w.namespace, v.PersistentVolumeClaim.ClaimName})
	case v.Secret != nil:
		at.part = "secret"
		c.needKeys(w, at, id{"Secret", w.namespace, v.Secret.SecretName}, v.Secret.Optional, v.Secret.Items)
	case v.ConfigMap != nil:
		at.part = "configMap"
		c.needKeys(w, at, id{"ConfigMap", w.namespace, v.ConfigMap.Name}, v.ConfigMap.Optional, v.ConfigMap.Items)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			at.part, at.item = "projected.sources", itoa(i)
			if s := v.Projected.Sources[i].Secret; s != nil {
				c.needKeys(w, at, id{"Secret", w.namespace, s.Name}, s.Optional, s.Items)
			}
			if m := v.Projected.Sources[i].ConfigMap; m != nil {
				c.needKeys(w, at, id{"ConfigMap", w.namespace, m.Name}, m.Optional, m.Items)
			}
		}
	}
}

func (w *workload) claimTemplate(volume string) bool {
	return slices.ContainsFunc(w.set.Claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == volume })
}

// needKeys requires a ConfigMap or Secret and the keys a volume mounts from it.
func (c *checker) needKeys(w *workload, at place, to id, optional *bool, items []corev1.KeyToPath) {
	if optional != nil && *optional {
		return
	}
	c.need(&w.object, at, to)
	for i := range items {
		c.needKey(w, at, to, items[i].Key)
	}
}

// needKey requires the key of an object that is in the set.
func (c *checker) needKey(w *workload, at place, to id, key string) {
	ok := true
	switch o := c.objects[to].(type) {
	case *corev1.ConfigMap:
		_, text := o.Data[key]
		_, binary := o.BinaryData[key]
		ok = text || binary
	case *corev1.Secret:
		_, text := o.StringData[key]
		_, binary := o.Data[key]
		// The cluster fills a token Secret in, and some Job of the set one without any data.
		ok = text || binary || o.Type == corev1.SecretTypeServiceAccountToken || len(o.StringData)+len(o.Data) == 0
	}
	if !ok {
		c.refuse(&w.object, at, to, "it has no key "+key+"; add the key or correct the reference")
	}
}

func (c *checker) container(t container) {
	c.mounts(t)
	for i := range t.EnvFrom {
		if s := t.EnvFrom[i].SecretRef; s != nil && !isTrue(s.Optional) {
			c.need(&t.w.object, t.at("envFrom", itoa(i)), id{"Secret", t.w.namespace, s.Name})
		}
		if m := t.EnvFrom[i].ConfigMapRef; m != nil && !isTrue(m.Optional) {
			c.need(&t.w.object, t.at("envFrom", itoa(i)), id{"ConfigMap", t.w.namespace, m.Name})
		}
	}
	for i := range t.Env {
		if t.Env[i].ValueFrom != nil {
			c.envSource(t, &t.Env[i])
		}
	}
	c.endpoints(t)
}

// mounts compares pairs: a container has a handful of them.
func (c *checker) mounts(t container) {
	for i := range t.VolumeMounts {
		m := &t.VolumeMounts[i]
		if !t.w.hasVolume(m.Name) {
			c.broken(ruleMissing, &t.w.object, t.at("volumeMounts", m.Name), "volume "+m.Name,
				"the pod has no volume of that name; add it to volumes or correct the mount")
		}
		for j := range t.VolumeMounts[:i] {
			if trimSlash(t.VolumeMounts[j].MountPath) == trimSlash(m.MountPath) {
				c.broken(ruleDuplicate, &t.w.object, t.at("volumeMounts", m.Name), "mountPath "+m.MountPath,
					"volume "+t.VolumeMounts[j].Name+" is mounted there already, and the API server refuses two "+
						"mounts in one place; move or drop one")
				break
			}
		}
	}
}

func trimSlash(path string) string {
	if path == "/" {
		return path
	}
	return strings.TrimSuffix(path, "/")
}

func (w *workload) hasVolume(name string) bool {
	for i := range w.spec.Volumes {
		if w.spec.Volumes[i].Name == name {
			return true
		}
	}
	return w.claimTemplate(name)
}

func (c *checker) envSource(t container, e *corev1.EnvVar) {
	at := t.at("env", e.Name)
	if s := e.ValueFrom.SecretKeyRef; s != nil && !isTrue(s.Optional) {
		to := id{"Secret", t.w.namespace, s.Name}
		c.need(&t.w.object, at, to)
		c.needKey(t.w, at, to, s.Key)
	}
	if m := e.ValueFrom.ConfigMapKeyRef; m != nil && !isTrue(m.Optional) {
		to := id{"ConfigMap", t.w.namespace, m.Name}
		c.need(&t.w.object, at, to)
		c.needKey(t.w, at, to, m.Key)
	}
	if f := e.ValueFrom.FieldRef; f != nil {
		c.fieldRef(t.w, at, f.FieldPath)
	}
}

// fieldRef checks the two field paths that name something of the template: an
// absent label or annotation silently reads as the empty string.
func (c *checker) fieldRef(w *workload, at place, path string) {
	field, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['")
	if !ok {
		return
	}
	switch field {
	case "metadata.labels":
		ok = w.carries(key)
	case "metadata.annotations":
		_, ok = w.pod.Annotations[key]
		ok = ok || key == batchv1.JobCompletionIndexAnnotation && w.numbersLabel(key) ||
			slices.Contains(w.set.Annotations, key)
	}
	if !ok {
		c.broken(ruleMismatch, &w.object, at, path,
			"neither the pod template nor the controller sets it, so it reads as the "+
				"empty string; add it to the template")
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// expects reports whether the object's annotation lists to as existing.
func (o *object) expects(to id) bool {
	return o.expectsAny(func(kind, name string) bool { return kind == to.kind && name == to.name })
}

// expectsPods reports whether the annotation lists something that makes pods,
// whose labels are unknown: a selector may mean those.
func (o *object) expectsPods() bool {
	return o.expectsAny(func(kind, _ string) bool { return apis.IsBuiltIn(kind) })
}

func (o *object) expectsAny(is func(kind, name string) bool) bool {
	for _, notes := range o.notes {
		for entry := range strings.SplitSeq(notes[names.Expects], ",") {
			if kind, name, ok := strings.Cut(strings.TrimSpace(entry), "/"); ok && is(kind, name) {
				return true
			}
		}
	}
	return false
}

// annotation reports the entries that cannot be read, which would otherwise
// excuse nothing and say nothing.
func (c *checker) annotation(from *object) {
	for _, notes := range from.notes {
		value := notes[names.Expects]
		if strings.TrimSpace(value) == "" {
			continue
		}
		for entry := range strings.SplitSeq(value, ",") {
			entry = strings.TrimSpace(entry)
			kind, name, ok := strings.Cut(entry, "/")
			if !ok || !kindLike(kind) || !nameLike(name) {
				at := place{path: "metadata.annotations", name: names.Expects}
				c.broken(ruleAnnotation, from, at, "\""+entry+"\"",
					"an entry is Kind/name, such as Secret/hf-token, and entries are separated "+
						"by commas; correct or remove it")
			}
		}
	}
}

func kindLike(s string) bool {
	return s != "" && 'A' <= s[0] && s[0] <= 'Z' && !strings.ContainsAny(s, " \t\n")
}

func nameLike(s string) bool {
	return s != "" && !strings.ContainsAny(s, "/ \t\n")
}
