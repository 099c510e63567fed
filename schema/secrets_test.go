package schema

import (
	"runtime"
	"strings"
	"testing"
)

// TestSecretNotes: a secret in plain text is reported wherever a text can be written, and never printed.
func TestSecretNotes(t *testing.T) {
	const password, key = "hunter2hunter2", "hf_abcdefghijklmnopqrstuvwx"
	const plain = "env: [{name: DB_PASSWORD, value: " + password + "}]"
	for _, c := range [][2]string{
		{plain, "spec.env[0].value"},
		{"env: [{name: X, value: " + key + "}]", "spec.env[0].value"},
		{"env: [{name: X, value: 'postgres://me:" + password + "@db/x'}]", "spec.env[0].value"},
		{"env: [{name: X, value: '-----BEGIN RSA PRIVATE KEY-----'}]", "spec.env[0].value"},
		{"env: [{name: AWS_ACCESS_KEY_ID, value: AKIAIOSFODNN7EXAMPLE}]", "spec.env[0].value"},
		{"args: [t.py, --api-key=" + password + "]", "spec.args[1]"},
		{"args: [t.py, --api-key, " + password + "]", "spec.args[2]"},
		{"args: [t.py, " + key + "]", "spec.args[1]"},
		{
			"command: [sh, -c, 'export WANDB_API_KEY=" + password + "; torchrun t.py'], launcher: entrypoint",
			"spec.command[2]",
		},
		{"command: [sh, -c, 'torchrun t.py --hf-token " + password + "'], launcher: entrypoint", "spec.command[2]"},
		{"sidecars: [{name: s, image: 'a/b:1', " + plain + "}]", "spec.sidecars[0].env[0].value"},
		{"target: jobset, groups: [{name: g, command: [x], " + plain + "}]", "spec.groups[0].env[0].value"},
		{"rendezvous: {conf: {auth_token: " + password + "}}", "spec.rendezvous.conf.auth_token"},
		{"metadata: {annotations: {acme.example/token: " + password + "}}", `annotations["acme.example/token"]`},
		{
			"podTemplate: {spec: {containers: [{name: worker, " + plain + "}]}}",
			"podTemplate.spec.containers[0].env[0]",
		},
		{
			"podTemplate: {spec: {initContainers: [{name: i, image: 'a/b:1', args: ['--password', " + password +
				"]}]}}",
			"podTemplate.spec.initContainers[0].args[1]",
		},
		{
			"roles: {helper: {podTemplate: {spec: {containers: [{name: helper, " + plain +
				"}]}}}}, storage: [{mountPath: /d, " + "dataset: {url: 'https://a.example/x.tgz'}}]",
			"spec.roles.helper.podTemplate.spec.containers[0].env[0].value",
		},
		{"env: [{name: HF_TOKEN, secret: {name: hf, key: token}}]", ""},
		{"env: [{name: TOKENIZERS_PARALLELISM, value: 'false'}, {name: MAX_TOKENS, value: '4096'}]", ""},
		{"env: [{name: TOKEN_FILE, value: /var/run/token}, {name: PAD_TOKEN, value: '[PAD]'}]", ""},
		{"env: [{name: HF_TOKEN, value: $(FROM_SECRET)}]", ""},
		{"args: [t.py, --eos-token, '|end|', --max_new_tokens, '20', --tokenizer=a/b]", ""},
		{"args: [t.py, --hub-token, $(HF_TOKEN), --password-file, /run/pw]", ""},
		{"command: [sh, -c, 'export HF_TOKEN=$(cat /run/t) A=\"$B\"; torchrun t.py'], launcher: entrypoint", ""},
		{"command: [sh, -c, 'HF_TOKEN=`cat /run/t` torchrun t.py'], launcher: entrypoint", ""},
		{"script: {s3: 's3://bucket/token/secret/main.py'}, identity: {nodeRole: {}}", ""},
		{"imagePullSecrets: [my-token], ssh: {secret: keys}, framework: horovod", ""},
	} {
		spec, want := c[0], c[1]
		text, meta := jobHead+"workers: {replicas: 2}, "+spec+"}\n", "metadata: {"
		if at, ok := strings.CutPrefix(spec, meta); ok {
			head := strings.Replace(jobHead, meta, meta+strings.TrimSuffix(at, "}")+", ", 1)
			text = head + "workers: {replicas: 2}}\n"
		}
		if strings.Contains(spec, "command: [sh") {
			text = strings.Replace(text, "command: [python, train.py], ", "", 1)
		}
		notes := loadOne(t, text).Origin.Secrets
		got := strings.Join(notes, "\n")
		if (want == "") != (len(notes) == 0) || !strings.Contains(got, want) || len(notes) > 1 {
			t.Errorf("%s\nnotes %q, want one at %q", spec, got, want)
		}
		if strings.Contains(got, password) || strings.Contains(got, key) {
			t.Errorf("%s\na note prints the secret: %s", spec, got)
		}
	}
}

// TestSecretsOfLongText: what a long text takes grows with its length. Allocations stand for the time.
func TestSecretsOfLongText(t *testing.T) {
	text := strings.Repeat("A=1 ", 20000) + "token"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if name, found := secretIn(text); found {
		t.Errorf("found %q", name)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 100 {
		t.Errorf("%d MiB for %d KiB of text", got, len(text)>>10)
	}
}

// TestSecretOfEnvironment: variables that an Environment adds are a job's too.
func TestSecretOfEnvironment(t *testing.T) {
	const env = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {env: [{name: TOKEN, " +
		"value: abcdef}], defaults: {env: [{name: DB_PASSWORD, value: ghijkl}]}}\n"
	jobs, err := Load([]Source{
		{Name: "job", Data: []byte(jobHead + "workers: {replicas: 1}}\n")},
		{Name: "env", Data: []byte(env), Environment: AnyEnvironment},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(jobs[0].Origin.Secrets, "\n")
	if !strings.Contains(got, "Environment spec") || !strings.Contains(got, "TOKEN") ||
		!strings.Contains(got, "spec.env[0].value: DB_PASSWORD") {
		t.Errorf("notes %q", got)
	}
}
