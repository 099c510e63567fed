package meaning

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// group is pods that are alike.
type group struct {
	name           string
	pods           int
	joins          *group // the group whose pods these count among, where nothing but their number tells them apart
	template       node
	at             node              // where the group is said
	restart        string            // what the kubelet, or the controller, does with what ended
	restartAt      node              //
	controller     map[string]string // options of torchrun that the controller sets
	env            map[string]string // variables that it sets for every program
	startsTorchrun bool              // by its image's entrypoint
	own            facts             // what is said of the group outside of its template
	hosts          []hostNames
	words          []hostNames // that programs know the group by, beside its pods' names
}

// host is how the pods of a group are called.
type hostNames struct {
	pattern *regexp.Regexp
	prefix  string
	shift   int
}

// hosts are the names with a number behind a prefix, by themselves or in one of some Services.
func hosts(prefix string, shift int, services ...string) hostNames {
	slices.SortFunc(services, func(a, b string) int { return len(b) - len(a) }) // one may be the beginning of another
	for i := range services {
		services[i] = regexp.QuoteMeta(services[i])
	}
	return hostNames{
		regexp.MustCompile(`\b` + regexp.QuoteMeta(prefix) + `([0-9]+)(\.(?:` + strings.Join(services, "|") +
			`)(\.[a-z0-9-]+\.svc[a-z0-9.-]*|\.[a-z0-9-]+)?)?\b`), prefix, shift,
	}
}

// meeting is how many pods there are with those that join them.
func (g *group) meeting() int {
	if g.joins != nil {
		return g.joins.meeting()
	}
	return cmp.Or(g.own["all pods"].number(), g.pods)
}

func (f Fact) number() int { n, _ := strconv.Atoi(f.Value); return n }

// job is a workload: groups of pods and what is said of them together.
type job struct {
	kind, name string
	root       node
	groups     []*group
	facts      facts
}

// reader makes groups of an object of some kind; it returns the paths that it has read.
type reader func(j *job, spec node) (read []string)

var readers = map[string]reader{
	"Job": readJob, "Pod": readPod, "JobSet": readJobSet, "PyTorchJob": roles("pytorchReplicaSpecs"),
	"TFJob": roles("tfReplicaSpecs"), "JAXJob": roles("jaxReplicaSpecs"), "XGBoostJob": roles("xgbReplicaSpecs"),
	"PaddleJob": roles("paddleReplicaSpecs"), "MXJob": roles("mxReplicaSpecs"), "MPIJob": roles("mpiReplicaSpecs"),
	"ElasticJob": roles("replicaSpecs"), "HyperPodPyTorchJob": readHyperPod, "MxJob": readHyperPod,
}

// usual are the defaults of the kinds' APIs, below spec.
var usual = map[string]string{
	"suspend": "false", "completionMode": "NonIndexed", "backoffLimit": "6", "manualSelector": "false",
	"runPolicy.suspend": "false", "runPolicy.cleanPodPolicy": "None", "cleanPodPolicy": "None",
	"podReplacementPolicy": "TerminatingOrFailed", "schedulerName": "volcano", "queue": "default", "maxRetry": "3",
	"slotsPerWorker":    "1",
	"mpiImplementation": "OpenMPI", "runLauncherAsWorker": "false", "launcherCreationPolicy": "AtStartup",
	"sshAuthMountPath": "/root/.ssh", "startupPolicy.startupPolicyOrder": "AnyOrder", "successPolicy.operator": "All",
	"network.enableDNSHostnames": "true", "network.publishNotReadyAddresses": "true",
	"RunPolicy.cleanPodPolicy": "None", "successPolicy": "", "failurePolicy.maxRestarts": "0",
	"optimizeMode": "single-job",
	"managedBy":    "trainer.kubeflow.org/trainjob-controller",
	"selector":     "{}", "runPolicy": "{}", "RunPolicy": "{}",
}

