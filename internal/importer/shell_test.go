package importer_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// podsOf is an Indexed Job whose container has these words, and variables.
func podsOf(t *testing.T, pods int, env map[string]string, command ...string) []byte {
	t.Helper()
	container := map[string]any{"name": "worker", "image": "a/b:1", "command": command}
	variables := []any{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		variables = append(variables, map[string]any{"name": name, "value": env[name]})
	}
	if len(variables) > 0 {
		container["env"] = variables
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "j-worker"},
		"spec": map[string]any{
			"completionMode": "Indexed", "completions": pods, "parallelism": pods,
			"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never",
				"containers":    []any{container},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestShellText: of the options that a shell reads, those of the one launcher become fields, and no word of another
// command, a comment or the training program does. What is left is what bash would have read.
func TestShellText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, left     string // left is "" where all of it stays
		reported, jobs []string
		unlike         string // no line of the job
		lossy, sole    bool   // sole: one pod
	}{
		"continued lines": {
			text:     "torchrun \\\n--nproc_per_node=8 \\\n--nnodes=2 \\\ntrain.py --lr 1",
			left:     "torchrun \\\ntrain.py --lr 1",
			reported: []string{`translated: of torchrun's options, --nnodes, --nproc-per-node became fields`},
			jobs:     []string{`processes: 8`},
		},
		"the program's own options": {
			text: "torchrun --nnodes=2 --nproc_per_node=1 train.py --max_restarts=7 --nnodes 4",
			left: "torchrun train.py --max_restarts=7 --nnodes 4",
			jobs: []string{`maxRestarts: 0`}, unlike: `min: |max: `,
		},
		"two launchers": {
			text: "torchrun --nproc_per_node=1 --nnodes=1 prep.py && torchrun --nproc_per_node=8 --nnodes=2 " +
				"train.py",
			reported: []string{`warning: more than one launcher`},
		},
		"two launchers that say nothing of nodes": {
			text:     "torchrun --nproc_per_node=4 prep.py; torchrun --nproc_per_node=8 train.py",
			reported: []string{`warning: more than one launcher`, `changed: without --nnodes`}, lossy: true,
		},
		"a comment": {
			text: "# torchrun --nnodes=9 was too many\npython t.py --nnodes=4 --rdzv_id=x", unlike: `min: |max: |id: x`,
		},
		"a comment behind a command": {
			text: "torchrun --nnodes 2 train.py # --max_restarts=5", left: "torchrun train.py # --max_restarts=5",
			jobs: []string{`maxRestarts: 0`},
		},
		"quotes": {
			text: `echo "torchrun starts"; exec torchrun --nnodes '2' --max_restarts="4" --rdzv_conf ` +
				`"join_timeout=60,x=$(hostname)" "a b.py"`,
			left: `echo "torchrun starts"; exec torchrun --rdzv_conf "join_timeout=60,x=$(hostname)" "a b.py"`,
			jobs: []string{`maxRestarts: 4`},
		},
		"a word that only looks like an option": {
			text: `python -m torch.distributed.run --nnodes=2 train.py --note "--nproc_per_node=3 torchrun"`,
			left: `python -m torch.distributed.run train.py --note "--nproc_per_node=3 torchrun"`,
		},
		"a launcher in quotes": {
			text:     `bash -c "torchrun --nnodes=2 --nproc_per_node=8 train.py"`,
			reported: []string{`warning: torchrun stands in quotes`},
		},
		"a launcher in a here-document": {
			text:     "cat > run.sh <<'EOF'\ntorchrun --nnodes=2 --max_restarts=9 t.py\nEOF\nbash run.sh",
			reported: []string{`warning: torchrun stands in quotes, a variable or a here-document`},
		},
		"data in a here-document": {
			text: "cat > c.json <<EOF\n{\"nnodes\": \"it's\"}\nEOF\ntorchrun --nnodes=2 t.py",
			left: "cat > c.json <<EOF\n{\"nnodes\": \"it's\"}\nEOF\ntorchrun t.py",
		},
		"options in a variable": {
			text:     "ARGS=\"--nnodes 2 --nproc_per_node 8\"\ntorchrun $ARGS train.py",
			reported: []string{`warning: what options \$ARGS holds`},
		},
		"options in a variable between others": {
			text:     "torchrun --nnodes=2 $DIST_ARGS --nproc_per_node=4 --max_restarts=3 train.py",
			left:     "torchrun $DIST_ARGS --nproc_per_node=4 --max_restarts=3 train.py",
			reported: []string{`warning: what options \$DIST_ARGS holds`}, unlike: `maxRestarts|processes: `,
		},
		"a script in a variable": {
			text: "torchrun --nnodes=2 $SCRIPT --nnodes=7", left: "torchrun $SCRIPT --nnodes=7",
		},
		"a quote that is not closed": {
			text: "torchrun --nnodes=2 'train.py", reported: []string{`warning: a quote or bracket`},
		},
		"an option that the shell fills in": {
			text: "torchrun --nnodes=2 --nproc_per_node=$(nvidia-smi -L | wc -l) --rdzv_id=a train.py",
			left: "torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) train.py", jobs: []string{`id: a`},
		},
		"a pipeline": {
			text: "torchrun --nnodes=2 train.py 2>&1 | tee --append --nproc_per_node=4",
			left: "torchrun train.py 2>&1 | tee --append --nproc_per_node=4", unlike: `processes: `,
		},
		"one pod of its own": {
			text: "torchrun --standalone --nproc_per_node=2 train.py",
			left: "torchrun --standalone train.py", sole: true,
		},
		"pods of their own": {
			text:     "torchrun --standalone --nproc_per_node=2 train.py",
			reported: []string{`warning: torchrun trains in each pod for itself, as before`},
			jobs:     []string{`launcher: none`},
		},
		"pods of their own, with options in a variable": {
			text:     "torchrun --standalone $ARGS train.py",
			reported: []string{`warning: torchrun trains in each pod for itself, as before`},
			jobs:     []string{`launcher: none`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods := 2
			if c.sole {
				pods = 1
			}
			out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: podsOf(t, pods, nil, "bash", "-c", c.text)}})
			notes := lines(out.Notes)
			for _, want := range c.reported {
				if !regexp.MustCompile(want).MatchString(notes) {
					t.Errorf("no line like %s", want)
				}
			}
			if len(c.reported) == 0 && strings.Contains(notes, "warning") {
				t.Error("a warning of nothing")
			}
			for _, want := range c.jobs {
				if !regexp.MustCompile(want).Match(out.YAML) {
					t.Errorf("nothing in the job is like %s", want)
				}
			}
			if c.unlike != "" && regexp.MustCompile(c.unlike).Match(out.YAML) {
				t.Errorf("something in the job is like %s", c.unlike)
			}
			if out.Lossy != c.lossy || out.Invalid {
				t.Errorf("invalid %v, lossy %v: want false, %v", out.Invalid, out.Lossy, c.lossy)
			}
			want := c.left
			if want == "" {
				want = c.text
			}
			var object struct{ Spec struct{ Command []string } }
			if err := yaml.Unmarshal(out.YAML, &object); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%q", object.Spec.Command); got != fmt.Sprintf("%q", []string{"bash", "-c", want}) {
				t.Errorf("it runs %s, and should run %q", got, want)
			}
			if t.Failed() {
				t.Logf("%s%s", out.YAML, notes)
			}
		})
	}
}

