package meaning

import (
	"strings"
	"testing"
)

// TestMPIOperator: what the MPI operator overrides makes no difference, and what it does not override does.
func TestMPIOperator(t *testing.T) {
	t.Parallel()
	job := func(version, spec, launcher, env, worker string) string {
		return "apiVersion: kubeflow.org/" + version + "\nkind: MPIJob\nmetadata: {name: j}\nspec: {" + spec +
			"mpiReplicaSpecs: {Launcher: {" + launcher + "template: {spec: {hostNetwork: true, containers: [{name: " +
			"l, image: 'a:1', command: [mpirun, x], env: [" + env + "]}]}}}, Worker: {" + worker +
			"replicas: 2, template: {spec: {containers: [{name: w, image: 'a:1'}]}}}}}\n"
	}
	for name, c := range map[string]struct {
		before, after string
		want          int // differences
	}{
		"a variable of the operator's": {
			job("v2beta1", "", "", "{name: OMPI_MCA_plm_rsh_args, value: '-p 22'}, {name: NVIDIA_VISIBLE_DEVICES, "+
				"value: all}", ""), job("v2beta1", "", "", "", ""), 0,
		},
		"one of another MPI's": {
			job("v2beta1", "mpiImplementation: Intel, ", "", "{name: OMPI_MCA_plm_rsh_args, value: '-p 22'}", ""),
			job("v2beta1", "mpiImplementation: Intel, ", "", "", ""), 1,
		},
		"accelerators of a launcher with processes": {
			job("v2beta1", "runLauncherAsWorker: true, ", "", "{name: NVIDIA_VISIBLE_DEVICES, value: all}", ""),
			job("v2beta1", "runLauncherAsWorker: true, ", "", "", ""), 1,
		},
		"its defaults": {
			job("v2beta1", "", "", "", ""), job("v2beta1", "slotsPerWorker: 1, sshAuthMountPath: /root/.ssh, "+
				"launcherCreationPolicy: AtStartup, ", "restartPolicy: OnFailure, ", "", "restartPolicy: Never, "), 0,
		},
		"a policy that it takes for another": {
			job("v2beta1", "", "", "", "restartPolicy: ExitCode, "),
			job("v2beta1", "", "", "", "restartPolicy: Never, "), 0,
		},
		"a policy that it does not": {
			job("v2beta1", "", "", "", "restartPolicy: OnFailure, "), job("v2beta1", "", "", "", ""), 1,
		},
		"the first operator's launcher": {
			job("v1", "", "", "", ""), job("v2beta1", "", "restartPolicy: Never, ", "", ""),
			1, // the policy of names
		},
		"the first operator's launcher, started again": {
			job("v1", "", "", "", ""), job("v2beta1", "", "restartPolicy: OnFailure, ", "", ""), 2,
		},
		"the policy of names on the nodes' network": {
			job("v2beta1", "", "", "", ""), strings.Replace(job("v2beta1", "", "", "", ""), "hostNetwork: true",
				"hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet", 1), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Compare(c.before, c.after); len(got) != c.want {
				t.Errorf("%d differences, want %d: %v", len(got), c.want, got)
			}
		})
	}
}
