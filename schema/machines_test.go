package schema

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
	"github.com/tegen-dev/tegen/schema/note"
)

const machineJob = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: j, namespace: ml}
spec: {image: "x:1", command: [python, train.py], workers: {replicas: 2}, `

const machinePlace = `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: place}
spec: {`

// TestMachinesFit: each type is named once, and a machine has room for as many workers of one accelerator as it has
// accelerators.
func TestMachinesFit(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range machine.All() {
		if seen[m.Name] || m.GPU < 1 || len(m.NodeSelector) == 0 {
			t.Errorf("%s: twice, or without accelerators or a label", m.Name)
		}
		seen[m.Name] = true
		for field, all := range map[string]*resource.Quantity{"cpu": m.CPU, "memory": m.Memory} {
			if all == nil {
				continue
			}
			each := resource.MustParse(m.Share(1)[field])
			if each.Mul(m.GPU); each.Cmp(*all) > 0 || each.IsZero() {
				t.Errorf("%s: %s %s for all workers, of %s", m.Name, field, each.String(), all.String())
			}
		}
	}
}

// TestMachineOfPlace: an Environment's machine goes before the table's, and is refused like a job's own words where it
// is wrong; a place that is anywhere, or has no accelerators, has no machines either.
func TestMachineOfPlace(t *testing.T) {
	const whole = `resources: {machine: p5.48xlarge, gpu: 8}}`
	const row = `machines: [{name: p5.48xlarge, gpu: 8, cpu: 64, memory: 512Gi, nodeSelector: {pool: big}, ` +
		`fabric: {kind: infiniband, devices: {rdma/ib: 4}, memlock: unlimited}}]`
	const half = `resources: {machine: p5.48xlarge, gpu: 4}}`
	for name, c := range map[string]struct {
		place, job, fabric, cpu, device string
		selects                         bool
	}{
		"the table's":     {"", whole, job.FabricEFA, "181", job.DeviceEFA, true},
		"the place's":     {row, whole, job.FabricInfiniBand, "64", "rdma/ib", true},
		"a half of it":    {row, half, job.FabricInfiniBand, "32", "rdma/ib", true},
		"anywhere":        {"anywhere: true", whole, job.None, "181", "", false},
		"no accelerators": {"overrides: {resources: {gpu: 0}}", whole, job.None, "1", "", false},
		"the job's own CPU": {
			row, strings.Replace(whole, "gpu", "cpu: 3, gpu", 1), job.FabricInfiniBand, "3", "rdma/ib", true,
		},
		"one by override": {
			row + ", overrides: {resources: {machine: p5en.48xlarge}}", whole, job.FabricEFA, "181", job.DeviceEFA,
			true,
		},
	} {
		sources := []Source{
			{Name: "job", Data: []byte(machineJob + c.job)},
			{Name: "place", Data: []byte(machinePlace + c.place + "}"), Environment: AnyEnvironment},
		}
		jobs, err := Load(sources)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := &jobs[0].Spec
		if _, has := s.Resources.Devices[c.device]; s.Network.Fabric != c.fabric || has != (c.device != "") ||
			s.Resources.CPU.String() != c.cpu || len(s.Placement.NodeSelector) > 0 != c.selects {
			t.Errorf("%s: fabric %s, devices %v, cpu %s, nodes %v", name, s.Network.Fabric, s.Resources.Devices,
				s.Resources.CPU.String(), s.Placement.NodeSelector)
		}
		if jobs[0].Fabric().LocksMemory() {
			t.Errorf("%s: wants IPC_LOCK where locked memory has no limit", name)
		}
	}
}

// TestCores: a worker has a process for each core of its accelerators, unless it says how many.
func TestCores(t *testing.T) {
	for resources, want := range map[string]string{
		`resources: {machine: trn1.32xlarge, gpu: 16}}`: "32",
		`resources: {machine: trn2.48xlarge, gpu: 4}}`:  "16",
		`resources: {machine: p5.48xlarge, gpu: 8}}`:    "8",
	} {
		jobs, err := Load(named("job", machineJob+resources))
		if err != nil {
			t.Errorf("%s: %v", resources, err)
			continue
		}
		if got := jobs[0].Spec.Workers.Processes.String(); got != want {
			t.Errorf("%s: %s processes, want %s", resources, got, want)
		}
	}
}

// TestMachineBesideGroups: a group with accelerators gets none of the workers' nodes, which is said unless it names its
// own.
func TestMachineBesideGroups(t *testing.T) {
	const spec = `resources: {machine: p5.48xlarge, gpu: 8}, groups: [{name: side, command: [x], OWN` +
		`resources: {gpu: 1, cpu: 4, memory: 8Gi}}]}`
	for own, noted := range map[string]bool{"": true, "tolerations: [{operator: Exists}], ": false} {
		text := machineJob + strings.Replace(spec, "OWN", own, 1)
		jobs, err := Load(named("job", text))
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(note.Of(jobs[0]), "\n"); strings.Contains(all, "the workers' alone") != noted {
			t.Errorf("%q: noted %v: %s", own, !noted, all)
		}
	}
}

// TestCardsGoWhole: cards that one pod of a node has alone go to workers that have all of its accelerators, or that say
// so; others are told.
func TestCardsGoWhole(t *testing.T) {
	for spec, want := range map[string]struct {
		fabric string
		noted  bool
	}{
		`resources: {machine: a3-ultragpu-8g, gpu: 8}}`:                          {job.FabricRoCE, false},
		`resources: {machine: a3-ultragpu-8g, gpu: 4}}`:                          {job.None, true},
		`resources: {machine: a3-ultragpu-8g, gpu: 4}, network: {fabric: none}}`: {job.None, false},
		`resources: {machine: a4-highgpu-8g, gpu: 4}, network: {fabric: roce}}`:  {job.FabricRoCE, false},
		`resources: {machine: p5.48xlarge, gpu: 4}}`:                             {job.FabricEFA, false},
		`resources: {machine: g5.48xlarge, gpu: 1}}`:                             {job.None, true},
		`resources: {machine: g5.48xlarge, gpu: 8}}`:                             {job.FabricEFA, false},
		`resources: {machine: g5.48xlarge, gpu: 1}, network: {fabric: none}}`:    {job.None, false},
		`resources: {machine: g5.4xlarge, gpu: 1}}`:                              {job.None, false},
		`resources: {machine: a3-megagpu-8g, gpu: 8}}`:                           {job.None, true},
		`resources: {machine: a3-megagpu-8g, gpu: 8}, network: {fabric: none}}`:  {job.None, false},
		`resources: {machine: a4-highgpu-8g, gpu: 8}, network: {fabric: none}}`:  {job.None, false},
	} {
		text := machineJob + strings.Replace(spec, ", gpu", ", cpu: 9, memory: 9Gi, gpu", 1)
		jobs, err := Load(named("job", text))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		noted := strings.Contains(strings.Join(note.Of(jobs[0]), "\n"), "get no fabric")
		if got := jobs[0].Spec.Network.Fabric; got != want.fabric || noted != want.noted {
			t.Errorf("%s: fabric %s, noted %v", spec, got, noted)
		}
	}
}

// TestCardNotes: devices that a row of machines adds are reported, unless the job or its Environment confirms them.
func TestCardNotes(t *testing.T) {
	const efa = "g5.12xlarge adds vpc.amazonaws.com/efa: 1 to each worker"
	const env = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: "
	for _, c := range []struct{ spec, env, want string }{
		{"workers: {replicas: 2}, resources: {machine: g5.12xlarge, gpu: 4}", "", efa},
		{"workers: {replicas: 1}, resources: {machine: g5.12xlarge, gpu: 4}", "", ""},
		{"workers: {replicas: 2}, resources: {machine: g5.12xlarge, gpu: 4}, network: {fabric: none}", "", ""},
		{"workers: {replicas: 2}, resources: {machine: g5.12xlarge, gpu: 4}, network: {fabric: efa}", "", ""},
		{
			"workers: {replicas: 2}, resources: {machine: g5.12xlarge, gpu: 4}",
			"{defaults: {network: {fabric: efa}}}", "",
		},
		{
			"workers: {replicas: 2}, resources: {machine: g5.12xlarge, gpu: 4}",
			"{machines: [{name: g5.12xlarge, gpu: 4, cpu: 40, memory: 100Gi, fabric: {kind: efa, " +
				"devices: {vpc.amazonaws.com/efa: 1}}}]}", "",
		},
	} {
		sources := []Source{{Name: "job", Data: []byte(jobHead + c.spec + "}\n")}}
		if c.env != "" {
			sources = append(sources, Source{
				Name: "env", Data: []byte(env + c.env + "\n"), Environment: AnyEnvironment,
			})
		}
		jobs, err := Load(sources)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(note.CardNotes(jobs[0]), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, Environment %s: notes %q, want %q", c.spec, c.env, got, c.want)
		}
	}
}
