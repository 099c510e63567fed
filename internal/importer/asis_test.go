package importer_test

import "testing"

// TestAsItIs: what a Job's program and its limits say is kept, in words of the job's own.
func TestAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]claim{
		"a Job of JAX whose pods are told by others": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/jax:1', command: [python, -c, 'import jax; jax.distributed.initialize()']}]}}}\n",
			unreported: []string{"JAX_", "6666"}, jobs: []string{"launcher: none", `initialize\(\)`},
		},
		"a Job that no index of may fail": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, backoffLimitPerIndex: 0, maxFailedIndexes: 0, template: {spec: " +
				"{restartPolicy: Never, " + trainsBash + "}}}\n",
			reported:   []string{`maxFailedIndexes: 0: translated`, `backoffLimitPerIndex: 0: translated`},
			unreported: []string{"dropped"}, jobs: []string{`restarts: 0`},
		},
		"a Job of which one index may fail": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, backoffLimitPerIndex: 0, maxFailedIndexes: 1, template: {spec: " +
				"{restartPolicy: Never, " + trainsBash + "}}}\n",
			reported: []string{`maxFailedIndexes: 1: dropped`}, jobs: []string{`restartsPerWorker: 0`}, lossy: true,
		},
		"addresses that a shell makes of its arguments": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, subdomain: s, containers: " +
				"[{name: worker, image: 'a/b:1', command: [bash, -c, 'NAME=$0; python t.py --at ${NAME}-0.${1} --as " +
				"$2', j, s, j], env: [{name: OTHER, value: j}]}]}}}\n",
			reported: []string{`translated: the pods j-0 and so on are called j-worker-0 .*: NAME is j-worker`},
			jobs: []string{
				"command:\n(  - .*\n){3}  - j-worker\n  - j-worker\n  - j\n", "name: OTHER\n *value: j\n",
			},
			lossy: true,
		},
		"addresses that a program makes of variables": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, subdomain: s, containers: " +
				"[{name: worker, image: 'a/b:1', command: [bash, -c, 'SVC=s; python t.py --at $NAME-0.$SVC'], env: " +
				"[{name: NAME, value: j}, {name: SUM, value: s}]}]}}}\n",
			jobs: []string{
				`- SVC=j-worker; python t\.py --at \$NAME-0\.\$SVC`, "name: NAME\n *value: j-worker\n",
				"name: SUM\n *value: s\n",
			},
			lossy: true,
		},
		"torchrun's own time to wait with etcd": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {elasticPolicy: " +
				"{minReplicas: 1, maxReplicas: 2, rdzvBackend: etcd, rdzvHost: e, rdzvPort: 2379, maxRestarts: 1}, " +
				"pytorchReplicaSpecs: {Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: " +
				"[{name: pytorch, image: 'a/b:1', command: [torchrun, t.py]}]}}}}}\n",
			unreported: []string{"dropped", "changed"}, jobs: []string{`joinTimeout: 15m`},
		},
		"a JAXJob that ends with the first pod that fails": {
			in: "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: j}\nspec: {runPolicy: {backoffLimit: " +
				"4}, jaxReplicaSpecs: {Worker: {replicas: 2, template: {spec: {" + trainsBash + "}}}}}\n",
			reported: []string{`Worker: .*translated: the first pod that fails ends the job`},
			jobs:     []string{`restarts: 0`}, lossy: true,
		},
		"a JAXJob whose exit codes decide": {
			in: "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: j}\nspec: {jaxReplicaSpecs: {Worker: " +
				"{replicas: 2, restartPolicy: ExitCode, template: {spec: {" + trainsBash + "}}}}}\n",
			reported: []string{`restartPolicy: "ExitCode": dropped`}, lossy: true,
		},
		"a TrainJob that patches its runtime": {
			in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j, namespace: n}\nspec: " +
				"{runtimeRef: {name: torch-distributed}, trainer: {image: 'a/b:1', command: [torchrun, t.py], " +
				"numNodes: 2}, runtimePatches: [{manager: m.io/n, trainingRuntimeSpec: {template: {metadata: " +
				"{labels: {team: blue}}, spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: " +
				"{annotations: {a: b}}, spec: {serviceAccountName: sa, nodeSelector: {c: d}, volumes: [{name: v, " +
				"persistentVolumeClaim: {claimName: data}}], containers: [{name: node, volumeMounts: [{name: v, " +
				"mountPath: /v}]}]}}}}}]}}}}]}\n",
			reported: []string{
				`labels\.team: "blue": dropped: a TrainingJob has none for the JobSet alone`,
				`template\.spec\.template: .*translated: the runtime becomes the job's own`,
			},
			jobs: []string{
				"serviceAccount: sa", "nodeSelector:\n *c: d\n", "claim: data", "mountPath: /v",
				"annotations:\n *a: b\n",
			},
			lossy: true,
		},
		"a TrainJob whose patch fits no pod": {
			in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j, namespace: n}\nspec: " +
				"{runtimeRef: {name: torch-distributed}, trainer: {image: 'a/b:1', command: [torchrun, t.py], " +
				"numNodes: 2}, runtimePatches: [{manager: m.io/n, trainingRuntimeSpec: {template: {spec: " +
				"{replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [node]}}}}}]}}}}]}\n",
			reported: []string{`template: .*unread: it cannot be merged`}, lossy: true,
		},
		"a queue on the pods too": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker, labels: {kueue.x-k8s.io/queue-name: " +
				"q}}\nspec: {completionMode: Indexed, completions: 2, parallelism: 2, template: {metadata: {labels: " +
				"{kueue.x-k8s.io/queue-name: q}}, spec: {restartPolicy: Never, " + trainsBash + "}}}\n",
			reported:   []string{`template\.metadata\.labels.*queue-name"\]: "q": translated: Kueue goes by`},
			unreported: []string{"dropped"}, jobs: []string{`queue: q`},
		},
	} {
		t.Run(name, c.check)
	}
}
