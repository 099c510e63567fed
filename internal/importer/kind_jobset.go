package importer

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// readJobSet reads a JobSet: the Job in it that trains is the workers, and each other a group beside them.
func readJobSet(s *stream, o *object) (*draft, error) {
	spec := o.view().at("spec")
	child, groups, dropped := s.groupItems(spec.at("replicatedJobs"))
	if !child.isSet() {
		return nil, errors.New("it has no spec.replicatedJobs")
	}
	if spec.at("volumeClaimPolicies").isSet() { // whose volumes no template has
		return nil, errors.New("its spec.volumeClaimPolicies have JobSet make claims and mount them, and no " +
			"TrainingJob says so: put each into the pods' volumes as a claim, which becomes spec.storage, and there " +
			"write dynamic in place of claim to have it rendered")
	}
	template := child.at("template", "spec", "template")
	d := newDraft(s, o, meetingFramework(o, template), job.TargetJobSet, unhashed(o))
	d.unrenderedPods = dropped
	for _, item := range groups {
		d.group(item, item.at("template", "spec", "template"))
		d.oneJob(item)
	}
	d.children(child)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.managedBy(spec)
	d.seconds("spec.failure.deadline", child.at("template", "spec", "activeDeadlineSeconds"))
	d.readTTL(spec)
	for _, item := range spec.at("replicatedJobs").items() { // the controller puts the set's own in its place
		d.keptAs(item.at("template", "spec", "suspend"), "JobSet replaces it with its own suspend")
	}
	d.setPolicies(spec, child)
	train := child.at("name").text()
	for i, item := range groups {
		d.groupFailure(i, item.at("template", "spec"), d.toldApart(spec, item, train))
	}
	c := d.worker(template)
	d.exclusiveTopology(o.view(), child)
	d.trainer(template.at("spec"), c)
	d.readdress(d.ofChildren(o, child)...)
	if subdomain := spec.at("network", "subdomain"); subdomain.isSet() && subdomain.text() != d.name() {
		d.note(subdomain, Translated, "the Service of the set is called %s, and pods are dialled there", d.name())
		subdomain.markTranslated()
	}
	for _, item := range groups {
		d.readdress(d.ofGroup(o, item))
	}
	d.switchOffExtras()
	return d, nil
}

// oneJob tells of a group whose pods are of several Jobs in the source: a TrainingJob has one for each group.
func (d *draft) oneJob(item view) {
	if n, ok := item.at("replicas").number(); ok && n > 1 {
		d.note(item.at("replicas"), Changed, "a group is one Job: its pods are numbered through those of all %d", n)
		item.at("replicas").markTranslated()
		for _, field := range []string{"parallelism", "completions"} {
			item.at("template", "spec", field).markTranslated()
		}
	}
}

// setPolicies reads what decides a set as a whole: when all of its Jobs start anew, which of them must succeed, which
// wait for others, and the pod that others are told of.
func (d *draft) setPolicies(spec, child view) {
	train := child.at("name").text()
	d.setRestarts(spec, child)
	d.setSuccess(spec, train)
	if pod := spec.at("coordinator"); pod.isSet() {
		d.set("spec.coordinator.group", d.groupOf(pod.at("replicatedJob").text(), train), pod.at("replicatedJob"))
		d.setNumber("spec.coordinator.index", pod.at("podIndex"))
		pod.at("replicatedJob").markTranslated()
	}
	inOrder, all := spec.at("startupPolicy", "startupPolicyOrder"), spec.at("replicatedJobs").items()
	for i, item := range all {
		for _, on := range item.at("dependsOn").items() {
			when := map[string]string{"Complete": job.WhenDone, "Ready": job.WhenReady}[on.at("status").text()]
			d.after(item, train, []view{on.at("name")}, when)
			on.at("name").markTranslated()
		}
		if i > 0 && inOrder.text() == "InOrder" {
			d.after(item, train, []view{all[i-1].at("name")}, job.WhenReady)
			inOrder.markTranslated()
		}
	}
}

// setSuccess reads which Jobs decide that a set is complete. By default all do, and of one Job any is all.
func (d *draft) setSuccess(spec view, train string) {
	policy, all := spec.at("successPolicy"), spec.at("replicatedJobs").items()
	operator, targets := policy.at("operator"), policy.at("targetReplicatedJobs").items()
	slices, _ := all[0].at("replicas").number()
	if len(targets) == 0 && (operator.text() != "Any" || len(all) == 1 && slices <= 1) {
		if operator.text() == "Any" {
			d.note(operator, Translated, "the set is one Job")
			operator.markTranslated()
		}
		return
	}
	if len(targets) == 0 {
		for _, item := range all {
			targets = append(targets, item.at("name"))
		}
	}
	for _, target := range targets {
		d.add("spec.success.groups", d.groupOf(target.text(), train), target)
	}
	if operator.text() == "Any" {
		d.set("spec.success.when", job.WhenAny, operator)
	}
	policy.at("targetReplicatedJobs").markTranslated()
}

// children reads the child Job, and its replicas as slices of the workers.
func (d *draft) children(child view) {
	d.jobSpec(child.at("template", "spec"))
	slices, ok := child.at("replicas").number()
	pods, isNumber := d.get("spec.workers.replicas").number()
	if !ok || !isNumber || slices <= 1 {
		return
	}
	d.set("spec.workers.replicas", slices*pods, child.at("replicas"))
	d.set("spec.workers.slices", slices, child.at("replicas"))
}

// ofChildren are the names of the pods of each child Job.
func (d *draft) ofChildren(o *object, child view) (all []addresses) {
	n, _ := d.get("spec.workers.slices").number()
	service := cmp.Or(o.view().at("spec", "network", "subdomain").text(), o.name)
	for i := range min(max(n, 1), apis.MostChildJobs) { // the schema refuses more
		all = append(all, addresses{
			fmt.Sprintf("%s-%s-%d-", o.name, child.at("name").text(), i), service,
			fmt.Sprintf("%s-worker-%d-", d.name(), i), d.name(), 0,
		})
	}
	return all
}

// ofGroup are the names of the pods of a group.
func (d *draft) ofGroup(o *object, item view) addresses {
	service := cmp.Or(o.view().at("spec", "network", "subdomain").text(), o.name)
	name := item.at("name").text()
	return addresses{
		fmt.Sprintf("%s-%s-0-", o.name, name), service,
		fmt.Sprintf("%s-%s-0-", d.name(), groupNameOf(name)), d.name(), 0,
	}
}
