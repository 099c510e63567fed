package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

// TestOwnLaunch: options of an author's torchrun that win over the job's fields are refused with the field to write,
// and what agrees with them, or is a variable that the workers have, is not.
func TestOwnLaunch(t *testing.T) {
	const two, eight = "workers: {replicas: 2}, ", "resources: {gpu: 8, cpu: 9, memory: 9Gi}, "
	for spec, want := range map[string]string{
		two + "command: [torchrun, --standalone, t.py]": "--standalone has each of 2 workers train",
		two + "launcher: entrypoint, command: [sh, -c, " +
			"'torchrun --standalone t.py']": "--standalone has each of 2 workers",
		two + "launcher: none, command: [torchrun, --standalone, t.py]":   "",
		"workers: {replicas: 1}, command: [torchrun, --standalone, t.py]": "",
		two + "command: [python, t.py, --standalone]":                     "",

		two + "framework: horovod, command: [torchrun, --standalone, t.py]": "or leave out framework: horovod, and " +
			"torchrun starts them",

		two + "command: [torchrun, --nnodes=4, t.py]":     "--nnodes=4 is not spec.workers.replicas 2: make them agree",
		two + "command: [torchrun, '--nnodes=2:4', t.py]": "--nnodes=2:4 ends with 4",
		two + "resources: {gpu: 2, cpu: 9, memory: 9Gi}, command: [torchrun, --nproc-per-node=4, " +
			"t.py]": "--nproc-per-node=4 is above spec.resources.gpu 2",

		two + eight + "command: [torchrun, --nproc-per-node=4, " +
			"t.py]": "--nproc-per-node=4 is below spec.resources.gpu 8",
		two + eight + "command: [torchrun, --nproc_per_node, '4', " +
			"t.py]": "write spec.workers.processes: 4 in its place",
		two + eight + "command: [torchrun, --nproc-per-node=8, t.py]":   "",
		two + eight + "command: [torchrun, --nproc-per-node=gpu, t.py]": "",
		two + "command: [torchrun, --nproc-per-node=4, t.py]":           "",
		"workers: {replicas: 2, processes: 4}, " + eight +
			"command: [torchrun, --nproc-per-node=4, t.py]": "",

		two + "command: [torchrun, --rdzv-backend=c10d, t.py]":  "",
		two + "command: [torchrun, --rdzv_backend=etcd, t.py]":  "--rdzv_backend=etcd wins over what tegen sets",
		two + "command: [torchrun, --rdzv-backend, etcd, t.py]": "write spec.rendezvous.backend: etcd in its place",
		two + "command: [torchrun, --rdzv-backend=zeus, t.py]":  "for the rendezvous: leave it out",

		two + "command: [torchrun, '--rdzv-endpoint=foo:29500', t.py]": "write spec.rendezvous: {store: external",
		two + "command: [torchrun, --rdzv-endpoint, '$(MASTER_ADDR):29500', " +
			"t.py]": "--rdzv-endpoint=$(MASTER_ADDR):29500 wins",
		two + "command: [torchrun, '--rdzv-endpoint=$(A):1', t.py], env: [{name: A, value: b}]":     "",
		two + "command: [torchrun, '--rdzv-endpoint=$(A):1', t.py], envFrom: [{secret: s}]":         "",
		two + "command: [torchrun, '--rdzv-endpoint=$(PET_RDZV_ENDPOINT)', t.py]":                   "",
		two + "launcher: entrypoint, command: [torchrun, '--rdzv-endpoint=$(RDZV_ENDPOINT)', t.py]": "",
		two + "launcher: entrypoint, command: [sh, -c, 'torchrun --rdzv-endpoint=$HEAD:1 t.py']":    "",
		two + "command: [torchrun, '--rdzv-endpoint=a.b:2379', t.py], " +
			"rendezvous: {backend: etcd-v2, store: external, endpoint: 'a.b:2379'}": "",
		two + "launcher: none, command: [torchrun, '--rdzv-endpoint=foo:29500', t.py]": "",
		two + "command: [torchrun, --rdzv-id=7, t.py], " +
			"rendezvous: {id: '8'}": "--rdzv-id=7 is not spec.rendezvous.id 8",
		two + "command: [torchrun, --rdzv-id=8, t.py], rendezvous: {id: '8'}": "",

		two + "command: [torchrun, --master-addr=foo, " +
			"t.py]": "--master-addr=foo is of a static rendezvous",
		two + "command: [torchrun, --master_port, '29500', t.py]":         "--master_port=29500 is of a static",
		two + "command: [torchrun, '--master-addr=$(MASTER_ADDR)', t.py]": "leave it out",
	} {
		expect(t, spec, want)
	}
}

