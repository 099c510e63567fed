package schema

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// Asked is what is asked for and what the limits are.
func Asked[Name ~string](c *job.Compute) (requests, limits map[Name]resource.Quantity) {
	return job.But[Name](c, c.Requests), job.But[Name](c, c.Limits)
}

// askedOf reads it as far as it can be read: what cannot is reported elsewhere.
func askedOf(root *structural.Node, env *environment.Environment) job.AskedFor {
	a := job.AskedFor{Companion: root.IsSet("spec.rendezvous.companion"), Grace: root.IsSet("spec.gracePeriod")}
	a.Overrides = environment.Overridden(root.Field("spec"), "spec")
	if ttl := root.Below("spec", "ttlAfterFinished"); ttl != nil {
		a.Lifetime = ttl.Text != job.None
	}
	if gpu := root.Below("spec", "resources", "gpu"); gpu != nil {
		a.GPU, _ = strconv.ParseInt(gpu.Text, 10, 64)
	}
	if env == nil { // nobody else has a say
		return a
	}
	a.Compute = map[string]job.Compute{}
	for role, n := range computes(root.Field("spec")) {
		var c job.Compute
		if n.Decode(&c) == nil {
			a.Compute[role] = c
		}
	}
	return a
}

// computes are the resources that a spec says something of, by role.
func computes(spec *structural.Node) map[string]*structural.Node {
	all := map[string]*structural.Node{}
	add := func(role string, n *structural.Node) {
		if n != nil && n.Kind == yamldoc.Map {
			all[role] = n
		}
	}
	add(job.RoleWorker, spec.Below("resources"))
	for _, item := range rule.GroupItems(spec) {
		if name := item.Field("name"); name != nil {
			add(name.Text, item.Field("resources"))
		}
	}
	for _, role := range job.RoleNames {
		add(role, spec.Below("roles", role, "resources"))
	}
	return all
}

// noneBeside sets an amount to none where only its request or its limit is said: the other's default is nobody's wish.
// A request alone then has no limit, and a limit alone is what Kubernetes takes for the request. A side that is none
// leaves the default to the other one.
func noneBeside(spec *structural.Node) {
	all := slices.Collect(maps.Values(computes(spec)))
	if list := spec.Field("sidecars"); list != nil {
		for _, item := range list.Items {
			if n := item.Field("resources"); n != nil && n.Kind == yamldoc.Map {
				all = append(all, n)
			}
		}
	}
	for _, n := range all {
		for _, side := range []*structural.Node{n.Field("requests"), n.Field("limits")} {
			if side == nil || side.Kind != yamldoc.Map {
				continue
			}
			for _, e := range side.Fields {
				if e.Value.Text != job.None && n.Entry(e.Key) == nil && amountsSchema().Field(e.Key) != nil {
					n.Add(e.Key, structural.Position{}, &structural.Node{Kind: yamldoc.String, Text: job.None})
				}
			}
		}
	}
}

func amountsSchema() *structural.Schema {
	return definition.Job().Field("spec").Schema.Field("resources").Schema.Field("limits").Schema
}

// RoleNames are the roles that a job may have, the workers first.
func RoleNames() []string { return append([]string{job.RoleWorker}, job.RoleNames...) }
