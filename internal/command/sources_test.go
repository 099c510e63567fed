package command

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/cli"
)

// sources are the examples that fixtures are taken from.
var sources = []struct {
	fixture, source string
	but             [][2]string // what the source says, and what is said here in its place
	objects         string
}{
	{
		"imagenet", "pytorch/elastic f8d2b6b: kubernetes/imagenet.yaml, etcd.yaml, storage.yaml, README.md",
		[][2]string{{"<BUCKET>/petctl/<USER>/<JOB_ID>", "torchelastic-shared-data/petctl/alice/imagenet"}},
		tutorialPod("imagenet-worker-1") + tutorialPod("imagenet-worker-2") + `
kind: Service
metadata: {name: imagenet-worker-1}
spec: {selector: {job-name: imagenet, worker: "1"}, clusterIP: None}
---
kind: Service
metadata: {name: etcd}
spec: {ports: [{port: 2379, protocol: TCP}]}
---
kind: PersistentVolumeClaim
metadata: {name: efs-claim}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 5Gi}}}
---
kind: Job
metadata: {name: imagenet-prefetch-data}
spec: {template: {spec: {containers: [{env: [{value: "http://cs231n.stanford.edu/tiny-imagenet-200.zip"}]}]}}}
`,
	},
	{"storage-efs", "the same, storage.yaml", nil, `
kind: PersistentVolume
metadata: {name: efs-pv}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: efs.csi.aws.com}
---
kind: PersistentVolumeClaim
metadata: {name: efs-claim}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 5Gi}}}
`},
	{
		"classy-vision", "the same, classy-vision.yaml",
		[][2]string{{"<BUCKET>/petctl/<USER>/<JOB_ID>", "torchelastic-shared-data/petctl/alice/classy-vision"}},
		`
kind: Pod
metadata: {name: classy-vision-worker-1}
spec:
  restartPolicy: OnFailure
  containers:
  - image: torchelastic/examples:0.1.0rc1
    args: ["s3://<BUCKET>/petctl/<USER>/<JOB_ID>/main.py", --config_file, /data/classy_vision/resnet50_synthetic_image_classy_config.json, --checkpoint_folder, /data/classy_vision/checkpoint]
    env: [{name: RDZV_ENDPOINT, value: "etcd:2379"}, {name: JOB_ID, value: classy-vision-2}]
  volumes: [{persistentVolumeClaim: {claimName: efs-claim}}]
---
kind: Service
metadata: {name: classy-vision-worker-2}
`,
	},
	{"torchelastic-elasticjob-imagenet", "pytorch/elastic v0.2.0rc1: kubernetes/config/samples/imagenet.yaml, " +
		"etcd.yaml", [][2]string{
		{"<your_etcd_endpoint>:<your_etcd_port>", "etcd-service:2379"}, {
			"maxReplicas: 2",
			"maxReplicas: 3",
		}, {"nvidia.com/gpu: 1", `nvidia.com/gpu: "1"`},
	}, `
kind: ElasticJob
metadata: {name: imagenet, namespace: elastic-job}
spec:
  rdzvEndpoint: "<your_etcd_endpoint>:<your_etcd_port>"
  minReplicas: 1
  maxReplicas: 2
  replicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - name: elasticjob-worker
            image: torchelastic/examples:0.2.0rc1
            imagePullPolicy: Always
            args:
            - --nproc_per_node=1
            - /workspace/examples/imagenet/main.py
            - --arch=resnet18
            - --epochs=20
            - --batch-size=32
            - --workers=0
            - /workspace/data/tiny-imagenet-200
            resources: {limits: {nvidia.com/gpu: 1}}
`},
	{"dlrover-elasticjob-torch-mnist", "dlrover docs/tutorial/gang_scheduling.md, case 1", [][2]string{
		{"--nproc_per_node=2", "--nproc_per_node=1"}, {
			"nvidia.com/gpu: 1",
			`nvidia.com/gpu: "1"`,
		}, {"min-available: 4", `min-available: "4"`},
	}, `
kind: ElasticJob
metadata: {name: torch-mnist-gang, namespace: dlrover}
spec:
  distributionStrategy: AllreduceStrategy
  optimizeMode: single-job
  replicaSpecs:
    worker:
      replicas: 4
      template:
        metadata:
          annotations:
            gang.scheduling.koordinator.sh/name: torch-mnist-gang
            gang.scheduling.koordinator.sh/min-available: 4
        spec:
          restartPolicy: Always
          containers:
          - name: main
            image: registry.cn-hangzhou.aliyuncs.com/intell-ai/dlrover:pytorch-example
            imagePullPolicy: Always
` + dlroverCommand + `
            resources: {limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: 1}, requests: {cpu: "4", memory: 8Gi}}
`},
	{"dlrover-elasticjob-suspended", "the same, case 2", nil, `
kind: ElasticJob
metadata: {name: torch-mnist, namespace: dlrover}
spec:
  distributionStrategy: AllreduceStrategy
  optimizeMode: single-job
  suspend: true
  replicaSpecs:
    worker:
      replicas: 4
      template:
        spec:
          restartPolicy: Always
          containers:
          - name: main
            image: registry.cn-hangzhou.aliyuncs.com/intell-ai/dlrover:pytorch-example
            imagePullPolicy: Always
` + dlroverCommand + `
            resources: {limits: {cpu: "2", memory: 3Gi}, requests: {cpu: "2", memory: 3Gi}}
`},
	{"mxnet-mxjob-mlkube-dist", "deepinsight/mxnet-operator 9a57ecf: examples/mx_job_dist.yaml, README.md", nil, `
apiVersion: mlkube.io/v1beta1
kind: MxJob
metadata: {name: example-dist-job}
spec:
  RuntimeId: 1kkf
  jobMode: dist
  replicaSpecs:
  - {mxReplicaType: SCHEDULER, replicas: 1, PsRootPort: 9091}
  - {mxReplicaType: SERVER, replicas: 2}
  - mxReplicaType: WORKER
    replicas: 3
    template:
      spec:
        containers:
        - name: mxnet
          args: [train_cifar10.py, --num-epochs=10, --model-prefix=./wltest, --num-layers=2, --kv-store=dist_device_sync]
          workingDir: /mxnet/example/image-classification
        restartPolicy: OnFailure
`},
	{"mxnet-mxjob-mlkube-local", "the same, examples/mx_job_local.yaml", nil, `
kind: MxJob
metadata: {name: example-local-job}
spec:
  jobMode: local
  replicaSpecs:
  - template:
      spec:
        containers:
        - name: mxnet
          args: [train_cifar10.py, --num-epochs=10, --model-prefix=./wltest, --num-layers=2]
          workingDir: /mxnet/example/image-classification
        restartPolicy: OnFailure
`},
	{
		"mxnet-mxjob-minimal", "kubeflow/mxnet-operator: examples/train/mx_job_dist_gpu_v1.yaml",
		[][2]string{{"image: mxjob/", "image: docker.io/mxjob/"}, {"nvidia.com/gpu: 1", `nvidia.com/gpu: "1"`}},
		`
kind: MXJob
metadata: {name: mxnet-job}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: mxnet
            image: mxjob/mxnet:gpu
            command: [python]
            args: [/incubator-mxnet/example/image-classification/train_mnist.py, --num-epochs, "10", --num-layers, "2", --kv-store, dist_device_sync, --gpus, "0"]
            resources: {limits: {nvidia.com/gpu: 1}}
`,
	},
	{
		"mxnet-mxjob-byteps", "kubeflow/mxnet-operator: examples/train/byteps_dist_gpu_v1beta1.yaml",
		[][2]string{{"nvidia.com/gpu: 8", `nvidia.com/gpu: "8"`}},
		`
kind: MXJob
metadata: {name: byteps-mxnet-job}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Server: {replicas: 2, template: {spec: {containers: [{name: mxnet, command: [bpslaunch]}]}}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: mxnet
            command: [bpslaunch]
            args: [python3, /usr/local/byteps/example/mxnet/train_imagenet_byteps.py, --benchmark, "1", --batch-size=32]
            resources: {limits: {nvidia.com/gpu: 8}}
          volumes: [{emptyDir: {medium: Memory}}]
`,
	},
}

