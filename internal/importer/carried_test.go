package importer_test

import "testing"

const plainJob = `containers: [{name: c, image: "a/b:1", command: [sh, -c, "echo hello"], resources: {requests: ` +
	`{cpu: 1}}}]`

// TestCarried: what a pod, a queue or a gang is told, the job tells it too.
func TestCarried(t *testing.T) {
	t.Parallel()
	set := func(beside, deadline string) string {
		return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {" +
			"replicatedJobs: [{name: w, template: {spec: {parallelism: 2, completions: 2, backoffLimit: " +
			"0, template: {spec: {restartPolicy: Never, serviceAccountName: trainer, " + deadline + trainsBash +
			"}}}}}" + beside + "]}\n"
	}
	for name, c := range map[string]claim{
		"a gang smaller than the job, of pods that need no others": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, minAvailable: 2, tasks: [{name: worker, replicas: 5, template: {spec: {" +
				"restartPolicy: Never, " + plainJob + "}}}]}\n",
			unreported: []string{"refused", "changed"},
			jobs:       []string{`minAvailable: 2`, `replicas: 5`, `launcher: none`},
		},
		"the labels of a task without a name": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, tasks: [{replicas: 2, template: {metadata: {labels: {pool: a}}, spec: " +
				"{restartPolicy: Never, " + plainJob + "}}}]}\n",
			unreported: []string{"dropped"}, jobs: []string{`labels:\n +pool: a`},
		},
		"a part of a Job that Kueue may admit": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}, " +
				"annotations: {kueue.x-k8s.io/job-min-parallelism: '3'}}\nspec: {parallelism: 8, completions: 8, " +
				"suspend: true, template: {spec: {restartPolicy: Never, " + plainJob + "}}}\n",
			unreported: []string{"refused", "min-parallelism"},
			jobs:       []string{`kueue.x-k8s.io/job-min-parallelism: "3"`},
			lossy:      true, // its name gets an end
		},
		"for how long a pod may run": {
			in:         set("", "activeDeadlineSeconds: 600, "),
			unreported: []string{"activeDeadlineSeconds"}, jobs: []string{`activeDeadlineSeconds: 600`},
		},
		"an account that the others do not have": {
			in: set(", {name: side, template: {spec: {template: {spec: {restartPolicy: Never, "+
				plainJob+"}}}}}", ""),
			jobs: []string{`serviceAccount: trainer`, `serviceAccountName: default`},
		},
		"a network that the others do not have": {
			in: set(", {name: side, template: {spec: {suspend: true, template: {spec: {restartPolicy: Never, "+
				plainJob+"}}}}}", "hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, "),
			jobs: []string{`host: true`, `hostNetwork: false`, `dnsPolicy: ClusterFirst`},
		},
		"a rule of a Job without the status of its condition": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"backoffLimit: 3, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: " +
				"DisruptionTarget}]}]}, template: {metadata: {annotations: " +
				"{kubectl.kubernetes.io/default-container: c}}, spec: {restartPolicy: Never, " + trainsBash + "}}}\n",
			unreported: []string{"podFailurePolicy"},
		},
		"what the first MPI operator does with a launcher that failed": {
			in:   mpijob("v1alpha2"),
			jobs: []string{`launcherRestart: OnFailure`}, lossy: true,
		},
		"what the second MPI operator does with it": {
			in:     mpijob("v1"),
			silent: []string{"launcherRestart: OnFailure"}, lossy: true,
		},
		"a queue of Kueue, which knows no MXJobs": {
			in: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: " +
				"q}}\nspec: {jobMode: MXTrain, mxReplicaSpecs: {Scheduler: {template: {spec: {" + trainsBash + "}}}, " +
				"Server: {template: {spec: {" + trainsBash + "}}}, Worker: {template: {spec: {" + trainsBash +
				"}}}}}\n",
			reported: []string{`queue-name.*changed: spec.gang.scheduler`}, silent: []string{"gang:"}, lossy: true,
		},
		"the name of a coordinator": {
			in: "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {coordinator: " +
				"{replicatedJob: w}, replicatedJobs: [{name: w, template: {spec: {parallelism: 2, completions: 2, " +
				"backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'a/b:1', " +
				"command: [python, t.py], env: [{name: HEAD, valueFrom: {fieldRef: {fieldPath: " +
				"\"metadata.labels['jobset.sigs.k8s.io/coordinator']\"}}}, {name: SET, valueFrom: {fieldRef: " +
				"{fieldPath: \"metadata.labels['jobset.sigs.k8s.io/jobset-name']\"}}}]}]}}}}}]}\n",
			unreported: []string{"hold together"}, jobs: []string{`coordinator:\n +group: worker`},
		},
	} {
		t.Run(name, c.check)
	}
}

// mpijob is an MPIJob of some version that says nothing of restarts, whose image brings its own sshd.
func mpijob(version string) string {
	return "apiVersion: kubeflow.org/" + version + "\nkind: MPIJob\nmetadata: {name: j}\nspec: {mpiReplicaSpecs: " +
		"{Launcher: {template: {spec: {containers: [{name: l, image: 'a/b:1', command: [mpirun, -n, '2', " +
		"python, t.py]}]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: 'a/b:1'}]}}}}}\n"
}

// TestXGBoost: its master and workers are told of each other as before, by the same operator.
func TestXGBoost(t *testing.T) {
	t.Parallel()
	role := func(name, count, args string) string {
		return name + ": {" + count + "template: {spec: {containers: [{name: xgboost, image: 'a/b:1', command: [" +
			"python, t.py], args: [" + args + "], ports: [{name: xgboostjob-port, containerPort: 9991}]}]}}}"
	}
	job := func(roles string) string {
		return "apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: j}\nspec: {runPolicy: {backoffLimit: " +
			"4}, xgbReplicaSpecs: {" + roles + "}}\n"
	}
	for name, c := range map[string]claim{
		"a master and workers": {
			in:       job(role("Master", "replicas: 1, ", "a") + ", " + role("Worker", "replicas: 2, ", "a")),
			reported: []string{`XGBoostJob j: translated: it becomes a PyTorchJob`},
			jobs: []string{
				`target: pytorchjob`, `master: true`, `replicas: 3`, `restarts: 4`,
				`name: WORKER_PORT\n +value: "9991"`,
				`value: j-worker-0,j-worker-1`,
			},
			lossy: true,
		},
		"another program in the master": {
			in:       job(role("Master", "", "first") + ", " + role("Worker", "", "rest")),
			reported: []string{`xgbReplicaSpecs\.Master\..*args.*dropped`}, lossy: true,
		},
		"alone": {
			in: job(role("Master", "replicas: 1, ", "a")), jobs: []string{`replicas: 1`},
			silent: []string{"WORKER_ADDRS"}, lossy: true,
		},
	} {
		t.Run(name, c.check)
	}
}
