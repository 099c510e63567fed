// Package controllers holds what tegen says of a job against what Kubernetes' own controllers make of it. In go the
// fixtures whose pods come of core kinds, rendered as a person would render them; a real control plane (test/cluster)
// takes the objects, and its pods, endpoints, quotas and nodes are compared with the plan, field by field. A new
// fixture is taken in without a line here. The tests run where TEGEN_E2E=1 asks for them, as make e2e does.
package controllers