// jobOf reads one workload.
func jobOf(root node) *job {
	kind := root.at("kind").text()
	read := readers[kind]
	if strings.HasPrefix(root.at("apiVersion").text(), "batch.volcano.sh") {
		kind, read = "vcjob", readVolcano
	}
	if read == nil {
		return nil
	}
	j := &job{kind: kind, name: root.at("metadata", "name").text(), root: root, facts: facts{}}
	j.facts.set("kind", kind+" "+strings.Split(root.at("apiVersion").text(), "/")[0], root.at("kind"))
	for _, list := range []string{"labels", "annotations"} {
		for _, key := range root.at("metadata", list).keys() {
			v := root.at("metadata", list, key)
			j.facts.set("job's "+strings.TrimSuffix(list, "s")+"/"+key, v.text(), v)
		}
	}
	consumed := read(j, root.at("spec"))
	if kind != "Pod" {
		j.facts.rest("", root.at("spec"), consumed, usual)
	}
	for _, name := range []string{ // which older operators have in spec itself
		"cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend",
	} {
		if f, ok := j.facts["runPolicy."+name]; ok {
			delete(j.facts, "runPolicy."+name)
			j.facts[name] = f
		}
	}
	firstFailureEnds(j.facts)
	j.passesOver()
	for _, g := range j.groups {
		if g.own == nil {
			g.own = facts{}
		}
	}
	return j
}

func readPod(j *job, spec node) []string {
	name := strings.TrimRight(j.name, "0123456789")
	j.groups = append(j.groups, &group{
		name: strings.Trim(name, "-"), pods: 1, template: j.root, restart: cmp.Or(spec.at("restartPolicy").text(),
			"Always"), restartAt: spec.at("restartPolicy"), hosts: []hostNames{hosts(name, 0, j.name)},
	})
	return nil
}

func readJob(j *job, spec node) []string {
	g := childJob(j.name, spec, j.facts)
	g.hosts = []hostNames{hosts(j.name+"-", 0, spec.at("template", "spec", "subdomain").text())}
	j.groups = append(j.groups, g)
	return []string{"template", "parallelism", "completions", "completionMode", "podFailurePolicy.rules"}
}

// childJob reads the pods of a Job, and when it has ended.
func childJob(name string, spec node, f facts) *group {
	pods := spec.at("parallelism").number(1)
	switch all := spec.at("completions").number(-1); {
	case all < 0 && pods > 1:
		f.set("ends", "when the first pod has succeeded", spec.at("parallelism"))
	case all >= 0 && all != pods:
		f.set("ends", fmt.Sprintf("when %d have succeeded, %d at a time", all, pods), spec.at("completions"))
	}
	if spec.at("completionMode").text() == "Indexed" {
		f.set("indexed", true, spec.at("completionMode"))
	}
	template := spec.at("template")
	podFailureFacts(f, spec)
	return &group{
		name: name, pods: pods, template: template, restart: template.at("spec", "restartPolicy").text(),
		restartAt: template.at("spec", "restartPolicy"),
	}
}

// refer is a group in the value of a fact: what it is called may change.
func refer(name string) string { return "<" + name + ">" }

// exclusive is JobSet's annotation that gives each Job a domain of the network of its own.
const exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"

