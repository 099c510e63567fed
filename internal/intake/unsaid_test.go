package intake_test

import "testing"

// TestUnsaid: what a source leaves to its controller, the job leaves to it too, or a line says what becomes of it.
func TestUnsaid(t *testing.T) {
	for name, c := range map[string]claim{
		"no limit on restarts and no clean-up": {
			in:     "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure, template: {spec: {" + trainsAlone + "}}}}}\n",
			untold: []string{"backoffLimit", "cleanPodPolicy"}, jobs: []string{`restarts: none`, `cleanPods: none`},
		},
		"a clean-up of its own": {
			in:   "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {runPolicy: {cleanPodPolicy: All, backoffLimit: 6}, pytorchReplicaSpecs: {Master: {restartPolicy: OnFailure, template: {spec: {" + trainsAlone + "}}}}}\n",
			jobs: []string{`cleanPods: all`}, untold: []string{"not kept"},
		},
		"an ElasticJob without limits": {
			in: "apiVersion: elastic.pytorch.org/v1alpha1\nkind: ElasticJob\nmetadata: {name: j}\nspec: {rdzvEndpoint: 'etcd:2379', minReplicas: 1, maxReplicas: 2, replicaSpecs: {Worker: {replicas: 1, restartPolicy: ExitCode, template: {spec: {" +
				"containers: [{name: w, image: 'a/b:1', args: ['--nproc_per_node=1', t.py]}]}}}}}\n",
			untold: []string{"backoffLimit", "cleanPodPolicy"}, jobs: []string{`restarts: none`, `cleanPods: none`},
		},
		"the clean-up of the first MPI operator": {
			in:   "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: j}\nspec: {cleanPodPolicy: Running, slotsPerWorker: 1, mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: 'a/horovod:1', command: [horovodrun, -np, '1', python, t.py]}]}}}, Worker: {replicas: 1, template: {spec: {containers: [{name: w, image: 'a/horovod:1'}]}}}}}\n",
			told: []string{"apiVersion: .*dropped"}, untold: []string{"cleanPodPolicy: .*not kept"}, lossy: true,
		},
		"a Volcano Job without policies": {
			in:     "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: volcano, maxRetry: 5, tasks: [{name: worker, template: {spec: {restartPolicy: Never, " + trainsBash + "}}}]}\n",
			untold: []string{"RestartPod", "maxRetry"}, jobs: []string{`restartsPerWorker: 0`},
		},
		"a Volcano Job that replaces pods": {
			in:     "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {schedulerName: volcano, policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: worker, template: {spec: {restartPolicy: Never, " + trainsBash + "}}}]}\n",
			untold: []string{"policies", "restartsPerWorker"}, jobs: []string{`restarts: 2`},
		},
	} {
		t.Run(name, c.check)
	}
}
