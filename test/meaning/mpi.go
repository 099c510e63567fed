package meaning

import "slices"

// byExec says whether a job is for an MPI operator that starts processes by kubectl exec.
func (j *job) byExec() bool {
	return j.kind == "MPIJob" && j.root.at("apiVersion").text() == "kubeflow.org/v1"
}

// behindMPI is what the MPI operator makes of a role, whatever its author wrote there (kubeflow/mpi-operator v0.8.0,
// pkg/controller/mpi_job_controller.go: newWorker, newLauncherPodTemplate, setRestartPolicy).
func (g *group) behindMPI(j *job) {
	if g.restart == "ExitCode" {
		g.restart = "Never"
	}
	pod := g.template.at("spec")
	if m, ok := pod.value.(object); ok && pod.at("hostNetwork").text() == "true" {
		m["dnsPolicy"] = "ClusterFirstWithHostNet"
	}
	containers := pod.at("containers").items()
	if len(containers) == 0 {
		return
	}
	if c, ok := containers[0].value.(object); ok && containers[0].at("env").isSet() {
		var stays []any
		for _, e := range containers[0].at("env").items() {
			if !slices.Contains(g.setByMPI(j), e.at("name").text()) {
				stays = append(stays, e.value)
			}
		}
		c["env"] = stays
	}
}

// setByMPI are the variables that the operator sets behind the author's, of which the last counts.
func (g *group) setByMPI(j *job) []string {
	names := []string{"K_MPI_JOB_ROLE"}
	if g.name != "launcher" {
		return names
	}
	if j.root.at("spec", "runLauncherAsWorker").text() != "true" {
		names = append(names, "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
	}
	switch j.root.at("spec", "mpiImplementation").text() {
	case "Intel":
		return append(names, "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_PERHOST")
	case "MPICH":
		return append(names, "HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS")
	}
	return append(names, "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args",
		"OMPI_MCA_orte_set_default_slots")
}