func readJobSet(j *job, spec node) []string {
	all := spec.at("replicatedJobs").items()
	for i, item := range all {
		f, name := facts{}, item.at("name").text()
		job := item.at("template", "spec")
		g := childJob(name, job, f)
		replicas := item.at("replicas").number(1)
		g.pods *= replicas
		if replicas > 1 {
			f.set("slices", replicas, item.at("replicas"))
		}
		for _, at := range []node{j.root, item.at("template")} { // of the set, or of one of its Jobs
			if v := at.at("metadata", "annotations", exclusive); v.isSet() {
				f.set("each Job in one domain", v.text(), v)
				delete(j.facts, "job's annotation/"+exclusive)
			}
		}
		var waits []string
		for _, on := range item.at("dependsOn").items() {
			waits = append(waits, refer(on.at("name").text())+" "+on.at("status").text())
		}
		if i > 0 && spec.at("startupPolicy", "startupPolicyOrder").text() == "InOrder" {
			waits = append(waits, refer(all[i-1].at("name").text())+" Ready")
		}
		f.set("starts after", strings.Join(waits, ", "), item.at("dependsOn"))
		f.rest("", item, []string{
			"name", "replicas", "template.spec", "dependsOn", "template.metadata.annotations." + exclusive,
		}, map[string]string{"groupName": "default"})
		// The controller suspends Jobs as the set is, whatever their template says (constructJob).
		f.rest("", job, []string{
			"template", "parallelism", "completions", "completionMode", "podFailurePolicy.rules", "suspend",
		}, usual)
		failureFacts(f, spec.at("failurePolicy", "rules"), name, job)
		firstFailureEnds(f)
		g.own, g.at = f, item
		g.restart = cmp.Or(g.restart, "OnFailure") // by JobSet's webhook
		subdomain := cmp.Or(spec.at("network", "subdomain").text(), j.name)
		for r := range replicas {
			g.hosts = append(g.hosts, hosts(fmt.Sprintf("%s-%s-%d-", j.name, name, r),
				r*max(1, g.pods/replicas), subdomain))
		}
		j.groups = append(j.groups, g)
	}
	var counted []string
	for _, target := range spec.at("successPolicy", "targetReplicatedJobs").items() {
		counted = append(counted, refer(target.text()))
	}
	slices.Sort(counted)
	j.facts.set("succeeds by", strings.Join(counted, ", "), spec.at("successPolicy"))
	if pod := spec.at("coordinator"); pod.isSet() {
		j.facts.set("coordinator", fmt.Sprint(refer(pod.at("replicatedJob").text()), pod.at("jobIndex").number(0),
			pod.at("podIndex").number(0)), pod)
	}
	return []string{
		"replicatedJobs", "network.subdomain", "successPolicy.targetReplicatedJobs", "coordinator",
		"startupPolicy.startupPolicyOrder", "failurePolicy.rules",
	}
}

func readVolcano(j *job, spec node) []string {
	all := 0
	for _, task := range spec.at("tasks").items() {
		f := facts{}
		n := task.at("replicas").number(1)
		all += n
		if least := task.at("minAvailable"); least.number(n) != n {
			f.set("minAvailable", least.text(), least)
		}
		policyFacts(f, task)
		var waits []string
		for _, name := range task.at("dependsOn", "name").texts() {
			waits = append(waits, refer(name))
		}
		f.set("starts after", strings.Join(waits, ", "), task.at("dependsOn"))
		if !task.at("template", "spec", "schedulerName").isSet() { // which the controller fills in, createJobPod
			f.set("schedulerName", cmp.Or(spec.at("schedulerName").text(), "volcano"), spec.at("schedulerName"))
		}
		f.rest("task's ", task, []string{
			"name", "replicas", "template", "minAvailable", "policies", "dependsOn.name",
		}, map[string]string{
			"maxRetry": "3",
		})
		template := task.at("template")
		g := &group{
			name: task.at("name").text(), pods: n, template: template, own: f, at: task,
			restart:   cmp.Or(template.at("spec", "restartPolicy").text(), "Always"),
			restartAt: template.at("spec", "restartPolicy"),
			hosts:     []hostNames{hosts(j.name+"-"+task.at("name").text()+"-", 0, j.name)},
			words:     taskWords(task.at("name").text()),
		}
		if spec.at("plugins", "pytorch").isSet() {
			g.env = map[string]string{"MASTER_ADDR": "first", "MASTER_PORT": "", "WORLD_SIZE": "", "RANK": ""}
		}
		j.groups = append(j.groups, g)
	}
	if svc := spec.at("plugins", "svc"); svc.isSet() && !slices.Contains(svc.texts(), "--disable-network-policy=true") {
		j.facts.set("isolated", "only the job's own pods connect to them", svc)
	}
	j.facts.set("placed together", spec.at("minAvailable").number(all), spec.at("minAvailable"))
	j.pluginFacts(spec.at("plugins"))
	policyFacts(j.facts, spec)
	return []string{"tasks", "minAvailable", "plugins", "policies"}
}

