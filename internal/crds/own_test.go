package crds_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/crds/celrules"
)

// own are the definitions that tegen brings along.
const own = "../../overlays/crds"

// TestOwnAreValid asks an API server's own validation, CEL and its cost included.
func TestOwnAreValid(t *testing.T) {
	files, err := filepath.Glob(own + "/*_*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v: want 3 definitions", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var in apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &in); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if want := in.Spec.Group + "_" + in.Spec.Names.Plural + ".yaml"; filepath.Base(file) != want {
			t.Errorf("%s defines what should stand in %s", file, want)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&in)
		var crd apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&in,
			&crd, nil); err != nil {
			t.Fatal(err)
		}
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &crd) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestOwnGroups: an MxJob has one schema under both of its groups.
func TestOwnGroups(t *testing.T) {
	body := func(group string) string {
		t.Helper()
		text, err := os.ReadFile(own + "/" + group + "_mxjobs.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, body, ok := strings.Cut(string(text), "  scope: Namespaced\n")
		if !ok {
			t.Fatalf("%s: no scope", group)
		}
		return body
	}
	if diff := cmp.Diff(body("mlkube.io"), body("mxnet.mlkube.io")); diff != "" {
		t.Errorf("(-mlkube.io +mxnet.mlkube.io):\n%s", diff)
	}
}

const elasticJob = `apiVersion: elastic.pytorch.org/v1alpha1
kind: ElasticJob
metadata: {name: imagenet, namespace: elastic-job}
spec:
  rdzvEndpoint: etcd-service:2379
  minReplicas: 1
  maxReplicas: 3
  RunPolicy: {cleanPodPolicy: Running, backoffLimit: 0}
  replicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        apiVersion: v1
        kind: Pod
        metadata: {labels: {app: imagenet}, annotations: {a: b}}
        spec:
          nodeSelector: {zone: a}
          containers:
          - name: elasticjob-worker
            image: example.com/imagenet:1
            env: [{name: A, value: b}]
status:
  conditions: [{type: Running, status: "True", reason: a}]
  replicaStatuses: {Worker: {active: 2}}
  startTime: "2026-01-02T03:04:05Z"
`

func TestOwnElasticJob(t *testing.T) {
	testOwn(t, "elastic.pytorch.org_elasticjobs.yaml", elasticJob, []ownCase{
		{"all fields", "imagenet,", "imagenet,", nil},
		{"only what is required", "  minReplicas: 1\n  maxReplicas: 3\n", "", nil},
		{"an IPv6 endpoint", "etcd-service:2379", `"[fd00::1]:2379"`, nil},
		{"no endpoint", "  rdzvEndpoint: etcd-service:2379\n", "", []string{"spec.rdzvEndpoint: is required; add it"}},
		{
			"an endpoint without a port", "etcd-service:2379", "etcd-service",
			[]string{"spec.rdzvEndpoint: must match '"},
		},
		{
			"an endpoint that is a URL", "etcd-service:2379", "http://etcd:2379",
			[]string{"spec.rdzvEndpoint: must match '"},
		},
		{
			"a replica of another name", "    Worker:", "    worker:",
			[]string{"spec.replicaSpecs.Worker: is required; add it", "spec.replicaSpecs.worker: " + isUnknown},
		},
		{"no replicas", "      replicas: 2\n", "", []string{"spec.replicaSpecs.Worker.replicas: is required; add it"}},
		{
			"no container", "          containers:\n          - name: elasticjob-worker\n            image: " +
				"example.com/imagenet:1\n            env: [{name: A, value: b}]\n", "",
			[]string{"spec.replicaSpecs.Worker.template.spec.containers: is required; add it"},
		},
		{
			"fewer workers than min", "minReplicas: 1", "minReplicas: 3",
			[]string{"spec.minReplicas: with fewer workers than minReplicas no rendezvous ever completes"},
		},
		{
			"more workers than max", "maxReplicas: 3", "maxReplicas: 1",
			[]string{"spec.maxReplicas: workers above maxReplicas are started and never admitted to the rendezvous"},
		},
		{
			"min 0", "minReplicas: 1", "minReplicas: 0",
			[]string{"spec.minReplicas: must be greater than or equal to 1, not 0"},
		},
		{
			"a policy that is none", "cleanPodPolicy: Running", "cleanPodPolicy: Some",
			[]string{`spec.RunPolicy.cleanPodPolicy: must be one of "All", "Running", "None", not "Some"`},
		},
		{
			"a restart policy that is none", "restartPolicy: ExitCode", "restartPolicy: exitCode",
			[]string{"spec.replicaSpecs.Worker.restartPolicy: must be one of \"Always\", \"OnFailure\", \"Never\", " +
				"\"ExitCode\", not \"exitCode\""},
		},
		{
			"ExitCode of another container", "name: elasticjob-worker", "name: worker",
			[]string{"spec.replicaSpecs.Worker.restartPolicy: under ExitCode the controller reads the exit code of " +
				"the container elasticjob-worker, and of no other"},
		},
		{
			"a time to live, of which the controller dies", "backoffLimit: 0", "ttlSecondsAfterFinished: 60",
			[]string{"spec.RunPolicy.ttlSecondsAfterFinished: " + isUnknown},
		},
		{
			"a run policy as newer operators spell it", "RunPolicy:", "runPolicy:",
			[]string{"spec.runPolicy: " + isUnknown},
		},
		{
			"a limit in the spec, as in the controller's own definition", "  minReplicas: 1", "  backoffLimit: 6",
			[]string{"spec.backoffLimit: " + isUnknown},
		},
	})
}

const mxJob = `apiVersion: mlkube.io/v1beta1
kind: MxJob
metadata: {name: example-dist-job, namespace: training}
spec:
  jobMode: dist
  RuntimeId: 1kkf
  replicaSpecs:
  - mxReplicaType: SCHEDULER
    replicas: 1
    PsRootPort: 9091
    template: {spec: {restartPolicy: OnFailure, containers: [{name: mxnet, image: "example.com/mxnet:1"}]}}
  - mxReplicaType: SERVER
    replicas: 2
    template: {spec: {containers: [{name: mxnet, image: "example.com/mxnet:1", args: [server]}]}}
  - # a WORKER, by default one
    template: {metadata: {labels: {a: b}}, spec: {containers: [
      {name: mxnet, args: [worker]}, {name: log, env: [{name: A}]}]}}
status: {phase: Running, replicaStatuses: []}
`

func TestOwnMxJob(t *testing.T) {
	local := mxJob[:strings.Index(mxJob, "  jobMode:")] +
		"  jobMode: local\n  replicaSpecs:\n  - {replicas: 1, template: {spec: {containers: [{name: mxnet}]}}}\n"
	testOwn(t, "mlkube.io_mxjobs.yaml", local, []ownCase{
		{"a local job", "jobMode", "jobMode", nil},
		{
			"a local job of two", "replicas: 1", "replicas: 2",
			[]string{"spec.replicaSpecs: a local job is one WORKER with one replica"},
		},
		{
			"a local server", "- {", "- {mxReplicaType: SERVER, ",
			[]string{"spec.replicaSpecs: a local job is one WORKER with one replica"},
		},
	})
	testOwn(t, "mlkube.io_mxjobs.yaml", mxJob, []ownCase{
		{"a distributed job", "dist\n", "dist\n", nil},
		{"a mode that is none", "dist\n", "ps\n", []string{`spec.jobMode: must be one of "local", "dist", not "ps"`}},
		{
			"no scheduler", "mxReplicaType: SCHEDULER", "mxReplicaType: WORKER",
			[]string{`spec.replicaSpecs[2]: {"mxReplicaType":"WORKER"} is in the list already; ` +
				`change or drop one of the two`},
		},
		{
			"two schedulers", "    replicas: 1\n", "    replicas: 2\n",
			[]string{"spec.replicaSpecs[0].replicas: a job has exactly one SCHEDULER"},
		},
		{
			"no server", "  - mxReplicaType: SERVER\n    replicas: 2\n" +
				`    template: {spec: {containers: [{name: mxnet, image: "example.com/mxnet:1", ` +
				"args: [server]}]}}\n",
			"",
			[]string{"spec.replicaSpecs: a dist job needs one entry each of SCHEDULER, SERVER and WORKER"},
		},
		{
			"a role that is none", "mxReplicaType: SERVER", "mxReplicaType: server",
			[]string{
				`spec.replicaSpecs[1].mxReplicaType: must be one of "SCHEDULER", "SERVER", "WORKER", not "server"`,
			},
		},
		{"a port that is none", "9091", "90910", []string{
			"spec.replicaSpecs[0].PsRootPort: must be less than or equal to 65535, not 90910",
		}},
		{
			"a port in another spelling", "PsRootPort", "psRootPort",
			[]string{"spec.replicaSpecs[0].psRootPort: " + isUnknown},
		},
		{
			"no container mxnet", "{name: mxnet, args: [worker]}", "{name: worker}",
			[]string{"spec.replicaSpecs[2].template: the operator configures the container mxnet, and there is none"},
		},
		{
			"variables that the operator overwrites", "args: [worker]", "env: [{name: A}]",
			[]string{"spec.replicaSpecs[2].template: the operator overwrites the first variables of the container " +
				"mxnet, or crashes on them; set them in the command"},
		},
		{"an id that is no part of a name", "1kkf", "A_b", []string{"spec.RuntimeId: must match '"}},
		{"no template", `    template: {spec: {restartPolicy: OnFailure, containers: [{name: mxnet, image: ` +
			`"example.com/mxnet:1"}]}}` + "\n", "", []string{"spec.replicaSpecs[0].template: is required; add it"}},
	})
}

// TestRoot: what a schema says of the whole object has a place too.
func TestRoot(t *testing.T) {
	for schema, want := range map[string]string{
		"{type: object, minProperties: 9}": "(root): must have at least 9 properties",
		"{type: object, x-kubernetes-validations: " +
			"[{rule: 'self.kind != \"Walk\"', message: no walks}]}": "(root): no walks",
	} {
		evaluator := celrules.New(read(t, "walks.yaml", mutate(t, minimal, "{type: object}", schema))[0])
		findings := evaluator.Check(t.Context(), resource(t,
			"apiVersion: example.com/v1\nkind: Walk\nmetadata: {name: a}\n"))
		if len(findings) != 1 || findings[0].Field+": "+findings[0].Why != want {
			t.Errorf("%s: %v, want %s", schema, findings, want)
		}
	}
}

type ownCase struct {
	name, old, new string
	want           []string // up to a pattern
}

func testOwn(t *testing.T, file, sample string, cases []ownCase) {
	t.Helper()
	evaluator := celrules.New(definitions(t, own+"/"+file)[0])
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			findings := evaluator.Check(t.Context(), resource(t, mutate(t, sample, tc.old, tc.new)))
			if len(findings) != len(tc.want) {
				t.Fatalf("%d findings, want %d: %v", len(findings), len(tc.want), findings)
			}
			for i, f := range findings {
				got := f.Field + ": " + f.Why
				if strings.HasSuffix(tc.want[i], " '") { // the pattern itself is no news
					got = got[:min(len(got), len(tc.want[i]))]
				}
				if got != tc.want[i] {
					t.Errorf("%s\nwant %s", got, tc.want[i])
				}
			}
		})
	}
}
