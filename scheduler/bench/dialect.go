package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// dialect is how a scheduler is told which pods are a gang.
type dialect struct {
	// member makes a pod one of a gang of so many.
	member func(pod *corev1.Pod, name string, size int)
	// group is the object that a gang needs beside its pods, without metadata; nil where it needs none.
	group func(size int) map[string]any
	of    schema.GroupVersionResource // the group's resource
	// definitions are the custom resources that a scheduler of this dialect waits for at its start, whether any exists
	// or not, as "Kind plural.group/version".
	definitions []string
	// prepare makes what else the scheduler needs before any gang; nil where that is nothing.
	prepare func(context.Context, *cluster.Cluster) error
}

// The names of dialects.
const (
	koordinatorDialect  = "koordinator"
	coschedulingDialect = "coscheduling"
	volcanoDialect      = "volcano"
	kubeDialect         = "kube"
)

var dialects = map[string]dialect{
	koordinatorDialect: {
		member: func(pod *corev1.Pod, name string, size int) {
			pod.Annotations = map[string]string{
				gangcache.Prefix + gangcache.Name:       name,
				gangcache.Prefix + gangcache.MinMembers: fmt.Sprint(size),
			}
		},
		definitions: []string{
			"PodGroup podgroups.scheduling.sigs.k8s.io/v1alpha1",
			"ElasticQuota elasticquotas.scheduling.sigs.k8s.io/v1alpha1",
			"ElasticQuotaProfile elasticquotaprofiles.quota.koordinator.sh/v1alpha1",
			"Reservation reservations.scheduling.koordinator.sh/v1alpha1",
			"Device devices.scheduling.koordinator.sh/v1alpha1",
			"PodMigrationJob podmigrationjobs.scheduling.koordinator.sh/v1alpha1",
			"ScheduleExplanation scheduleexplanations.scheduling.koordinator.sh/v1alpha1",
			"ClusterNetworkTopology clusternetworktopologies.scheduling.koordinator.sh/v1alpha1",
			"NodeMetric nodemetrics.slo.koordinator.sh/v1alpha1",
			"NodeSLO nodeslos.slo.koordinator.sh/v1alpha1",
			"NodeResourceTopology noderesourcetopologies.topology.node.k8s.io/v1alpha1",
		},
	},
	coschedulingDialect: {
		member: func(pod *corev1.Pod, name string, _ int) {
			pod.Labels["scheduling.x-k8s.io/pod-group"] = name
		},
		group: func(size int) map[string]any {
			return map[string]any{"minMember": int64(size), "scheduleTimeoutSeconds": int64(600)}
		},
		of: schema.GroupVersionResource{
			Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups",
		},
		definitions: []string{"PodGroup podgroups.scheduling.x-k8s.io/v1alpha1"},
	},
	volcanoDialect: {
		member: func(pod *corev1.Pod, name string, _ int) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": name}
		},
		group: func(size int) map[string]any {
			return map[string]any{"minMember": int64(size), "queue": "default"}
		},
		of: schema.GroupVersionResource{
			Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups",
		},
		definitions: []string{
			"PodGroup podgroups.scheduling.volcano.sh/v1beta1",
			"Queue queues.scheduling.volcano.sh/v1beta1",
			"Numatopology numatopologies.nodeinfo.volcano.sh/v1alpha1",
			"HyperNode hypernodes.topology.volcano.sh/v1alpha1",
			"NodeShard nodeshards.shard.volcano.sh/v1alpha1",
		},
		prepare: openQueues,
	},
	kubeDialect: {
		member: func(pod *corev1.Pod, name string, _ int) {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
		},
		group: func(size int) map[string]any {
			return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(size)}}}
		},
		of: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha2", Resource: "podgroups"},
	},
}

// clusterScoped are the kinds of definitions whose objects are in no namespace.
var clusterScoped = map[string]bool{
	"Reservation": true, "Device": true, "PodMigrationJob": true, "ClusterNetworkTopology": true, "NodeMetric": true,
	"NodeSLO": true, "NodeResourceTopology": true, "Queue": true, "Numatopology": true, "HyperNode": true,
	"NodeShard": true,
}

// definition is a CustomResourceDefinition that takes whatever it is given: the bench writes two fields, schedulers
// their own, and no user is there to be told of a mistake.
func definition(words string) *unstructured.Unstructured {
	kind, name, _ := strings.Cut(words, " ")
	name, version, _ := strings.Cut(name, "/")
	plural, group, _ := strings.Cut(name, ".")
	scope := "Namespaced"
	if clusterScoped[kind] {
		scope = "Cluster"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": name,
			// Names below k8s.io need it; without a review this is what it says.
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a benchmark"},
		},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{
				"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind),
			},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// openQueues makes the queues of Volcano that vc-scheduler would make, and says that they are open, as its controllers
// would. Nothing is placed from a queue that is not.
func openQueues(ctx context.Context, c *cluster.Cluster) error {
	queues := c.Dynamic().Resource(schema.GroupVersionResource{
		Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues",
	})
	for _, name := range []string{"root", "default"} {
		queue := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"weight": int64(1), "reclaimable": name != "root"},
		}}
		made, err := queues.Create(ctx, queue, metav1.CreateOptions{})
		if err == nil {
			made.Object["status"] = map[string]any{"state": "Open"}
			_, err = queues.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("opening queue %s: %w", name, err)
		}
	}
	return nil
}

// define makes the API server serve what the schedulers of some dialects wait for.
func define(ctx context.Context, c *cluster.Cluster, dialectNames ...string) error {
	var crds []*unstructured.Unstructured
	for _, name := range dialectNames {
		for _, words := range dialects[name].definitions {
			crds = append(crds, definition(words))
		}
	}
	if err := c.Define(ctx, crds...); err != nil {
		return err
	}
	for _, name := range dialectNames {
		if prepare := dialects[name].prepare; prepare != nil {
			if err := prepare(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// podGroups makes the groups of a trial, where its gangs have such.
func (b *bench) podGroups(ctx context.Context, t trial, c contender) error {
	d := dialects[c.dialect]
	if t.gang == 0 || d.group == nil {
		return nil
	}
	for i := range t.pods / t.gang {
		group := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": d.of.GroupVersion().String(), "kind": "PodGroup",
			"metadata": map[string]any{"namespace": namespace, "name": t.gangName(i)},
			"spec":     d.group(t.gang),
		}}
		if _, err := b.Dynamic().Resource(d.of).Namespace(namespace).Create(ctx, group,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making PodGroup %s: %w", group.GetName(), err)
		}
	}
	return nil
}