// TestOneWordLauncher: a line in one word that begins with a launcher is no list to write, since the launcher is
// refused next; numbers of another one are quoted.
func TestOneWordLauncher(t *testing.T) {
	for spec, want := range map[string]string{
		"framework: horovod, command: ['horovodrun -np 16 python t.py']": "no shell makes several: " +
			"write the program and its arguments alone, each as an item of the list: horovodrun is put before them",
		"command: ['torchrun --standalone t.py']": "write the program and its arguments alone",
		"command: ['python t.py --epochs 16']":    "write [python, t.py, --epochs, '16']",
	} {
		expect(t, "workers: {replicas: 2}, "+spec, want)
	}
}

// TestForgottenFramework: a section of another framework says which one to set, and what none but it knows is not led
// to a field that is refused next.
func TestForgottenFramework(t *testing.T) {
	expect(t, "workers: {replicas: 2}, command: [python, t.py], horovod: {controller: mpi}",
		"set framework: horovod or bytescheduler, where that is meant, or leave this out")
}

// TestUnknownMachine: a machine that is misspelt is not said to leave CPU and memory unsaid, which the right one gives.
func TestUnknownMachine(t *testing.T) {
	_, err := Load([]Source{{Name: "job", Data: []byte(jobHead +
		"workers: {replicas: 2}, resources: {machine: p5.48xlrage, gpu: 8}}\n")}})
	if err == nil || !strings.Contains(err.Error(), "p5.48xlarge is one") ||
		strings.Contains(err.Error(), "without cpu") {
		t.Error(err)
	}
}

// TestLaunchedAlone: a launcher of hosts that each of several pods would start for itself is refused, with the
// framework whose launcher it is, before any other way.
func TestLaunchedAlone(t *testing.T) {
	const two, one = "workers: {replicas: 2}, ", "workers: {replicas: 1}, "
	const alone = "each of 2 workers would start "
	for spec, want := range map[string]string{
		two + "command: [horovodrun, -np, '2', python, " +
			"t.py]": "set framework: horovod, and leave horovodrun and its options out",
		one + "command: [horovodrun, -np, '2', python, t.py]": "options out, or set launcher: entrypoint",
		two + "command: [mpirun, -np, '2', python, " +
			"t.py]": "set framework: mpi, and leave mpirun and its options out",
		two + "command: [bpslaunch, python, t.py]": "set framework: bytescheduler, and leave bpslaunch",
		two + "command: [dlrover-run, t.py]":       "set framework: dlrover, and leave dlrover-run",
		two + "command: [deepspeed, " +
			"t.py]": "leave it and its options out, or set launcher: entrypoint",

		two + "launcher: entrypoint, command: [horovodrun, -np, '2', python, t.py]": alone + "horovodrun",
		two + "launcher: entrypoint, command: [mpirun, -np, '2', python, " +
			"t.py]": "set framework: mpi, and leave mpirun",
		two + "launcher: entrypoint, command: [mpiexec, python, t.py]":              alone + "mpiexec",
		two + "launcher: entrypoint, command: [env, A=b, mpiexec, python, t.py]":    alone + "mpiexec",
		one + "launcher: entrypoint, command: [mpirun, -np, '2', python, t.py]":     "",
		two + "launcher: none, command: [mpirun, -np, '2', python, t.py]":           "",
		two + "launcher: entrypoint, command: [sh, -c, 'mpirun -np 2 python t.py']": "",
		two + "launcher: entrypoint, command: [python, t.py, mpirun]":               "",
		two + "framework: horovod, command: [mpirun, python, t.py]": "tegen puts horovodrun before " +
			"the command: leave mpirun and its options out",
	} {
		expect(t, spec, want)
	}
}