// policyFacts are what Volcano does on which event: the first policy of an event counts.
func policyFacts(f facts, of node) {
	for _, policy := range of.at("policies").items() {
		events := append(policy.at("events").texts(), policy.at("event").text())
		if code := policy.at("exitCode"); code.isSet() {
			events = append(events, "exit code "+code.text())
		}
		for _, event := range events {
			if _, known := f["on "+event]; !known && event != "" {
				f.set("on "+event, policy.at("action").text(), policy)
			}
		}
	}
}

// controllersEnv are the variables that a controller sets.
var controllersEnv = map[string][]string{
	"TFJob": {"TF_CONFIG"}, "JAXJob": {"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"},
	"XGBoostJob": {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_ADDRS", "WORKER_PORT"},
	"PaddleJob":  {"PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER"},
}

// roles reads the kinds of the training operator and its like, which have a mapping of roles.
func roles(field string) reader {
	return func(j *job, spec node) []string {
		key := field
		for _, name := range spec.keys() {
			if strings.EqualFold(name, field) {
				key = name
			}
		}
		all := spec.at(key)
		master := all.at("Master").isSet() && j.kind == "PyTorchJob"
		total := 0
		for _, name := range all.keys() {
			total += all.at(name, "replicas").number(1)
		}
		for _, name := range all.keys() {
			j.groups = append(j.groups, roleGroup(j, name, all.at(name), master))
		}
		for _, g := range j.groups {
			if master {
				g.own.set("all pods", total, all)
				g.controller = map[string]string{
					"nnodes": strconv.Itoa(total), "nproc-per-node": cmp.Or(spec.at("nprocPerNode").text(), "auto"),
				}
				g.env = map[string]string{"MASTER_ADDR": "", "MASTER_PORT": "", "WORLD_SIZE": "", "RANK": ""}
			}
			if j.kind == "PyTorchJob" && spec.at("elasticPolicy").isSet() {
				g.controller = elasticPolicy(spec, g.pods)
			}
			if j.kind == "ElasticJob" && spec.at("rdzvEndpoint").isSet() {
				g.controller = map[string]string{
					"rdzv-backend": "etcd", "rdzv-endpoint": spec.at("rdzvEndpoint").text(),
					"nnodes":       spec.at("minReplicas").text() + ":" + spec.at("maxReplicas").text(),
					"max-restarts": "3", // torchelastic's own
				}
				g.startsTorchrun = true
			}
		}
		read := []string{key, "nprocPerNode", "minReplicas", "maxReplicas", "rdzvEndpoint"}
		for _, name := range []string{
			"minReplicas", "maxReplicas", "rdzvBackend", "rdzvHost", "rdzvPort", "rdzvId", "rdzvConf", "maxRestarts",
			"nProcPerNode", "standalone",
		} {
			read = append(read, "elasticPolicy."+name)
		}
		if j.kind == "MXJob" && j.root.at("apiVersion").text() == "kubeflow.org/v1" {
			// Only v1beta1 has the field (kubeflow/mxnet-operator v1.1.0, pkg/apis/mxnet; kubeflow/training-operator
			// v1.8.1, pkg/apis/kubeflow.org/v1/mxnet_types.go).
			read = append(read, "successPolicy")
		}
		if slices.ContainsFunc(j.groups, func(g *group) bool { return !requestsCPU(g.template.at("spec")) }) {
			read = append(read, "elasticPolicy.metrics")
		}
		return read
	}
}

// requestsCPU says whether all containers of a pod do. Without it a HorizontalPodAutoscaler knows no percentage of it,
// and changes nothing (kubernetes.io, Horizontal Pod Autoscaling, "How does a HorizontalPodAutoscaler work?").
func requestsCPU(pod node) bool {
	return !slices.ContainsFunc(pod.at("containers").items(), func(c node) bool {
		r := c.at("resources")
		return r.at("requests", "cpu").text()+r.at("limits", "cpu").text() == ""
	})
}

// restartOfRole is what a controller does where a role says nothing.
var restartOfRole = map[string]string{
	"PyTorchJob": "OnFailure", "TFJob": "Never", "JAXJob": "Never", "XGBoostJob": "Never", "PaddleJob": "Never",
	"MXJob": "Never", "MPIJob": "Never",
} // and of MPIJob's Launcher OnFailure, but in v1 (training-operator 1.7, pkg/apis/kubeflow.org/v1/mpi_defaults.go)

func roleGroup(j *job, name string, role node, master bool) *group {
	f := facts{}
	f.rest("role's ", role, []string{"replicas", "template", "restartPolicy"}, nil)
	g := &group{
		name: strings.ToLower(name), pods: role.at("replicas").number(1), template: role.at("template"), own: f,
		at: role,
		restart: cmp.Or(role.at("restartPolicy").text(), restartOfRole[j.kind],
			role.at("template", "spec", "restartPolicy").text()), restartAt: role.at("restartPolicy"),
	}
	if j.kind == "MPIJob" && name == "Launcher" && !role.at("restartPolicy").isSet() && !j.byExec() {
		g.restart = "OnFailure"
	}
	if j.kind == "MPIJob" && !j.byExec() {
		g.behindMPI(j)
	}
	if j.kind == "ElasticJob" && role.at("restartPolicy").text() == "" {
		g.restartAt = role.at("template", "spec", "restartPolicy")
		g.restart = g.restartAt.text()
		if j.root.at("spec", "distributionStrategy").text() == "AllreduceStrategy" {
			// DLRover's master makes all pods with Never, and replaces those that fail as for Always (v0.3.6 to v0.6.1,
			// dlrover/python/master/main.py, update_context, and master/scaler/pod_scaler.py, _create_pod_obj).
			g.restart = "by the master"
		}
	}
	shift := 0
	if master && name == "Worker" {
		shift = 1
	}
	g.hosts = []hostNames{hosts(j.name+"-"+g.name+"-", shift, j.name+"-"+g.name+"-0", j.name, j.name+"-worker")}
	for _, variable := range controllersEnv[j.kind] {
		if g.env == nil {
			g.env = map[string]string{}
		}
		g.env[variable] = ""
	}
	return g
}

// elasticPolicy is what the operator makes variables of.
func elasticPolicy(spec node, pods int) map[string]string {
	policy := spec.at("elasticPolicy")
	least, most := policy.at("minReplicas").text(), policy.at("maxReplicas").text()
	least = cmp.Or(least, most, strconv.Itoa(pods))
	out := map[string]string{
		"nnodes":         least + ":" + cmp.Or(most, least),
		"nproc-per-node": cmp.Or(policy.at("nProcPerNode").text(), spec.at("nprocPerNode").text(), "auto"),
		"rdzv-backend":   cmp.Or(policy.at("rdzvBackend").text(), "c10d"),
		"max-restarts":   cmp.Or(policy.at("maxRestarts").text(), "0"),
	}
	if host := policy.at("rdzvHost").text(); host != "" {
		out["rdzv-endpoint"] = host + ":" + policy.at("rdzvPort").text()
	}
	var pairs []string
	for _, p := range policy.at("rdzvConf").items() {
		pairs = append(pairs, p.at("key").text()+"="+p.at("value").text())
	}
	if len(pairs) > 0 {
		out["rdzv-conf"] = strings.Join(pairs, ",")
	}
	return out
}

// readHyperPod reads kinds whose roles are a list.
func readHyperPod(j *job, spec node) []string {
	for _, item := range spec.at("replicaSpecs").items() {
		name := cmp.Or(item.at("name").text(), strings.ToLower(item.at("mxReplicaType").text()), "worker")
		f := facts{}
		f.rest("role's ", item, []string{"replicas", "template", "name", "mxReplicaType"}, nil)
		g := &group{
			name: name, pods: item.at("replicas").number(1), template: item.at("template"), own: f,
			at:      item,
			restart: item.at("template", "spec", "restartPolicy").text(),
		}
		if j.kind == "HyperPodPyTorchJob" {
			g.controller = map[string]string{"nnodes": strconv.Itoa(g.pods), "rdzv-backend": "c10d"}
		}
		j.groups = append(j.groups, g)
	}
	slices.SortStableFunc(j.groups, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	return []string{"replicaSpecs"}
}
