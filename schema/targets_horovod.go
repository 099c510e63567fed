package schema

// What Horovod's own nature rules out, whoever makes the pods.
var horovodLacks = lacks{
	"probes.readiness":          "a worker is ready when its sshd listens, for which the launcher waits",
	"workers.firstIndex":        "hosts are counted from 0",
	"checkpoint.save":           "sshd starts its ranks, and all end when the first is lost: save at intervals",
	"failure.restartsPerWorker": "a launcher that is given up would leave workers that never end",
}

// mpiLacks is what MPI itself rules out: mpirun ends all processes with the first that is lost.
var mpiLacks = lacks{"workers.min": "processes of MPI end with the first that is lost, and none joins later"}

// launchesInWorker: no other pod starts the processes.
var launchesInWorker = lacks{
	"roles.launcher":  "the pod of worker 0 runs the launcher too",
	"failure.inPlace": "worker 0 launches, and a launcher starts anew in a pod of its own",
}

// mpijobLacks is what an MPIJob has no field for (kubeflow/mpi-operator v0.8.0, pkg/apis/kubeflow/v2beta1/types.go and
// pkg/controller/mpi_job_controller.go).
var mpijobLacks = lacks{
	"servers":         "an MPIJob has a launcher and workers, and no more roles",
	"roles.server":    "an MPIJob has a launcher and workers, and no more roles",
	"roles.scheduler": "an MPIJob has a launcher and workers, and no more roles",
	"gang.scheduler=kubernetes": "its pod templates have Kubernetes 1.35's field in place of schedulingGroup, and " +
		"lose this one",
	"failure.restarts=" + None:  "its launcher is a Job, and one that names no limit has one of 6",
	"ssh.secret":                "the MPI operator makes a pair of keys for each job itself",
	"failure.restartsPerWorker": "the MPI operator counts failures of the launcher alone",
	"failure.fatalExitCodes":    "the MPI operator tells no exit codes apart",
	"failure.ignoreDisruptions": "the MPI operator makes deleted workers again without counting them, leaves those " +
		"that failed, as evicted ones do, and counts every launcher that is lost",
	"failure.inPlace": "the MPI operator always has the kubelet do so with workers, and a launcher is made anew",
	"hashedNames": "all names of the MPI operator start with the job's, and it makes a changed one no " +
		"new job",
}
