package importer_test

import (
	"strings"
	"testing"
)

const (
	trainsAlone = `containers: [{name: pytorch, image: "a/b:1", command: [python, mnist.py]}]`
	trainsBash  = `containers: [{name: c, image: "a/b:1", command: [python, t.py]}]`
)

// long is an image of which a line shows a part.
var long = "registry.example/" + strings.Repeat("a/", 40) + "b:"

// TestTruth: what import says of a manifest is so. Each case names lines that must be there, some that must not be, and
// what the job must hold.
func TestTruth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]claim{
		"a master stays where torchrun does not start the program": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: {" +
				"Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {" + trainsAlone + "}}}, " +
				"Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {" + trainsAlone + "}}}}}\n",
			unreported: []string{"master becomes"}, jobs: []string{
				`master: true`, `replicas: 3`,
				`launcher: entrypoint`,
			},
		},
		"a lone master stays too": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: " +
				"{pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure, template: {spec: {" + trainsAlone +
				"}}}}}\n",
			unreported: []string{"becomes"}, jobs: []string{`master: true`, `replicas: 1`},
		},
		"a master of torchrun stays, by whose numbers it ranks": {
			in:         withMaster("", "torchrun t.py"),
			reported:   []string{`Master: .*warning: torchrun's ranks are the pods' numbers, as before`},
			unreported: []string{"becomes", "changed"},
			jobs:       []string{`replicas: 2`, `master: true`, `launcher: entrypoint`},
		},
		"a lone master of torchrun becomes a worker": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: " +
				"{Master: {restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: 'a/b:1', " +
				"command: [torchrun, t.py]}]}}}}}\n",
			reported: []string{`the only master becomes the only worker`}, jobs: []string{`replicas: 1`},
		},
		"a master whose variables stand in options that a shell reads": {
			in: withMaster("",
				`torchrun --nnodes $WORLD_SIZE --nproc_per_node 8 --rdzv_backend=c10d `+
					`--rdzv_endpoint="${MASTER_ADDR}:$MASTER_PORT" a.py`),
			reported:   []string{`Master: .*translated: the master becomes one more worker`},
			unreported: []string{"changed"}, jobs: []string{`- torchrun a\.py`, `replicas: 2`},
		},
		"a master by whose variables the ranks are told": {
			in: withMaster("",
				"torchrun --nnodes=$WORLD_SIZE --node_rank $RANK --master_addr $MASTER_ADDR --master_port "+
					"${MASTER_PORT} a.py"),
			reported: []string{`warning: torchrun's ranks are the pods' numbers`}, unreported: []string{"changed"},
			jobs: []string{`--node_rank \$RANK --master_addr \$MASTER_ADDR`, `replicas: 2`, `master: true`},
		},
		"a master whose variables the text reads elsewhere": {
			in: withMaster("",
				"export NODES=$WORLD_SIZE; torchrun --nnodes $NODES --nproc_per_node 4 --node_rank $RANK "+
					"--master_addr $MASTER_ADDR a.py"),
			unreported: []string{"becomes", "changed", "dropped"},
			jobs: []string{
				`master: true`, `replicas: 2`, `launcher: entrypoint`, `processes: auto`,
				`- export NODES=\$WORLD_SIZE; torchrun --nnodes \$NODES --nproc_per_node 4 --node_rank \$RANK ` +
					`--master_addr \$MASTER_ADDR a\.py`,
			},
		},
		"a master of torchrun whose options are not read": {
			in:         withMaster("", `ARGS="--nnodes 2 --master_addr j-master-0"; torchrun $ARGS a.py`),
			unreported: []string{"becomes", "changed", "dropped"}, jobs: []string{`master: true`, `j-master-0`},
		},
		"a lone master whose variables torchrun's script is given": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: " +
				"{Master: {restartPolicy: OnFailure, template: {spec: {containers: [" +
				"{name: pytorch, image: 'a/b:1', command: [torchrun, --nproc_per_node=2, a.py, --world, " +
				"$(WORLD_SIZE)]}]}}}}}\n",
			unreported: []string{"becomes"}, jobs: []string{`master: true`, `- --nproc_per_node=2\n`},
		},
		"an elastic job that reads a master's variables": {
			in: withMaster("elasticPolicy: {rdzvBackend: c10d}, ",
				"torchrun --nnodes $WORLD_SIZE a.py --rank $RANK"),
			reported: []string{`changed: the program reads RANK, which`},
			jobs:     []string{`- torchrun a\.py --rank \$RANK`}, lossy: true,
		},
		"a plugin that alone sets a master's variables": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, plugins: {pytorch: ['--port=23456']}, tasks: [{name: worker, replicas: 2, template: {spec: " +
				"{restartPolicy: Never, containers: [" +
				"{name: c, image: 'a/b:1', command: [bash, -c, 'torchrun --nnodes=$WORLD_SIZE --node_rank=$RANK " +
				"--master_addr=$MASTER_ADDR a.py --port $MASTER_PORT']}]}}}]}\n",
			reported: []string{
				`command: .*changed: the program reads MASTER_PORT, which the plugin pytorch alone sets`,
				`plugins\.pytorch.*dropped`,
			}, jobs: []string{`- torchrun a\.py --port \$MASTER_PORT`}, lossy: true,
		},
		"a error keeps the rest": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: " +
				"{Worker: {replicas: $NODES, template: {spec: {hostIPC: true, volumes: [{name: ib, hostPath: {path: " +
				"/dev/infiniband}}], " +
				"containers: [{name: pytorch, image: $IMAGE, command: [torchrun, t.py], securityContext: " +
				"{capabilities: {add: [IPC_LOCK]}}, resources: {limits: {vpc.amazonaws.com/efa: $EFA}}, " +
				"volumeMounts: [{name: ib, mountPath: /dev/infiniband}]}]}}}}}\n",
			reported: []string{
				`Worker\.replicas: "\$NODES": error: a placeholder .* or into spec\.workers\.replicas`,
				`image: "\$IMAGE": error: a placeholder .* or into spec\.image`,
				`limits\["vpc.amazonaws.com/efa"\]: "\$EFA": error: a placeholder`,
			},
			unreported: []string{"dropped", "refused"},
			jobs: []string{
				`replicas: \$NODES`, `image: \$IMAGE`, `IPC_LOCK`, `path: /dev/infiniband`,
				`hostIPC: true`, `vpc.amazonaws.com/efa: \$EFA`,
			},
			invalid: true,
		},
		"more nodes than pods": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker, namespace: train}\nspec: " +
				"{completionMode: Indexed, completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, " +
				"containers: [{name: worker, image: 'a/b:1', command: [torchrun, --nnodes=4, t.py]}]}}}\n",
			reported:   []string{`parallelism: 2: error: spec\.workers\.replicas: 2 is below min 4`},
			unreported: []string{"1 is below", "imported", "default", "dropped"},
			jobs:       []string{`min: 4`, `replicas: 2`}, invalid: true,
		},
		"other nodes than an elastic policy has": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, namespace: train}\nspec: " +
				"{elasticPolicy: {minReplicas: 1, maxReplicas: 3}, pytorchReplicaSpecs: {Worker: {replicas: 3, " +
				"restartPolicy: OnFailure, template: {spec: {" +
				"containers: [{name: pytorch, image: 'a/b:1', command: [torchrun, --nnodes=2, t.py]}]}}}}}\n",
			reported:   []string{`replicas: 3: error: spec\.workers\.replicas: 3 is above max 2`},
			unreported: []string{"1 is below", "imported", `Job .*name: "j": dropped`}, invalid: true, lossy: true,
		},
		"a job without a program keeps the rest": {
			in: "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: j}\nspec: {mpiReplicaSpecs: " +
				"{Launcher: {template: {spec: {containers: [{name: l, image: 'a/b:1', command: [bash, -c, 'x; " +
				"y']}]}}}, " +
				"Worker: {template: {spec: {containers: [{name: w, image: 'a/b:1', securityContext: {capabilities: " +
				"{add: [IPC_LOCK]}}}]}}}}}\n",
			jobs: []string{`IPC_LOCK`, `launch: command`},
		},
		"an empty list is a value": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: " +
				"volcano, plugins: {acme: [], svc: []}, tasks: [{name: worker, template: {spec: {resources: {}, " +
				"restartPolicy: Never, " + trainsBash + "}}}]}\n",
			reported: []string{`plugins\.acme: \[\]: dropped`}, unreported: []string{`spec\.resources`}, lossy: true,
		},
		"an empty label is a value": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {metadata: {labels: {x: ''}}, spec: {restartPolicy: " +
				"Never, containers: [{name: worker, image: 'a/b:1', command: [python, t.py]}]}}}\n",
			jobs: []string{`x: ""`},
		},
		"a runtime of JAX": {
			in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: {runtimeRef: " +
				"{name: r}, trainer: {numNodes: 4}}\n---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: " +
				"ClusterTrainingRuntime\nmetadata: {name: r}\nspec: {mlPolicy: {numNodes: 1, jax: {}}, " +
				"template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {" + trainsBash +
				"}}}}}]}}}\n",
			reported: []string{`mlPolicy\.jax: \{\}: translated`}, unreported: []string{"torchrun", "changed"},
			jobs: []string{"framework: jax", "target: trainjob", "port: 29500", "replicas: 4"},
		},
		"several Jobs of a JobSet": {
			in: "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: " +
				"{replicatedJobs: [{name: slice, replicas: 2, template: {spec: {completions: 4, parallelism: 4, " +
				"completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: " +
				"'a/b:1', command: [python, t.py, '--master=j-slice-1-3.j:80']}]}}}}}]}\n",
			reported:   []string{`the pods j-slice-1-0 and so on are called j-worker-1-0 and so on`},
			unreported: []string{"changed"},
			jobs:       []string{`replicas: 8\n *slices: 2`, `--master=j-worker-1-3\.j:80`},
		},
		"the pods of a renamed job": {
			in: "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: " +
				"{replicatedJobs: [{name: slice, template: {spec: {completions: 2, parallelism: 2, completionMode: " +
				"Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'a/b:1', " +
				"command: [python, t.py, --master=j-slice-0-0.j:3389], env: [{name: MASTER_ADDR, value: " +
				"j-slice-0-0.j}]}]}}}}}]}\n",
			reported: []string{`value: "j-slice-0-0.j": translated: the pods`},
			jobs:     []string{`value: j-worker-0-0.j\n`, `--master=j-worker-0-0.j:3389`},
		},
		"a JobSet as a cluster has it": {
			in: liveJobSet("AnyOrder", "All"),
			unreported: []string{
				"groupName", "startupPolicy", "successPolicy", "status", "uid", "ownerReferences", "dropped", "beside",
			},
			reported: []string{
				`Job training/j-worker-0: translated: JobSet training/j makes it`,
				`Service training/j: translated: JobSet training/j makes it`,
				`Pod training/j-worker-0-0-4gkzj: translated: Job training/j-worker-0 makes it`,
			},
		},
		"a TrainJob as a cluster has it": {
			in: liveTrainJob("trainer.kubeflow.org/trainjob-controller"),
			unreported: []string{
				"groupName", "managedBy", "status", "uid", "resourceVersion", "dropped", "changed", "beside",
			},
			reported: []string{`JobSet training/j: translated: TrainJob training/j makes it`},
		},
		"an ElasticJob of TorchElastic as a cluster has it": {
			in: "{apiVersion: elastic.pytorch.org/v1alpha1, kind: ElasticJob, metadata: {name: j, namespace: " +
				"training, generation: 5, uid: c8c03ff9-01e5-427a-a5d4-58885efad70b}, spec: {rdzvEndpoint: " +
				"'etcd:2379', minReplicas: 1, maxReplicas: 2, RunPolicy: {cleanPodPolicy: None}, replicaSpecs: " +
				"{Worker: {replicas: 1, restartPolicy: OnFailure, template: {metadata: {creationTimestamp: null}, " +
				"spec: {securityContext: {runAsUser: 65534, runAsGroup: 65534, runAsNonRoot: true, fsGroup: 65534}, " +
				trainsAlone + "}}}}}, status: {completionTime: '2026-11-23T04:23:31Z', conditions: [{type: " +
				"Succeeded, status: 'True'}], replicaStatuses: {Worker: {succeeded: 1}}}}\n",
			unreported: []string{
				"fsGroup", "seccomp", "restricted", "cleanPodPolicy", "status:", "creationTimestamp", "uid", "dropped",
			},
		},
		"an ElasticJob of DLRover as a cluster has it": {
			in: "{apiVersion: elastic.iml.github.io/v1alpha1, kind: ElasticJob, metadata: {name: j, namespace: " +
				"training, generation: 2, uid: c8c03ff9-01e5-427a-a5d4-58885efad70b}, spec: " +
				"{distributionStrategy: AllreduceStrategy, optimizeMode: single-job, suspend: true, replicaSpecs: " +
				"{worker: {replicas: 2, template: {metadata: {}, spec: {restartPolicy: Always, containers: " +
				"[{name: main, image: 'a/b:1', command: [sh, -c, 'dlrover-run --nnodes=1:$NODE_NUM t.py']}]}}}}}, " +
				"status: {phase: Suspended, status: {conditions: [{type: Suspended, status: 'True'}], " +
				"replicaStatuses: {dlrover-master: {active: 1}}}}}\n",
			unreported: []string{"phase", "status:", "uid", "dropped"},
			jobs:       []string{`suspend: true`},
		},
		"a TrainJob of another controller": {
			in:       liveTrainJob("kueue.x-k8s.io/multikueue"),
			reported: []string{`managedBy: "kueue.x-k8s.io/multikueue": refused: .*gang.queue`}, invalid: true,
		},
		"a PyTorchJob as a cluster has it": {
			in:         liveKubeflowJob("PyTorchJob", "pytorch"),
			unreported: []string{"status", "uid", "cleanPodPolicy", "suspend", "dropped", "changed", "beside"},
			reported: []string{
				`Pod training/j-worker-0: translated: PyTorchJob training/j makes it`,
				`Service training/j-worker-0: translated: PyTorchJob training/j makes it`,
			},
		},
		"an MXJob as a cluster has it": {
			in:         liveKubeflowJob("MXJob", "mx"),
			unreported: []string{"status", "uid", "cleanPodPolicy", "suspend", "dropped", "changed", "beside"},
			reported: []string{
				`Pod training/j-worker-0: translated: MXJob training/j makes it`,
				`Service training/j-worker-0: translated: MXJob training/j makes it`,
			},
		},
		"variables that the operator of a Master sets": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, namespace: training}\nspec: " +
				"{pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: " +
				"{containers: [{name: pytorch, image: 'a/b:1', command: [python, mnist.py], env: " +
				"[{name: WORLD_SIZE, value: '9'}, {name: MODE, value: x}]}]}}}}}\n",
			reported: []string{`env\[0\]: .*: error: the operator sets WORLD_SIZE behind this one`},
			jobs:     []string{`master: true`, `name: MODE`},
		},
		"a JobSet that is not as by default": {
			in: strings.Replace(liveJobSet("InOrder", "Any"), "groupName: default", "groupName: other", 1),
			reported: []string{
				`groupName: "other": dropped`, `startupPolicyOrder: "InOrder": dropped`, `operator: "Any": translated`,
			}, lossy: true,
		},
		"a Job as Kueue admitted it": {
			in: queuedJob("false", "{name: kueue.x-k8s.io/elastic-job}"),
			reported: []string{
				`Workload training/job-j-worker-19eae: translated: Job training/j-worker makes it`,
			},
			unreported: []string{"dropped", "beside", "changed"}, silent: []string{"kueue.x-k8s.io", "elastic-job"},
			jobs: []string{`queue: team`},
		},
		"a TrainJob as Kueue admitted it": {
			in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j, namespace: training, " +
				"labels: {kueue.x-k8s.io/queue-name: team}}\nspec: {runtimeRef: {name: torch-distributed}, " +
				"runtimePatches: [{manager: kueue.x-k8s.io/manager}], suspend: true, trainer: {image: 'a/b:1', " +
				"command: [torchrun, t.py], numNodes: 2}}\n",
			unreported: []string{"runtimePatches", "suspend: true: dropped"}, jobs: []string{"queue: team"},
			lossy: true,
		},
		"a Job as Kueue holds it, behind a gate of its author too": {
			in:         queuedJob("true", "{name: kueue.x-k8s.io/elastic-job}, {name: example.org/mine}"),
			unreported: []string{"beside"}, silent: []string{"elastic-job", "suspend"},
			jobs: []string{`- name: example.org/mine`},
		},
		"a pod of something that is not there": {
			in: liveJobSet("AnyOrder", "All") + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: k-worker-0-0-4gk, " +
				"namespace: training, " + ownedBy("batch/v1", "Job", "k-worker-0") + "}\nspec: {" + trainsAlone +
				"}\n",
			reported:   []string{`beside: Job k-worker-0 makes it, which is not in the input`},
			unreported: []string{"keep"},
		},
		"mpirun stays as it is, with the image's sshd": {
			in: mpiJob("v2beta1", "acme/horovod:1"),
			jobs: []string{
				`framework: mpi`, `server: image`,
				`- mpirun\n +- -np\n +- "2"\n +- -mca\n +- pml\n +- ob1\n +- python\n +- t.py\n`,
				`restart: Never`, `launcherRestart: OnFailure`, `launcherStart: together`,
			}, unreported: []string{"translated: (?:tegen|by default)", "changed"},
		},
		"slots stay, whatever mpirun starts": {
			in:         strings.ReplaceAll(mpiJob("v2beta1", "acme/a:1"), "slotsPerWorker: 1", "slotsPerWorker: 4"),
			jobs:       []string{`processes: 4`, `- mpirun\n +- -np\n +- "2"\n`},
			unreported: []string{"bind-to"},
		},
		"horovodrun is a line like others": {
			in: strings.ReplaceAll(mpiJob("v2beta1", "acme/a:1"), "mpirun, -np, '2', -mca, pml, ob1",
				"horovodrun, -np, '2'"),
			jobs: []string{`framework: mpi`, `- horovodrun\n`},
		},
		"a shell's line of the image's entrypoint": {
			in: strings.ReplaceAll(mpiJob("v2beta1", "acme/a:1"),
				"command: [mpirun, -np, '2', -mca, pml, ob1, python, t.py]",
				`args: [bash, -c, 'sleep 10; mpirun -mca plm_rsh_args "-p 2222" python t.py']`),
			jobs: []string{`launch: command`, `\n  args:\n +- bash\n +- -c\n`}, silent: []string{"port: 2222"},
		},
		"an MPIJob whose first container is another": {
			in: strings.Replace(mpiJob("v2beta1", "acme/a:1"), "[{name: w,",
				"[{name: h, image: 'h/i:1'}, {name: worker,", 1),
			reported: []string{`spec\.containers: .*changed: the MPI operator gives keys.* worker is rendered`},
			lossy:    true,
		},
		"an MPIJob of the first operator whose workers sleep": {
			in:       strings.Replace(mpiJob("v1", "acme/a:1"), "[{name: w,", "[{name: w, command: [sleep, 365d],", 1),
			reported: []string{`command: .*changed: the workers run sshd in its place`},
			jobs:     []string{`mpi:\n    launch: command\n    launcherStart: together\n  [a-z]`},
			silent:   []string{"365d"}, lossy: true,
		},
		"variables that the MPI operator sets": {
			in: strings.Replace(mpiJob("v2beta1", "acme/a:1"), "{name: l,",
				"{name: l, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: A, value: b}],", 1),
			reported: []string{`env\[0\]: .*error: the operator sets NVIDIA_VISIBLE_DEVICES behind this one`},
			jobs:     []string{`name: A\n`}, silent: []string{"NVIDIA"},
		},
		"an MPIJob as a cluster has it": {
			in: strings.NewReplacer(
				"metadata: {name: j}", "metadata: {name: j, generation: 2, resourceVersion: '580', uid: "+
					"dc42f82a-c588-4cb8-a1a3-6a6d0dfee26f, creationTimestamp: '2026-11-23T03:09:19Z'}",
				"spec: {slotsPerWorker", "status: {startTime: '2026-11-23T03:09:24Z', replicaStatuses: {Launcher: {}, "+
					"Worker: {}}, conditions: [{type: Suspended, status: 'False', reason: MPIJobResumed}]}\n"+
					"spec: {launcherCreationPolicy: WaitForWorkersReady, mpiImplementation: OpenMPI, "+
					"runLauncherAsWorker: false, runPolicy: {suspend: false}, slotsPerWorker",
			).Replace(mpiJob("v2beta1", "acme/horovod:1")),
			unreported: []string{"mpiImplementation", "runLauncherAsWorker", "suspend", "status", "uid", "WaitFor"},
		},
		"an MPIJob of another MPI": {
			in: strings.Replace(mpiJob("v2beta1", "acme/horovod:1"), "spec: {", "spec: {mpiImplementation: Intel, "+
				"runLauncherAsWorker: true, ", 1),
			jobs: []string{`implementation: intel`, `launcherWorks: true`},
		},
		"an MPIJob of the first operator": {
			in: mpiJob("v1", "acme/horovod:1"), reported: []string{`apiVersion: "kubeflow.org/v1": changed: .*sshd`},
			lossy: true,
		},
		"a network card is no accelerator": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: worker, " +
				"image: 'a/b:1', command: [python, t.py], resources: {limits: {vpc.amazonaws.com/efa: 4}}}]}}}\n",
			jobs: []string{`devices:\n +vpc.amazonaws.com/efa: 4`}, unreported: []string{"gpuResource"},
		},
		"values that differ late": {
			in: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: " +
				"{Master: {restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: '" + long +
				"1', command: [python, t.py]}]}}}, " +
				"Worker: {restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: '" + long +
				"2', command: [python, t.py]}]}}}}}\n",
			reported: []string{`Master.*image: "?….*:1": dropped: tegen renders "?….*:2"`}, lossy: true,
		},
		"a task that only serves": {
			in: "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {minAvailable: " +
				"3, schedulerName: volcano, tasks: [{name: mpimaster, replicas: 1, template: {spec: {" + trainsBash +
				"}}}, {name: mpiworker, replicas: 2, template: {spec: {restartPolicy: Never, " + trainsBash +
				"}}}]}\n",
			reported:   []string{`tasks\[1\]\.name: "mpiworker": translated: these pods are those of group worker`},
			unreported: []string{"refused", "error"}, jobs: []string{`replicas: 2`, `name: mpimaster`}, lossy: true,
		},
		"a Job without numbers": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: " +
				"Never, " + trainsBash + "}}}\n",
			reported: []string{"added: .*completionMode"}, lossy: true, // its name
		},
		"a Job that works off a list": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 2, completions: 9, " +
				"template: {spec: {restartPolicy: Never, " + trainsBash + "}}}\n",
			reported: []string{"completions: 9: changed: of 9 pods in all, 2 run at a time"},
			jobs:     []string{"replicas: 2"}, lossy: true,
		},
		"an AppWrapper": {
			in: "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: w, labels: " +
				"{kueue.x-k8s.io/queue-name: q}}\nspec: {components: [{template: {apiVersion: kubeflow.org/v1, kind: " +
				"PyTorchJob, metadata: {name: j}, spec: {nodes: 3, pytorchReplicaSpecs: {Worker: {template: " +
				"{spec: {containers: [{name: pytorch, image: 'a/b:1', command: [torchrun, t.py]}]}}}}}}}]}\n",
			reported: []string{
				`AppWrapper w: changed: .*; each job of it waits in its queue by itself`,
				`spec\.components\[0\]\.template\.spec\.nodes: 3: dropped`,
			},
			jobs: []string{"queue: q", "target: pytorchjob"}, lossy: true,
		},
		"a JAXJob": {
			in: "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: j}\nspec: {jaxReplicaSpecs: " +
				"{Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {" + trainsBash + "}}}}}\n",
			reported: []string{
				`spec\.jaxReplicaSpecs\.Worker: .*translated: .*COORDINATOR_ADDRESS`,
				`jaxReplicaSpecs\.Worker\.restartPolicy: "OnFailure": translated: what fails is started again in its`,
			}, unreported: []string{"torchrun", "changed"},
			jobs: []string{
				"framework: jax", "replicas: 2", "value: j-worker-0.j-worker\n", `value: "6666"`,
				`value: \$\(JAX_NUM_PROCESSES\)`, `value: \$\(JAX_PROCESS_ID\)`, "inPlace: true",
			}, lossy: true,
		},
		"a Job of JAX": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 2, parallelism: 2, template: {spec: {restartPolicy: Never, subdomain: j, containers: " +
				"[{name: worker, image: 'a/b:1', command: [python, t.py], env: [{name: JAX_COORDINATOR_ADDRESS, " +
				"value: 'j-worker-0.j:1234'}, {name: JAX_NUM_PROCESSES, value: '3'}, {name: JAX_PROCESS_ID, " +
				"valueFrom: {fieldRef: {fieldPath: \"metadata.labels['batch.kubernetes.io/job-completion-index']\"" +
				"}}}, " +
				"{name: JAX_LOCAL_DEVICE_IDS, value: '1'}, {name: JAX_PLATFORMS, value: cuda}]}]}}}\n",
			reported: []string{
				`JAX_COORDINATOR_ADDRESS.*translated`,
				`JAX_NUM_PROCESSES.*changed: there are as many processes as workers, 2`,
			},
			jobs: []string{
				"framework: jax", "port: 1234", "name: JAX_LOCAL_DEVICE_IDS\n *value: \"1\"", "name: JAX_PLATFORMS",
			}, lossy: true,
		},
		"a TFJob of one pod": {
			in: "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec: {tfReplicaSpecs: {Worker: " +
				"{template: {spec: {" + trainsBash + "}}}}}\n",
			reported: []string{`changed: .*TF_CONFIG`}, jobs: []string{"replicas: 1"}, lossy: true,
		},
		"a HyperPodPyTorchJob": {
			in: "apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\nmetadata: {name: j}\nspec: " +
				"{nprocPerNode: '8', runPolicy: {jobMaxRetryCount: 3}, replicaSpecs: [{name: pods, replicas: 2, " +
				"template: {spec: {containers: [{name: pytorch, image: 'a/b:1', command: [hyperpodrun, " +
				"t.py]}]}}}]}\n",
			reported: []string{
				`HyperPodPyTorchJob j: changed: it becomes a PyTorchJob`,
				`runPolicy\.jobMaxRetryCount: 3: dropped`,
			}, jobs: []string{"replicas: 2", "processes: 8"}, lossy: true,
		},
		"a TrainJob without its runtime": {
			in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\nspec: " +
				"{runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2, image: 'a/b:1', command: [torchrun, " +
				"t.py]}}\n",
			reported: []string{`runtimeRef: .*changed: .*kubectl get clustertrainingruntime torch-distributed -o yaml`},
			jobs:     []string{"replicas: 2", "image: a/b:1"}, lossy: true,
		},
		"a secret in plain sight": {
			in: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, initContainers: [{name: i, " +
				"env: [{name: API_KEY, value: s3cr3t-too}]}], containers: [{name: worker, image: 'a/b:1', " +
				"command: [python, t.py], env: [{name: DB_PASSWORD, value: s3cr3t}, {name: MAX_TOKENS, " +
				"value: '5'}, {name: TOKENIZERS_PARALLELISM, value: 'true'}, {name: HF_TOKEN, value: " +
				"$(X)}]}]}}}\n",
			// an init container without an image
			reported:   []string{`env\[0\]\.value: \(not shown\): warning: DB_PASSWORD`, `warning: API_KEY`},
			unreported: []string{"s3cr3t", "warning: MAX", "warning: TOKENIZERS", "warning: HF"}, lossy: true,
		},
	} {
		t.Run(name, c.check)
	}
}
