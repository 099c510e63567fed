package importer_test

import "testing"

// TestPlaceholders: what nobody has filled in is told once, with the fields of the job that wait for it and no others;
// the tokens of a model and a shell's own variables are none.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {pytorchReplicaSpecs: " +
		"{Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, "
	const tail = "}]}}}}}\n"
	for name, c := range map[string]claim{
		"each word waits for its own field": {
			in: head + `image: "a/b:1", command: [torchrun, --nproc_per_node=$GPUS, --nnodes=$NODES, train.py, ` +
				`"<IMAGE>"]` + tail,
			reported: []string{
				`command\[1\]: .*error: .*, or into spec\.workers\.processes of the job`,
				`command\[2\]: .*error: .*, or into spec\.workers\.m(ax|in) and spec\.workers\.m(ax|in) of the job`,
				`command\[4\]: .*error: .*, or into spec\.command\[2\] of the job`,
			},
			invalid: true,
		},
		"one placeholder in two words": {
			in: head + `image: "a/b:1", command: [python, train.py], args: [--a=<A_NAME>, --b, "<A_NAME>"]` +
				tail,
			reported: []string{
				`args\[0\]: .*or into spec\.args\[0\] of the job`,
				`args\[2\]: .*or into spec\.args\[2\] of the job`,
			},
			invalid: true,
		},
		"tokens of a model": {
			in: head + `image: "a/b:1", command: [torchrun, t.py, --pad_token=<pad>, --image_token, ` +
				`"<image>"], env: [{name: BOS, value: "<s>"}]` + tail,
			unreported: []string{"error", "refused"},
		},
		"what somebody is to fill in": {
			in: head + `image: "a/b:1", command: [torchrun, t.py, "--a=<your-bucket>", "<a name>", ` +
				`"s3://<my_name>/c"], env: [{name: T, value: "<HF_token>"}]` + tail,
			reported: []string{
				`command\[2\]: .*error`, `command\[3\]: .*error`, `command\[4\]: .*error`,
				`env\[0\]\.value: .*error`,
			},
			invalid: true,
		},
		"a shell's own variable": {
			in: head + `image: "a/b:1", command: [torchrun, t.py], env: [{name: X, value: "for f in *; do ` +
				`echo ${f}; done"}]` + tail,
			unreported: []string{"error", "refused"},
		},
		"a variable that stands elsewhere too": {
			in: head + `image: "${REGISTRY}/b:1", command: [torchrun, t.py], env: [{name: X, value: "see ` +
				`${REGISTRY} for more"}]` + tail,
			reported: []string{`image: .*error`, `env\[0\]\.value: .*error`},
			invalid:  true,
		},
	} {
		t.Run(name, c.check)
	}
}