// TestShellOptions: a shell reads the first word that is no option as text only where it has the option c.
func TestShellOptions(t *testing.T) {
	t.Parallel()
	for words, read := range map[string]bool{
		"bash -c TEXT": true, "bash -euo pipefail -c TEXT": true, "sh -ec TEXT -c": true,
		"bash -c -x TEXT": true, "bash +o posix -lc -- TEXT": true, "bash run.sh -c TEXT": false,
		"bash -o pipefail run.sh -c TEXT": false, "bash --norc run.sh -ec TEXT": false,
		"bash -- run.sh -c TEXT": false,
	} {
		command := strings.Fields(words)
		for i, word := range command {
			if word == "TEXT" {
				command[i] = "torchrun --nnodes=2 --max_restarts=7 t.py"
			}
		}
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: podsOf(t, 2, nil, command...)}})
		if got := strings.Contains(string(out.YAML), "maxRestarts: 7"); got != read {
			t.Errorf("%s: text %v, want %v\n%s%s", words, got, read, out.YAML, lines(out.Notes))
		}
		if asItIs := strings.Contains(string(out.YAML), "launcher: none"); asItIs == read {
			t.Errorf("%s: its script starts as it stands: %v", words, asItIs)
		}
	}
}

// TestTorchrunTold: what torchrun is told by a job, and was not told before, is 0 restarts as it has by itself, or a
// line says it.
func TestTorchrunTold(t *testing.T) {
	t.Parallel()
	restarts := "PET_MAX_RESTARTS\n          value: \""
	for name, c := range map[string]struct {
		in                 []byte
		reported, rendered string
		unreported         string
		lossy              bool
	}{
		"torchrun that knows of no other pod": {
			in:       podsOf(t, 2, nil, "torchrun", "--nproc_per_node=2", "train.py"),
			reported: `warning: torchrun trains in each pod for itself, as before: for one training of all 2, leave`,
			rendered: "- --nproc_per_node=2\n", unreported: `PET_|changed`,
		},
		"a script": {
			in: podsOf(t, 2, nil, "bash", "run.sh"), unreported: `PET_`, rendered: "- run.sh",
		},
		"a program": {
			in:         podsOf(t, 2, nil, "python", "train.py"),
			unreported: `PET_`, rendered: "- train.py",
		},
		"one pod": {
			in: podsOf(t, 1, nil, "torchrun", "train.py"), unreported: `changed`,
			rendered: restarts + "0",
		},
		"its own restarts": {
			in:         podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--max-restarts=5", "train.py"),
			unreported: `PET_MAX|PET_NNODES`, rendered: restarts + "5",
		},
		"restarts as a variable": {
			in:         podsOf(t, 1, map[string]string{"PET_MAX_RESTARTS": "2"}, "torchrun", "train.py"),
			unreported: `PET_MAX`, rendered: restarts + "2",
		},
		"torchrun of one node in each of two pods": {
			in:         podsOf(t, 2, nil, "torchrun", "--nnodes=1", "--nproc_per_node=4", "a.py"),
			reported:   `warning: torchrun trains in each pod for itself`,
			unreported: `error|refused|changed`, rendered: "- --nnodes=1\n",
		},
		"torchrun of one node that a shell starts in each of two pods": {
			in:       podsOf(t, 2, nil, "sh", "-c", "torchrun --nnodes 1:1 a.py"),
			reported: `warning: torchrun trains in each pod for itself`,
			rendered: "- torchrun --nnodes 1:1 a.py\n", unreported: `PET_|changed`,
		},
		"torchrun behind env": {
			in:         podsOf(t, 1, nil, "env", "A=b", "torchrun", "--nproc_per_node=4", "a.py"),
			reported:   `warning: torchrun is started by env: what options it has is not read`,
			unreported: `error|changed`,
			rendered:   "- env\n        - A=b\n        - torchrun\n        - --nproc_per_node=4\n        - a.py\n",
		},
		"torchrun behind what measures it, in two pods": {
			in: podsOf(t, 2, nil, "nsys", "profile", "-o", "x", "torchrun", "--nproc_per_node=4",
				"--max-restarts=2", "a.py"),
			reported: `changed: without --nnodes torchrun trains in each pod for itself`, unreported: `error`,
			rendered: "- --max-restarts=2\n", lossy: true,
		},
		"a program that is told the name of a launcher": {
			in: podsOf(t, 1, nil, "python", "train.py", "--launcher", "torchrun"), unreported: `warning|error`,
			rendered: "- --launcher",
		},
		"torchrun as the image's entrypoint is told": {
			in: []byte(strings.Replace(string(podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--nproc_per_node=4",
				"a.py")), "command:", "args:", 1)),
			unreported: `changed|error`, rendered: "args:\n        - torchrun\n        - a.py\n",
		},
		"a module as the image's entrypoint is told": {
			in: []byte(strings.Replace(string(podsOf(t, 2, nil, "-m", "torch.distributed.run", "--nnodes=2",
				"--nproc_per_node=4", "a.py")), "command:", "args:", 1)),
			unreported: `changed|error`,
			rendered:   "args:\n        - -m\n        - torch.distributed.run\n        - a.py\n",
		},
		"an elastic job": {
			in:       podsOf(t, 2, nil, "torchrun", "--nnodes=1:2", "train.py"),
			reported: `changed: nobody says --max-restarts`, rendered: restarts + "1", lossy: true,
		},
		"torchelastic before torchrun": {
			in: podsOf(t, 2, nil, "python", "-m",
				"torchelastic.distributed.launch", "--nnodes=1:2", "train.py"),
			unreported: "changed", rendered: restarts + "3",
		},
		"ranks by the pods' numbers": {
			in: podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--node_rank=$(JOB_COMPLETION_INDEX)",
				"--master_addr=j-worker-0.j-worker", "--master_port=29500", "train.py"),
			reported:   `warning: the pods meet by numbers that the command says, as before`,
			unreported: `PET_|changed`, rendered: "- --node_rank=$(JOB_COMPLETION_INDEX)\n",
		},
		"such ranks that a shell reads": {
			in: podsOf(t, 2, nil, "bash", "-c",
				"torchrun --nnodes=2 --node_rank=$JOB_COMPLETION_INDEX --master_addr=j-worker-0.j-worker train.py"),
			reported: `warning: the pods meet by numbers`, unreported: `PET_|changed`,
			rendered: "- torchrun --nnodes=2 --node_rank=$JOB_COMPLETION_INDEX --master_addr=j-worker-0.j-worker t",
		},
		"such ranks as variables": {
			in: podsOf(t, 2, map[string]string{
				"PET_NNODES": "2", "PET_NODE_RANK": "$(NODE)",
				"PET_MASTER_ADDR": "j-worker-0.j-worker",
			}, "torchrun", "train.py"),
			reported: `warning: the pods meet by numbers`, unreported: `changed`,
			rendered: "- name: PET_NODE_RANK\n          value: $(NODE)\n",
		},
		"such ranks of other nodes than there are pods": {
			in: podsOf(t, 2, nil, "torchrun", "--nnodes=1:2", "--node_rank=$(JOB_COMPLETION_INDEX)",
				"--master_addr=j-worker-0.j-worker", "train.py"),
			reported: `changed: --node-rank, --master-addr say who is who`, rendered: restarts + "1", lossy: true,
		},
		"pods that do not know their numbers": {
			in:       podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--master_addr=j-worker-0.j-worker", "train.py"),
			reported: `changed: --master-addr say who is who`, rendered: restarts + "0", lossy: true,
		},
		"a backend called static": {
			in: podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--rdzv_backend=static",
				"--rdzv_endpoint=a:1", "train.py"),
			reported: `changed: a static rendezvous`, rendered: restarts + "0", lossy: true,
		},
		"c10d, which passes over ranks": {
			in:         podsOf(t, 2, nil, "torchrun", "--nnodes=2", "--node_rank=0", "--rdzv_backend=c10d", "train.py"),
			unreported: "changed", rendered: restarts + "0",
		},
		"a PyTorchJob, whose operator tells torchrun of the others": {
			in: []byte("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {elasticPolicy: " +
				"{minReplicas: 2, maxReplicas: 2}, pytorchReplicaSpecs: {" +
				"Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, " +
				"image: 'a/b:1', command: [torchrun, t.py]}]}}}}}\n"),
			unreported: "changed", rendered: "maxRestarts: 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: c.in}})
			notes := lines(out.Notes)
			if !regexp.MustCompile(c.reported).MatchString(notes) {
				t.Errorf("no line like %s", c.reported)
			}
			if c.unreported != "" && regexp.MustCompile(c.unreported).MatchString(notes) {
				t.Errorf("a line like %s", c.unreported)
			}
			if text := renders(t, out.YAML); !strings.Contains(text, c.rendered) {
				t.Errorf("nothing that is rendered holds %q", c.rendered)
			}
			if out.Lossy != c.lossy || out.Invalid {
				t.Errorf("invalid %v, lossy %v: want false, %v", out.Invalid, out.Lossy, c.lossy)
			}
			if t.Failed() {
				t.Logf("%s%s", out.YAML, notes)
			}
		})
	}
}

// TestTutorial: the tutorial's manifests, with ids filled in and both workers alike, are imported with nothing lost and
// nothing that their images are told anew.
func TestTutorial(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/torchelastic-pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filled := regexp.MustCompile(`<(BUCKET|USER|JOB_ID)>`).ReplaceAllString(string(text), "name")
	filled = strings.Replace(filled, "    - {name: dshm, mountPath: /scratch}\n", "", 1)
	filled = strings.Replace(filled, "    name: persistent-storage\n", "", 1) // which stands twice
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(filled)}})
	if out.Invalid || out.Lossy {
		t.Errorf("invalid %v, lossy %v", out.Invalid, out.Lossy)
	}
	if notes := lines(out.Notes); regexp.MustCompile(`changed|dropped|warning`).MatchString(notes) || t.Failed() {
		t.Errorf("%s%s", out.YAML, notes)
	}
	if text := renders(t, out.YAML); !strings.Contains(text, "PET_MAX_RESTARTS\n      value: \"3\"") {
		t.Error("the restarts are not torchelastic's own")
	}
}
