package importer_test

import (
	"strings"
	"testing"
)

// jobSetNamed is a JobSet j of a Job of a name and two pods, with further fields of its container.
func jobSetNamed(name, fields string) string {
	return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {replicatedJobs: [{name: " +
		name + ", template: {spec: {completionMode: Indexed, completions: 2, parallelism: 2, backoffLimit: 0, " +
		"template: " +
		"{spec: {restartPolicy: Never, containers: [{name: worker, image: 'a/b:1', " + fields + "}]}}}}}]}\n"
}

func jobNamed(name, fields string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + "}\nspec: {completionMode: Indexed, " +
		"completions: 2, parallelism: 2, backoffLimit: 0, template: {spec: {restartPolicy: Never, " + fields + "}}}\n"
}

func shell(text string) string {
	return "containers: [{name: worker, image: 'a/b:1', command: [bash, -c, '" + text + "']}]"
}

// TestStaleNames: a name of pods that nobody has any more is reported where it stands, and one that is kept is not.
func TestStaleNames(t *testing.T) {
	t.Parallel()
	const stale = "pods of the source have such names. Those of the job are called j-worker-"
	master := "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {elasticPolicy: " +
		"{minReplicas: 1, maxReplicas: 3}, pytorchReplicaSpecs: {" +
		"Master: {restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: 'a/b:1', " +
		"command: [torchrun, t.py, PEER]}]}}}, Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: " +
		"{containers: [{name: pytorch, image: 'a/b:1', command: [torchrun, t.py, PEER]}]}}}}}\n"
	for name, c := range map[string]claim{
		"a prefix in a variable": {
			in: jobSetNamed("slice", "command: [python, t.py], env: [{name: P, value: j-slice-}]"),
			reported: []string{`env\[0\]: "j-slice-": changed: spec\.env\[0\]\.value of the job: ` +
				`` + stale}, lossy: true,
		},
		"a name that a shell puts together": {
			in:       jobSetNamed("slice", "command: [bash, -c, 'ping j-slice-0-$I.j']"),
			reported: []string{`command\[2\]: "j-slice-0": changed: ` + `spec\.command\[2\] of the job: ` + stale},
			lossy:    true,
		},
		"a name that Python puts together": {
			in:       jobSetNamed("slice", `command: [python, -c, 'dial(f"j-slice-{i}-0.j:80")']`),
			reported: []string{`command\[2\]: "j-slice-": changed`}, lossy: true,
		},
		"the names of a group that keeps its own": {
			in: strings.Replace(jobSetNamed("worker", "command: [python, t.py, j-ps-0-0.j, 'j-worker-0-$I']"),
				"replicatedJobs: [", "replicatedJobs: [{name: ps, template: {spec: {completionMode: Indexed, "+
					"backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: ps, image: "+
					"'a/b:1', command: [serve, j-worker-]}]}}}}}, ", 1),
			unreported: []string{"such names"}, jobs: []string{"j-ps-0-0"},
		},
		"words that only begin so": {
			in: jobSetNamed("slice", "command: [python, t.py, --out=/data/j-slice-0, --config=j-slice-config.yaml, "+
				"--x=my-j-slice-0]"),
			unreported: []string{"such names"},
		},
		"another subdomain": {
			in: strings.Replace(jobSetNamed("worker", "command: [bash, -c, 'ping $HOST.old.ns.svc']"),
				"spec: {", "spec: {network: {subdomain: old}, ", 1),
			reported: []string{`command\[2\]: "\.old": changed: .*resolve behind Service old\. .* behind ` +
				`j\.`}, lossy: true,
		},
		"a Job that gets an end": {
			in: jobNamed("j", "subdomain: j, "+shell("ping j-$I")),
			reported: []string{`command\[2\]: "j-": changed: ` + `spec\.command\[2\] of the job: ` +
				`` + stale}, lossy: true,
		},
		"a Job's own host": {
			in:       jobNamed("j", shell("test $(hostname) = j-0; train")),
			reported: []string{`the pods j-0 and so on are called`}, lossy: true,
		},
		"the name of a Job as a word": {
			in: jobNamed("llama", "containers: [{name: worker, image: 'a/b:1', command: [python, t.py, "+
				"--model=llama-$SIZE, "+
				"--run=llama]}]"),
			unreported: []string{"such names"}, lossy: true, // its name
		},
		"a Service that selects a Job's pods": {
			in: jobNamed("j", "subdomain: s, containers: [{name: worker, image: 'a/b:1', command: [python, t.py]}]") +
				"---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None, selector: " +
				"{job-name: j}}\n",
			reported: []string{`Service s: spec\.selector\.job-name: "j": changed: label job-name has another value`},
			lossy:    true,
		},
		"a script beside": {
			in: jobSetNamed("slice", "command: [bash, /s/run.sh]") + "---\napiVersion: v1\nkind: " +
				"ConfigMap\nmetadata: " +
				"{name: s}\ndata: {run.sh: 'ssh j-slice-0-1.j train'}\n",
			reported: []string{`ConfigMap s: data\["run\.sh"\]: "j-slice-0": changed: ` + stale}, lossy: true,
		},
		"a label in a variable": {
			in: jobSetNamed("slice", "command: [python, t.py], env: [{name: R, valueFrom: {fieldRef: {fieldPath: "+
				"\"metadata.labels['jobset.sigs.k8s.io/replicatedjob-name']\"}}}]"),
			reported: []string{`env\[0\]: .*changed: spec\.env\[0\]\.field of the job: label jobset`}, lossy: true,
		},
		"a master that becomes a worker": {
			in:       strings.ReplaceAll(master, "PEER", "j-master-0:29500"),
			reported: []string{`the pods j-master-0 and so on are called`}, unreported: []string{"such names"},
			lossy: true, // torchrun's restarts
		},
		"workers whose numbers move": {
			in: strings.ReplaceAll(master, "PEER", "'j-worker-$I'"),
			reported: []string{`command.*: "j-worker-": changed: .*: pod 0 of the source is pod 1 of the ` +
				`job`}, lossy: true,
		},
		"a task whose group gets an end": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, " +
				"plugins: {svc: []}, tasks: [{name: scheduler, template: {spec: {restartPolicy: Never, " +
				"containers: [{name: " +
				"s, image: 'a/b:1', command: [x]}]}}}, {name: worker, template: {spec: {restartPolicy: Never, " +
				"containers: " +
				"[{name: w, image: 'a/b:1', command: [python, t.py, j-scheduler-0.j]}]}}}]}\n",
			unreported: []string{"such names"}, jobs: []string{`j-scheduler-0-0\.j`}, lossy: true,
		},
	} {
		t.Run(name, c.check)
	}
}