// TestSources: a fixture that has the values of somebody's example has them word for word and where they stand there,
// so that who knows the example finds it again. Each row is taken from the manifest that it names, by hand, and never
// from the fixture; what the fixture says otherwise on purpose is in but.
func TestSources(t *testing.T) {
	atRoot(t)
	for _, c := range sources {
		for _, pair := range c.but {
			if !strings.Contains(c.objects, pair[0]) {
				t.Errorf("%s: %s does not say %q", c.fixture, c.source, pair[0])
			}
			c.objects = strings.ReplaceAll(c.objects, pair[0], pair[1])
		}
		out, msg, code := tegen("", "render", "fixtures/valid/"+c.fixture+".yaml")
		if code != cli.ExitOK {
			t.Fatalf("exit %d:\n%s", code, msg)
		}
		rendered := objects(t, out)
		for id, want := range objects(t, c.objects) {
			got := rendered[id]
			if got == nil {
				t.Errorf("%s: no %s, which is in %s", c.fixture, id, c.source)
			} else if lacks := lacking(want, got, ""); lacks != "" {
				t.Errorf("%s: %s: no %s, which is in %s", c.fixture, id, lacks, c.source)
			}
		}
	}
}

func tutorialPod(name string) string {
	return `
kind: Pod
metadata: {name: ` + name + `, labels: {job-name: imagenet}}
spec:
  restartPolicy: OnFailure
  containers:
  - image: torchelastic/examples:0.1.0rc1
    args: ["s3://<BUCKET>/petctl/<USER>/<JOB_ID>/main.py", --input_path, /data/tiny-imagenet-200/train, --epochs, "10"]
    env: [{name: RDZV_ENDPOINT, value: "etcd:2379"}, {name: JOB_ID, value: imagenet}, {name: MIN_SIZE, value: "1"}, {name: MAX_SIZE, value: "3"}, {name: SIZE, value: "2"}]
    resources: {limits: {nvidia.com/gpu: "1"}}
    volumeMounts: [{mountPath: /dev/shm}, {mountPath: /data}]
  volumes: [{name: dshm, emptyDir: {medium: Memory}}, {persistentVolumeClaim: {claimName: efs-claim}}]
---
`
}

