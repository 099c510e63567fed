package runbook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/schema/job"
)

// Programs that make clusters of files.
const (
	eksctl = "eksctl"
	kind   = "kind"
)

// Cluster is what an overlay's cluster.yaml says of the cluster.
type Cluster struct {
	File         string
	Tool         string // eksctl, kind, or "" for one that is not known here
	Name         string
	region       string
	addons       []string // of eksctl
	groups       []nodeGroup
	placeholders []string // what somebody has yet to fill in
}

// nodeGroup is nodes that are alike, of which there are more or fewer.
type nodeGroup struct {
	Name              string
	Least, Now, limit int
	node              corev1.Node // as each of them will be, as far as the file says it
}

// ReadCluster reads a ClusterConfig of eksctl or a Cluster of kind. Of what another program reads it knows nothing.
func ReadCluster(file string, text []byte) (*Cluster, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	c := &Cluster{File: file}
	for _, at := range job.Placeholders(string(text), false) {
		if p := string(text[at[0]:at[1]]); !slices.Contains(c.placeholders, p) {
			c.placeholders = append(c.placeholders, p)
		}
	}
	var err error
	switch group, _, _ := strings.Cut(head.APIVersion, "/"); {
	case group == "eksctl.io" && head.Kind == "ClusterConfig":
		err = c.readEKS(text)
	case group == "kind.x-k8s.io" && head.Kind == "Cluster":
		err = c.readKind(text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return c, nil
}

// eksGroup has the fields of eksctl's node groups that say how many nodes there are and what pods see of them.
type eksGroup struct {
	Name         string            `json:"name"`
	InstanceType string            `json:"instanceType"`
	Labels       map[string]string `json:"labels"`
	Taints       eksTaints         `json:"taints"`
	Min          *int              `json:"minSize"`
	Desired      *int              `json:"desiredCapacity"`
	Max          *int              `json:"maxSize"`
}

// eksTaints are a list, or in older files key: value:effect.
type eksTaints []corev1.Taint

// UnmarshalJSON takes both forms.
func (t *eksTaints) UnmarshalJSON(text []byte) error {
	var pairs map[string]string
	if json.Unmarshal(text, &pairs) != nil {
		return json.Unmarshal(text, (*[]corev1.Taint)(t))
	}
	for key, pair := range pairs {
		value, effect, _ := strings.Cut(pair, ":")
		*t = append(*t, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return nil
}

func (c *Cluster) readEKS(text []byte) error {
	var in struct {
		Metadata struct{ Name, Region string }
		Addons   []struct{ Name string }
		Managed  []eksGroup `json:"managedNodeGroups"`
		Own      []eksGroup `json:"nodeGroups"`
	}
	if err := yaml.Unmarshal(text, &in); err != nil {
		return err
	}
	c.Tool, c.Name, c.region = eksctl, in.Metadata.Name, in.Metadata.Region
	for _, addon := range in.Addons {
		c.addons = append(c.addons, addon.Name)
	}
	for _, g := range in.Managed {
		c.addGroup(g, map[string]string{"eks.amazonaws.com/nodegroup": g.Name})
	}
	for _, g := range in.Own {
		c.addGroup(g, nil)
	}
	for _, g := range c.groups {
		if err := isName("the name of a node group", g.Name); err != nil {
			return err
		}
		if g.Least > g.Now || g.Now > g.limit {
			return fmt.Errorf("node group %s: minSize %d, desiredCapacity %d and maxSize %d must be in this order",
				g.Name, g.Least, g.Now, g.limit)
		}
	}
	if err := isName("metadata.region", c.region); err != nil {
		return err
	}
	return isName("metadata.name", c.Name)
}

// addGroup adds a group with the labels that eksctl and EKS give its nodes; sizes that are left out follow from the
// others, as eksctl has it.
func (c *Cluster) addGroup(g eksGroup, labels map[string]string) {
	all := map[string]string{
		corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: g.InstanceType,
		corev1.LabelTopologyRegion: c.region, "alpha.eksctl.io/cluster-name": c.Name,
		"alpha.eksctl.io/nodegroup-name": g.Name,
	}
	for _, more := range []map[string]string{labels, g.Labels} {
		for k, v := range more {
			all[k] = v
		}
	}
	or := func(n *int, others ...*int) int {
		for _, other := range append([]*int{n}, others...) {
			if other != nil {
				return *other
			}
		}
		return 2
	}
	now := or(g.Desired, g.Min, g.Max)
	c.groups = append(c.groups, nodeGroup{
		Name: g.Name, Least: or(g.Min, &now), Now: now, limit: or(g.Max, &now),
		node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: all}, Spec: corev1.NodeSpec{Taints: g.Taints}},
	})
}

func (c *Cluster) readKind(text []byte) error {
	var in struct{ Name string }
	if err := yaml.Unmarshal(text, &in); err != nil {
		return err
	}
	c.Tool, c.Name = kind, in.Name
	if c.Name == "" {
		c.Name = kind // as kind calls it
	}
	return isName("name", c.Name)
}

var clusterName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// isName refuses what no such program takes, and nobody should paste.
func isName(what, value string) error {
	if clusterName().MatchString(value) {
		return nil
	}
	return fmt.Errorf("%s must be letters, digits, dots, dashes and underscores, not %q", what, value)
}

// group is the node group of pods: the first that takes them. nil where none does, or the file has none.
func (c *Cluster) group(s *plan.PodSet) *nodeGroup {
	if c == nil || s == nil {
		return nil
	}
	for i := range c.groups {
		if s.Refuses(&c.groups[i].node) == "" {
			return &c.groups[i]
		}
	}
	return nil
}

// has says whether the cluster is made with an addon.
func (c *Cluster) has(addon string) bool { return c != nil && slices.Contains(c.addons, addon) }

// Flags name the cluster to eksctl.
func (c *Cluster) Flags() string { return "--cluster " + c.Name + " --region " + c.region }

// Open lists what somebody has yet to fill in.
func (c *Cluster) Open() string {
	var open []string
	for _, p := range c.placeholders {
		open = append(open, code(p))
	}
	return strings.Join(open, ", ")
}

// Fewer is one node less than there are.
func (g *nodeGroup) Fewer() int { return max(g.Now-1, 0) }
