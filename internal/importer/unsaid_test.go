package importer_test

import "testing"

// TestUnsaid: what a source leaves to its controller, the job leaves to it too, or a line says what becomes of it.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]claim{
		"no limit on restarts and no clean-up": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: " +
				"{pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure, template: {spec: {" + trainsAlone +
				"}}}}}\n",
			unreported: []string{"backoffLimit", "cleanPodPolicy"}, jobs: []string{`restarts: none`, `cleanPods: none`},
		},
		"a clean-up of its own": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {runPolicy: " +
				"{cleanPodPolicy: All, backoffLimit: 6}, pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure, " +
				"template: {spec: {" + trainsAlone + "}}}}}\n",
			jobs: []string{`cleanPods: all`}, unreported: []string{"dropped"},
		},
		"an ElasticJob without limits": {
			in: "apiVersion: elastic.pytorch.org/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: " +
				"{rdzvEndpoint: 'etcd:2379', minReplicas: 1, maxReplicas: 2, replicaSpecs: {Worker: {replicas: 1, " +
				"restartPolicy: OnFailure, template: {spec: {" +
				"containers: [{name: w, image: 'a/b:1', args: ['--nproc_per_node=1', t.py]}]}}}}}\n",
			unreported: []string{"backoffLimit", "cleanPodPolicy"}, jobs: []string{`restarts: none`, `cleanPods: none`},
		},
		"an ElasticJob whose killed pods alone are made again": {
			in: elasticJobOf("ExitCode", ""), jobs: []string{`failure:\n +restartsPerWorker: 0\n`},
			unreported: []string{"restartPolicy", "dropped"},
		},
		"an ElasticJob with a limit that nobody counts to": {
			in: elasticJobOf("ExitCode", "backoffLimit: 4"), jobs: []string{`failure:\n +restartsPerWorker: 0\n`},
			reported: []string{`backoffLimit: 4: dropped: under ExitCode the controller counts no`}, lossy: true,
		},
		"an ElasticJob that the first failure ends, whatever it was": {
			in: elasticJobOf("ExitCode", "backoffLimit: 0"), jobs: []string{`failure:\n +restarts: 0\n`},
			reported: []string{`restartPolicy: "ExitCode": dropped`}, lossy: true,
		},
		"an ElasticJob whose pods are not made again": {
			in: elasticJobOf("Never", ""), jobs: []string{`failure:\n +restarts: 0\n`},
			reported: []string{`restartPolicy: "Never": translated: the first failed worker ends the job`},
		},
		"the clean-up of the first MPI operator": {
			in: "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: j}\nspec: {cleanPodPolicy: " +
				"Running, slotsPerWorker: 1, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, " +
				"image: 'a/horovod:1', command: [horovodrun, -np, '1', python, t.py]}]}}}, Worker: {replicas: 1, " +
				"template: {spec: {containers: [{name: w, image: 'a/horovod:1'}]}}}}}\n",
			reported:   []string{"apiVersion: .*changed"},
			unreported: []string{"cleanPodPolicy: .*dropped"}, lossy: true,
		},
		"a Volcano Job without policies": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: " +
				"{schedulerName: volcano, maxRetry: 5, tasks: [{name: worker, template: {spec: {" +
				"restartPolicy: Never, " + trainsBash + "}}}]}\n",
			unreported: []string{"RestartPod"}, jobs: []string{`restartsPerWorker: 0`},
		},
		"a Volcano Job whose pods start again in place": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, tasks: [{name: worker, template: {spec: {" + trainsBash + "}}}]}\n",
			reported: []string{`restartPolicy: changed: without a restartPolicy`}, lossy: true,
		},
		"a Job of one program with a port without a name": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {completionMode: Indexed, " +
				"parallelism: 2, completions: 2, template: {spec: {restartPolicy: OnFailure, containers: " +
				"[{name: main, image: 'a/b:1', command: [python, t.py], ports: [{containerPort: 3389}]}]}}}\n",
			unreported: []string{"Probe", "PET_"}, jobs: []string{`inPlace: true`, `launcher: none`},
			lossy: true, // its name gets an end
		},
		"an ElasticJob whose pods start again in place": {
			in: "apiVersion: elastic.pytorch.org/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: " +
				"{rdzvEndpoint: 'etcd:2379', minReplicas: 1, maxReplicas: 2, replicaSpecs: {Worker: {replicas: 1, " +
				"template: {spec: {" +
				"containers: [{name: w, image: 'a/b:1', args: ['--nproc_per_node=1', t.py]}]}}}}}\n",
			reported: []string{`restartPolicy: changed: without a restartPolicy`}, lossy: true,
		},
		"a Volcano Job that replaces pods": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: " +
				"{schedulerName: volcano, policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: worker, " +
				"template: {spec: {restartPolicy: Never, " + trainsBash + "}}}]}\n",
			unreported: []string{"policies", "restartsPerWorker"}, jobs: []string{`restarts: 2`},
		},
		"a toleration without its operator": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, " +
				"parallelism: 1, template: {spec: {restartPolicy: Never, " +
				"tolerations: [{key: pool, value: gpu, effect: NoSchedule}], " + trainsBash + "}}}\n",
			jobs: []string{`placement:\n +tolerations:`}, unreported: []string{"tolerations"},
		},
	} {
		t.Run(name, c.check)
	}
}