const dlroverCommand = `
            command:
            - /bin/bash
            - -c
            - "dlrover-run --network-check --nnodes=3:$NODE_NUM --nproc_per_node=2 --max_restarts=3  \
              examples/pytorch/mnist/cnn_train.py --num_epochs 5 \
              --training_data /data/mnist_png/training/ --validation_data /data/mnist_png/testing/"
`

// objects are the documents of a stream by kind and name.
func objects(t *testing.T, stream string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for doc := range strings.SplitSeq(stream, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if o != nil {
			metadata, _ := o["metadata"].(map[string]any)
			all[fmt.Sprintf("%v %v", o["kind"], metadata["name"])] = o
		}
	}
	return all
}

// lacking is the first of what is wanted that is not there, with its path, "" where all is. Of a mapping the named
// fields are wanted, of a list the items, in their order, maybe with others between them.
func lacking(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		in, _ := got.(map[string]any)
		for key, value := range want {
			if lacks := lacking(value, in[key], path+"."+key); lacks != "" {
				return lacks
			}
		}
		return ""
	case []any:
		rest, _ := got.([]any)
		for i, item := range want {
			at := slices.IndexFunc(rest, func(other any) bool { return lacking(item, other, "") == "" })
			if at < 0 {
				return fmt.Sprintf("%s[%d]: %v, but %v", path, i, item, rest)
			}
			rest = rest[at+1:]
		}
		return ""
	}
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("%s: %v, but %v", path, want, got)
}

// TestLacking: the value of another field, or of another item, is none.
func TestLacking(t *testing.T) {
	const have = "kind: A\nmetadata: {name: a}\nspec: {replicas: 3, max: 2, args: [a, b, c], pods: [{name: v, of: " +
		"1}, {name: w, of: 2}]}\n"
	for want, lacks := range map[string]string{
		"{replicas: 3, args: [a, c]}":    "",
		"{pods: [{name: w, of: 2}]}":     "",
		"{replicas: 2}":                  ".spec.replicas: 2, but 3",
		"{args: [c, a]}":                 ".spec.args[1]: a, but []",
		"{pods: [{name: v, of: 2}]}":     ".spec.pods[0]: map[name:v of:2], but",
		"{pods: [{name: w}, {name: v}]}": ".spec.pods[1]: map[name:v], but []",
		"{other: 1}":                     ".spec.other: 1, but <nil>",
	} {
		got := objects(t, have)["A a"]
		text := lacking(objects(t, "kind: A\nmetadata: {name: a}\nspec: "+want+"\n")["A a"], got, "")
		if (text == "") != (lacks == "") || !strings.HasPrefix(text, lacks) {
			t.Errorf("%s: lacks %q, want %q", want, text, lacks)
		}
	}
}
