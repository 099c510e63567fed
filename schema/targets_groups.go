package schema

// grouped are the frameworks that have groups beside their workers.
var grouped = []string{FrameworkTorchelastic, FrameworkJAX}

// hostsInstead is what takes the place of a coordinator.
const hostsInstead = "the variables TEGEN_<GROUP>_HOST name the first pod of each group"

// workersOnly is a target of one template of pods.
var workersOnly = lacks{
	"groups":                   "it has one template, which is the workers'",
	"groups.after":             "it has one template, so that no pods could wait for others",
	"groups.after=" + WhenDone: "it has one template, so that no pods could wait for others",
	"success":                  "it has no groups beside the workers that could decide it",
	"success=" + WhenAll:       "it has no groups beside the workers that could decide it",
	"coordinator":              "only a JobSet has one",
	"groups.failure":           "it has no groups beside the workers that could fail otherwise",
	"failure.restartAll":       "nobody starts all pods anew together: their controller replaces single ones",
	"failure.rules":            "only a JobSet tells failures of its Jobs apart",

	"failure.restartAllInPlace": "only a JobSet starts all containers anew in their pods",
	"failure.restartAllOn":      "nobody starts all pods anew together",
}

// jobGroupsLack is what Jobs that know nothing of each other cannot do.
var jobGroupsLack = lacks{
	"groups.after":             "each group is a Job of its own, and no Job waits for another",
	"groups.after=" + WhenDone: "each group is a Job of its own, and no Job waits for another",
	"success":                  "each group is a Job of its own, and each must succeed",
	"success=" + WhenAll:       "each group is a Job of its own, and each must succeed",
	"coordinator":              "only a JobSet has one; " + hostsInstead,
	"failure.restartAll":       "a Job that has failed stays so: nobody makes it anew",
	"failure.rules":            "a Job that has failed stays so, whatever the reason: only a JobSet makes it anew",

	"failure.restartAllInPlace": "only a JobSet starts all containers anew in their pods",
	"failure.restartAllOn":      "nobody starts all pods anew together",
}

// seesJobs is what a JobSet cannot do, to which a Job that failed is one like another.
var seesJobs = lacks{
	"failure.restartAllOn": "a JobSet sees Jobs that failed, and no pods: ignoreDisruptions keeps those that were " +
		"evicted from being counted",
}