// TestAmounts: what a container asks for is what the job says, whatever its name, and what has no value is told.
func TestAmounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]claim{
		"an accelerator without a number": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {limits: {nvidia.com/gpu: , cpu: 2}}}]}}}\n",
			reported: []string{`limits\["nvidia.com/gpu"\]: error: has no value`}, invalid: true,
		},
		"a number without a value": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, creationTimestamp: " +
				"null}\nspec: {pytorchReplicaSpecs: {Worker: {replicas: , template: {metadata: {creationTimestamp: " +
				"null}, spec: {nodeSelector: , containers: [{name: pytorch, image: 'a/b:1', command: [torchrun, " +
				"t.py], env: [{name: X, value: }]}]}}}}}\n",
			reported:   []string{`Worker\.replicas: error: has no value`},
			unreported: []string{"creationTimestamp", "nodeSelector", "value: error"}, invalid: true,
		},
		"an amount that is an empty text": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {requests: {cpu: ''}, limits: {memory: '', " +
				"cpu: 2}}}]}}}\n",
			reported:   []string{`limits\.memory: "": error: has no value`, `requests\.cpu: "": error: has no value`},
			unreported: []string{"4Gi"}, jobs: []string{`memory: none`, `cpu: "?2"?\n`}, invalid: true, lossy: true,
		},
		"an image that is an empty text": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: '', command: [python, t.py]}]}}}\n",
			reported: []string{`image: "": error: has no value`}, invalid: true,
		},
		"an MXJob without servers": {
			in: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: j}\nspec: {jobMode: MXTrain, " +
				"mxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1', command: " +
				"[python, t.py]}]}}}}}\n",
			reported: []string{`mxReplicaSpecs: .*changed: it trained without servers`}, lossy: true,
		},
		"a label without a value": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, nodeSelector: {pool: }, " +
				trainsBash + "}}}\n",
			reported: []string{`nodeSelector\.pool: error: has no value: an empty text`, `"c": translated`},
			jobs:     []string{`pool: ""`},
		},
		"memory of an accelerator is none": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {limits: {volcano.sh/gpu-memory: 1024}}}]}}}\n",
			unreported: []string{"error"},
			jobs:       []string{`devices:\n +volcano.sh/gpu-memory: 1024`},
		},
		"a vendor's own name goes first": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {limits: {aliyun.com/gpu-mem: 8, " +
				"hami.io/a-gpu: 4, nvidia.com/gpu: 1}}}]}}}\n",
			jobs: []string{`gpu: 1\n`, `aliyun.com/gpu-mem: 8`, `hami.io/a-gpu: 4`},
		},
		"cards of Volcano": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {limits: {volcano.sh/gpu-number: 2}}}]}}}\n",
			jobs: []string{`gpu: 2\n`, `gpuResource: volcano.sh/gpu-number`},
		},
		"requests that podTemplate keeps": {
			in: "apiVersion: elastic.iml.github.io/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: " +
				"{distributionStrategy: AllreduceStrategy, replicaSpecs: {worker: {replicas: 2, template: {spec: " +
				"{restartPolicy: Always, containers: [{name: main, image: 'a/b:1', command: [dlrover-run, " +
				"--nnodes=2, t.py], resources: {requests: {cpu: 4, memory: 8Gi}, limits: {cpu: 8, memory: " +
				"8Gi}}}]}}}}}\n",
			jobs: []string{`requests:\n +cpu: 4`}, unreported: []string{"changed", "requests"},
		},
		"processes that the runtime says": {
			in:         trainJobOn("numProcPerNode: 4", "", "env: [{name: A, value: own}, {name: B, value: b}]"),
			reported:   []string{`env\[0\]: .*translated: the TrainJob's own A stands for it`},
			unreported: []string{"error", "numProcPerNode.*dropped"},
			jobs:       []string{`processes: 4`, `value: own`}, lossy: false,
		},
		"processes that the TrainJob says": {
			in:       trainJobOn("numProcPerNode: 4", "numProcPerNode: 2, ", ""),
			reported: []string{`numProcPerNode: 4: translated: the TrainJob's own number, 2`},
			jobs:     []string{`processes: 2`},
		},
		"a role whose command is its image's": {
			in: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: j}\nspec: {jobMode: MXTrain, " +
				"mxReplicaSpecs: {Scheduler: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1'}]}}}, " +
				"Server: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1'}]}}}, Worker: {template: " +
				"{spec: {containers: [{name: mxnet, image: 'a/b:1', command: [python, t.py]}]}}}}}\n",
			jobs: []string{`servers:\n +entrypoint: true\n`}, unreported: []string{"changed", "dropped"},
		},
		"a scheduler and servers with programs of their own": {
			in: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: j}\nspec: {jobMode: MXTrain, " +
				"mxReplicaSpecs: {Scheduler: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1'}]}}}, " +
				"Server: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1', command: [serve], args: " +
				"[x]}]}}}, Worker: {template: {spec: {containers: [{name: mxnet, image: 'a/b:1', command: [python, " +
				"t.py]}]}}}}}\n",
			jobs: []string{
				`servers:\n +entrypoint: true\n`, `name: server\n +args:\n +- x\n +command:\n +- serve\n`,
			},
			unreported: []string{"changed", "dropped"},
		},
		"a policy that kubeflow.org/v1 has not": {
			in: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: j}\nspec: {jobMode: MXTrain, " +
				"successPolicy: AllWorkers, mxReplicaSpecs: {Scheduler: {template: {spec: {containers: [{name: " +
				"mxnet, image: 'a/b:1', command: [bpslaunch]}]}}}, Server: {template: {spec: {containers: [{name: " +
				"mxnet, image: 'a/b:1', command: [bpslaunch]}]}}}, Worker: {template: {spec: {containers: [{name: " +
				"mxnet, image: 'a/b:1', command: [bpslaunch, python, t.py]}]}}}}}\n",
			reported: []string{`successPolicy: "AllWorkers": dropped: kubeflow.org/v1 has no such field`}, lossy: true,
		},
		"a strategy that nobody names": {
			in: "apiVersion: elastic.iml.github.io/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: " +
				"{replicaSpecs: {worker: {replicas: 2, template: {spec: {restartPolicy: Never, containers: " +
				"[{name: main, image: 'a/b:1', command: [dlrover-run, --nnodes=2, t.py], resources: {limits: {cpu: " +
				"8, memory: 8Gi}}}]}}}}}\n",
			reported: []string{
				`distributionStrategy: changed: DLRover's master takes`, `restartPolicy: "Never": translated`,
			}, lossy: true,
		},
		"a minimum that is told once": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {minAvailable: " +
				"2, schedulerName: volcano, tasks: [{name: ps, replicas: 1, template: {spec: {" + trainsBash +
				"}}}, {name: worker, replicas: 3, template: {spec: {restartPolicy: Never, " + trainsBash +
				"}}}]}\n",
			reported: []string{`minAvailable: 2: changed`}, unreported: []string{`minAvailable: 2: translated`},
			lossy: true,
		},
	} {
		t.Run(name, c.check)
	}
}

// trainJobOn is a TrainJob with a runtime that has a variable A, each with further fields.
func trainJobOn(torch, trainer, env string) string {
	return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: {runtimeRef: " +
		"{name: r}, trainer: {" + trainer + env + "}}\n---\n" +
		"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: r}\nspec: " +
		"{mlPolicy: {numNodes: 2, torch: {" + torch + "}}, " +
		"template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: " +
		"node, image: 'a/b:1', command: [torchrun, t.py], env: [{name: A, value: shared}]}]}}}}}]}}}\n"
}

// elasticJobOf is a job of TorchElastic's controller with a policy of restarts and a run policy.
func elasticJobOf(restarts, run string) string {
	return "apiVersion: elastic.pytorch.org/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: {RunPolicy: {" +
		run + "}, rdzvEndpoint: 'etcd:2379', minReplicas: 1, maxReplicas: 2, replicaSpecs: {Worker: {replicas: 1, " +
		"restartPolicy: " + restarts + ", template: {spec: {containers: [{name: w, image: 'a/b:1', args: " +
		"['--nproc_per_node=1', t.py]}]}}}}}\n"
}