// expect loads a job of a spec, and wants one mistake with some words, or none.
func expect(t *testing.T, spec, want string) *job.Job {
	t.Helper()
	text := jobHead + spec + "}\n"
	if strings.Contains(spec, "command: ") {
		text = strings.Replace(text, "command: [python, train.py], ", "", 1)
	}
	jobs, err := Load([]Source{{Name: "job", Data: []byte(text)}})
	switch {
	case err == nil && want == "":
		return jobs[0]
	case err == nil || want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("%s\ngot  %v\nwant %q", spec, err, want)
	}
	return nil
}

// TestAloneNotes: where a shell may have one pod start a launcher of hosts, or nobody wants a rendezvous, it is told.
func TestAloneNotes(t *testing.T) {
	const two, n = "workers: {replicas: 2}, ", "each of 2 workers starts "
	for spec, want := range map[string]string{
		two + "launcher: none, command: [mpirun, -np, '2', python, t.py]":                    n + "mpirun",
		two + "launcher: none, command: [torchrun, --standalone, t.py]":                      n + "torchrun",
		two + "launcher: none, command: [torchrun, --nnodes=2, t.py]":                        "",
		two + "launcher: entrypoint, command: [sh, -c, 'horovodrun -np 2 python t.py']":      "set framework: horovod",
		two + "launcher: entrypoint, command: [deepspeed, t.py]":                             n + "deepspeed",
		two + "launcher: none, command: [sh, -c, '[ $JOB_COMPLETION_INDEX = 0 ] && mpirun']": "",
		"workers: {replicas: 1}, launcher: none, command: [mpirun, python, t.py]":            "",
		two + "launcher: none, command: [python, t.py]":                                      "",

		two + "launcher: none, command: [torchrun, t.py]":                                        "set launcher: e",
		two + "launcher: none, command: [torchrun, t.py], env: [{name: PET_NNODES, value: '2'}]": "",
		two + "launcher: entrypoint, command: [torchrun, t.py]":                                  "",
		two + "launcher: entrypoint, command: [python, -m, torch.distributed.run, t.py]":         "",
		two + "launcher: entrypoint, command: [accelerate, launch, t.py]":                        n + "accel",
		two + "launcher: entrypoint, command: [accelerate, launch, --num_machines=1, t.py]":      "launcher: torchrun",
		two + "launcher: entrypoint, command: [sh, -c, 'cd /a && accelerate  launch t.py']":      n + "accel",
		two + "launcher: entrypoint, command: [python, -m, accelerate.commands.launch, t.py]":    n + "accel",
		two + "launcher: entrypoint, command: [accelerate, launch, --machine_rank, '0', t.py]":   "",
		two + "launcher: entrypoint, command: [accelerate, launch, --config_file=a.yaml, t.py]":  "",
		two + "launcher: entrypoint, command: [accelerate, config]":                              "",
		two + "launcher: entrypoint, command: [python, -m, deepspeed.launcher.runner, t.py]":     n + "deeps",
		two + "launcher: entrypoint, command: [deepspeed, --no_ssh, --node_rank=$N, t.py]":       "",
		two + "launcher: entrypoint, command: [colossalai, run, --nproc_per_node, '2', t.py]":    n + "colo",
		two + "launcher: entrypoint, command: [composer, -n, '2', t.py]":                         n + "comp",
		two + "launcher: entrypoint, command: [composer, --node_rank, '1', t.py]":                "",
		"workers: {replicas: 1}, launcher: entrypoint, command: [accelerate, launch, t.py]":      "",
	} {
		j := expect(t, spec, "")
		if j == nil {
			continue
		}
		notes := strings.Join(note.AloneNotes(&j.Spec), "\n")
		if (want == "") != (notes == "") || !strings.Contains(notes, want) {
			t.Errorf("%s: notes %q, want %q", spec, notes, want)
		}
	}
}
