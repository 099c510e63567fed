package main

import (
	"strings"
	"testing"
)

// TestSources: a fixture that has the values of somebody's example has them word for word, so that who knows the example
// finds it again. Each row is copied from the manifest that it names, by hand, and never from the fixture.
func TestSources(t *testing.T) {
	atRoot(t)
	for _, c := range []struct {
		fixture, source string
		values          []string // of the rendered objects, less indentation
	}{
		{"imagenet", "pytorch/elastic f8d2b6b: kubernetes/imagenet.yaml, etcd.yaml, storage.yaml, README.md", []string{
			"name: imagenet-worker-1", "name: imagenet-worker-2", "image: torchelastic/examples:0.1.0rc1", "/petctl/alice/imagenet/main.py",
			"- --input_path", "- /data/tiny-imagenet-200/train", "- --epochs", `- "10"`, "value: etcd:2379", "value: imagenet",
			"name: SIZE", `nvidia.com/gpu: "1"`, "mountPath: /data", "claimName: efs-claim", "storage: 5Gi", "medium: Memory",
			"restartPolicy: OnFailure", "value: http://cs231n.stanford.edu/tiny-imagenet-200.zip", "name: etcd",
		}},
		{"storage-efs", "the same, storage.yaml", []string{"name: efs-pv", "name: efs-claim", "storage: 5Gi", "driver: efs.csi.aws.com", "- ReadWriteMany", "persistentVolumeReclaimPolicy: Retain"}},
		{"classy-vision", "the same, classy-vision.yaml", []string{
			"name: classy-vision-worker-1", "name: classy-vision-worker-2", "image: torchelastic/examples:0.1.0rc1", "- --config_file",
			"- /data/classy_vision/resnet50_synthetic_image_classy_config.json", "- --checkpoint_folder", "- /data/classy_vision/checkpoint",
			"value: etcd:2379", "value: classy-vision-2", "claimName: efs-claim",
		}},
		{"torchelastic-elasticjob-imagenet", "pytorch/elastic v0.2.0rc1: kubernetes/config/samples/imagenet.yaml, etcd.yaml", []string{
			"namespace: elastic-job", "rdzvEndpoint: etcd-service:2379", "minReplicas: 1", "maxReplicas: 3", "replicas: 2",
			"restartPolicy: ExitCode", "name: elasticjob-worker", "image: torchelastic/examples:0.2.0rc1", "imagePullPolicy: Always",
			"- --nproc_per_node=1", "- /workspace/examples/imagenet/main.py", "- --arch=resnet18", "- --epochs=20", "- --batch-size=32",
			"- --workers=0", "- /workspace/data/tiny-imagenet-200", `nvidia.com/gpu: "1"`,
		}},
		{"dlrover-elasticjob-torch-mnist", "dlrover docs/tutorial/gang_scheduling.md, case 1; --nproc_per_node is 2 there", []string{
			"name: torch-mnist-gang", "namespace: dlrover", "distributionStrategy: AllreduceStrategy", "optimizeMode: single-job",
			"replicas: 4", "gang.scheduling.koordinator.sh/name: torch-mnist-gang", `gang.scheduling.koordinator.sh/min-available: "4"`,
			"restartPolicy: Always", "name: main", "image: registry.cn-hangzhou.aliyuncs.com/intell-ai/dlrover:pytorch-example",
			"imagePullPolicy: Always", "- /bin/bash", "- -c", "dlrover-run --network-check --nnodes=3:$NODE_NUM --nproc_per_node=1 --max_restarts=3",
			"--num_epochs 5 --training_data /data/mnist_png/training/ --validation_data /data/mnist_png/testing/",
			`cpu: "4"`, "memory: 8Gi", `nvidia.com/gpu: "1"`,
		}},
		{"dlrover-elasticjob-suspended", "the same, case 2", []string{
			"name: torch-mnist", "namespace: dlrover", "suspend: true", "replicas: 4", "restartPolicy: Always",
			"image: registry.cn-hangzhou.aliyuncs.com/intell-ai/dlrover:pytorch-example", "--nproc_per_node=2", "--training_data /data/mnist_png/training/",
			`cpu: "2"`, "memory: 3Gi",
		}},
		{"mxnet-mxjob-mlkube-dist", "deepinsight/mxnet-operator 9a57ecf: examples/mx_job_dist.yaml, README.md", []string{
			"apiVersion: mlkube.io/v1beta1", "name: example-dist-job", "jobMode: dist", "PsRootPort: 9091", "replicas: 2", "replicas: 3",
			"name: mxnet", "- train_cifar10.py", "- --num-epochs=10", "- --model-prefix=./wltest", "- --num-layers=2",
			"- --kv-store=dist_device_sync", "workingDir: /mxnet/example/image-classification", "restartPolicy: OnFailure", "RuntimeId: 1kkf",
		}},
		{"mxnet-mxjob-mlkube-local", "the same, examples/mx_job_local.yaml", []string{
			"name: example-local-job", "jobMode: local", "- train_cifar10.py", "- --num-epochs=10", "- --model-prefix=./wltest", "- --num-layers=2",
			"workingDir: /mxnet/example/image-classification",
		}},
		{"mxnet-mxjob-minimal", "kubeflow/mxnet-operator: examples/train/mx_job_dist_gpu_v1.yaml", []string{
			"name: mxnet-job", "jobMode: MXTrain", "image: docker.io/mxjob/mxnet:gpu", "- python", "- /incubator-mxnet/example/image-classification/train_mnist.py",
			"- --num-epochs", `- "10"`, "- --num-layers", `- "2"`, "- --kv-store", "- dist_device_sync", "- --gpus", `- "0"`, `nvidia.com/gpu: "1"`,
		}},
		{"mxnet-mxjob-byteps", "kubeflow/mxnet-operator: examples/train/byteps_dist_gpu_v1beta1.yaml", []string{
			"name: byteps-mxnet-job", "jobMode: MXTrain", "- bpslaunch", "- python3", "- /usr/local/byteps/example/mxnet/train_imagenet_byteps.py",
			"- --benchmark", `- "1"`, "- --batch-size=32", `nvidia.com/gpu: "8"`, "replicas: 2", "medium: Memory",
		}},
	} {
		text := strings.Join(strings.Fields(content(t, "golden/"+c.fixture+"/base.yaml")), " ")
		for _, value := range c.values {
			if !strings.Contains(text, value) {
				t.Errorf("%s: no %q, which is in %s", c.fixture, value, c.source)
			}
		}
	}
}
