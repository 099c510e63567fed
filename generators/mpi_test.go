package generators_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
)

// Open MPI's variables that keep the whole name of a host, up to 4 and since 5.
const keepNames4, keepNames5 = "OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"

// mpiLauncher is the container that horovodrun runs in.
func mpiLauncher(t *testing.T, spec ...string) corev1.Container {
	t.Helper()
	objs := objects(load(t, jobText(spec...)))
	if slices.Contains(spec, "target: mpijob") {
		return find[*apis.MPIJob](t, objs, "resnet").Spec.MPIReplicaSpecs[apis.MPILauncher].Template.Spec.Containers[0]
	}
	return worker(t, objs)
}

// TestMpirunIsToldToKeepNames: where mpirun is what dials, and by nobody else.
func TestMpirunIsToldToKeepNames(t *testing.T) {
	const mpi = "horovod: {controller: mpi}"
	for _, c := range []struct {
		spec []string
		want []string
	}{
		{[]string{"framework: bytescheduler"}, []string{keepNames4, keepNames5}},
		{[]string{"framework: horovod", mpi}, []string{keepNames4, keepNames5}},
		{[]string{"framework: horovod"}, nil},                                           // gloo dials for itself
		{[]string{"framework: horovod", mpi, "workers: {replicas: 1}"}, nil},            // nobody is dialed
		{[]string{"framework: horovod", mpi, "target: mpijob"}, []string{keepNames5}},   // the operator has the other
		{[]string{"framework: bytescheduler", "target: mpijob"}, []string{keepNames5}},  // the operator has the other
		{[]string{"framework: horovod", "workers: {replicas: 3, min: 2, max: 4}"}, nil}, // elastic is gloo
		{[]string{"framework: bytescheduler", "network: {host: true}"}, []string{keepNames4, keepNames5}},
	} {
		var got []string
		for _, e := range mpiLauncher(t, c.spec...).Env {
			if e.Name == keepNames4 || e.Name == keepNames5 {
				got = append(got, e.Name)
				if e.Value != "1" {
					t.Errorf("%q: %s is %q", c.spec, e.Name, e.Value)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.spec, diff)
		}
	}
}

// TestMpirunDials has the real mpirun dial what is rendered, with the flags that the real horovodrun gives it: the
// names that it hands to ssh are whole, for no shorter name of a pod resolves.
func TestMpirunDials(t *testing.T) {
	need(t, "mpirun")
	for _, spec := range [][]string{
		{"framework: bytescheduler"},
		{"framework: horovod", "horovod: {controller: mpi}"},
	} {
		c := mpiLauncher(t, append(spec, "workers: {replicas: 3}")...)
		const domain = ".resnet-worker.ml.svc.cluster.local"
		hosts := "resnet-worker-0" + domain + ":1,resnet-worker-1" + domain + ":1,resnet-worker-2" + domain + ":1"
		dir := t.TempDir()
		// mpirun ends with the first that fails, so each waits for the others.
		put(t, filepath.Join(dir, "bin"), map[string]string{"ssh": `#!/bin/sh
echo "$*" >>` + dir + `/dialed
n=0
while [ "$(wc -l <` + dir + `/dialed)" -lt 3 ] && [ "$n" -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
exit 1
`}, 0o755)
		c.Command = strings.Fields("mpirun --allow-run-as-root --tag-output -np 3 -H " + hosts +
			" -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -mca plm_rsh_args -p_12345 -mca " +
			"btl_tcp_if_include eth0 true")
		c.Command[slices.Index(c.Command, "-p_12345")] = "-p 12345"
		c.Args = nil
		out, err := start(t, c, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "HOME="+dir)
		if err == nil {
			t.Fatalf("mpirun reached pods that do not exist:\n%s", out)
		}
		var got []string
		for line := range strings.Lines(read(t, filepath.Join(dir, "dialed"))) {
			i := strings.Index(line, "resnet-worker-")
			if i < 0 || !strings.Contains(line[:i], "-p 12345") {
				t.Fatalf("ssh got %s", line)
			}
			got = append(got, strings.Fields(line[i:])[0])
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{
			"resnet-worker-0" + domain, "resnet-worker-1" + domain,
			"resnet-worker-2" + domain,
		}, got); diff != "" {
			t.Errorf("%q: ssh dialled (-want +got):\n%s\n%s", spec, diff, out)
		}
	}
}

// TestByteSchedulersHorovodrun: Horovod 0.16.1, the first with a horovodrun, has these options and no others
// (parse_args in horovod/run/run.py). It takes a timeout under another name than later ones, so a variable has it.
func TestByteSchedulersHorovodrun(t *testing.T) {
	options := []string{"-np", "-p", "-H"}
	for _, spec := range [][]string{
		{"workers: {replicas: 2, processes: 4}"},
		{"target: mpijob"},
		{"network: {host: true, interface: ens5}"},
	} {
		c := mpiLauncher(t, append(spec, "framework: bytescheduler", "horovod: {startTimeout: 7m}", "command: [python]",
			"args: [train.py]")...)
		if c.Args[0] != "horovodrun" {
			t.Fatalf("%q: %q", spec, c.Args)
		}
		rest := c.Args[1:]
		for ; len(rest) > 1 && strings.HasPrefix(rest[0], "-"); rest = rest[2:] {
			if !slices.Contains(options, rest[0]) {
				t.Errorf("%q: horovodrun got %s", spec, rest[0])
			}
		}
		if diff := cmp.Diff([]string{"python", "train.py"}, rest); diff != "" {
			t.Errorf("%q: the program (-want +got):\n%s", spec, diff)
		}
		if got := env(t, c)["HOROVOD_START_TIMEOUT"]; got != "420" {
			t.Errorf("%q: HOROVOD_START_TIMEOUT is %q", spec, got)
		}
	}
}
