package generators

import "regexp"

// contexts are what leaves need to mean something, by the beginning of their paths.
var contexts = []struct{ leaf, spec string }{
	{"", ""},
	{"args", "script: {image: /main.py}, command: null"},
	{"bytescheduler.rootPort", "bytescheduler: {partitionTuning: true}"},
	{"checkpoint.", "storage: [{mountPath: /data, claim: c}]"},
	{"disruption.budget", "disruption: {budget: false}"},
	{"dlrover.brain", "dlrover: {optimizeMode: cluster}"},
	{"dlrover.excludeStraggler", "dlrover: {networkCheck: true}"},
	{"env.", "env: [{name: X, value: x}]"},
	{"env.configMap.", "env: [{name: X, configMap: {name: a, key: b}}]"},
	{"env.secret.", "env: [{name: X, secret: {name: a, key: b}}]"},
	{"failure.restarts", "mxnet: {mode: local}, workers: {replicas: 1}"},
	{"horovod.", "workers: {replicas: 3, min: 2}"},
	{"identity.irsa.", "identity: {irsa: {role: 'arn:aws:iam::123456789012:role/a'}}"},
	{"images.aws", "script: {s3: 's3://bucket/main.py'}, identity: {nodeRole: {}}, command: null"},
	{"images.etcd", "rendezvous: {backend: etcd-v3, store: etcd}"},
	{"images.etcdV2", "rendezvous: {backend: etcd, store: etcd}"},
	{"images.fetch", withDataset},
	{"images.rendezvous", "launcher: tegen, rendezvous: {backend: etcd, store: etcd}, images: {rendezvous: 'r:1'}"},
	{"kubernetesVersion", "gang: {scheduler: kubernetes}, kubernetesVersion: '1.37'"},
	{"launcher", "rendezvous: {backend: etcd, store: etcd}, images: {rendezvous: 'r:1'}"},
	{"mxnet.mode", "workers: {replicas: 1}"},
	{"placement.tolerations.operator", "placement: {tolerations: [{key: a, operator: Exists}]}"},
	{"placement.tolerations.", "placement: {tolerations: [{key: a, operator: Equal, value: b, effect: NoExecute}]}"},
	{"rendezvous.", "rendezvous: {backend: etcd, store: etcd}"},
	{"rendezvous.backend", "rendezvous: {backend: etcd-v2, store: etcd}"},
	{"rendezvous.conf", "rendezvous: {backend: etcd-v3, store: etcd}"},
	{"rendezvous.companion.", withCompanion},
	{"rendezvous.companion.etcd.", "rendezvous: {backend: etcd, store: companion, " +
		"companion: {etcd: {endpoints: ['https://a:2379'], user: u, password: {name: p, key: k}, " +
		"tls: {secret: t}}}}, images: {rendezvous: 'r:1'}"},
	{"rendezvous.companion.replicas", "rendezvous: {backend: etcd, store: companion, " +
		"companion: {etcd: {endpoints: ['http://a:2379']}}}, images: {rendezvous: 'r:1'}"},
	{"rendezvous.companion.storage.", "rendezvous: {backend: etcd, store: companion, " +
		"companion: {storage: {size: 1Gi}}}, images: {rendezvous: 'r:1'}"},
	{"rendezvous.store", "rendezvous: {backend: etcd, store: null}, images: {rendezvous: 'r:1'}"},
	{"rendezvous.endpoint", "rendezvous: {backend: etcd, store: external, endpoint: 'a:2379'}"},
	{"rendezvous.etcd.", "rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: 8Gi}, tls: {secret: t}}}"},
	{"rendezvous.keepAlive", "rendezvous: {backend: c10d}"},
	{"resources.gpu", "resources: {gpu: 1, cpu: 1, memory: 4Gi}"},
	{"roles.companion.", withCompanion},
	{"roles.etcd.", "rendezvous: {backend: etcd, store: etcd}"},
	{"roles.helper.", withDataset},
	{"script.", "script: {s3: 's3://bucket/main.py'}, identity: {nodeRole: {}}, command: null"},
	{"script.fetch", "script: {s3: 's3://bucket/main.py'}, launcher: entrypoint, identity: {nodeRole: {}}, " +
		"command: null"},
	{"script.configMap.", "script: {configMap: {name: a}}, command: null"},
	{"script.image", "command: null"},
	{"servers.args", "servers: {command: [x]}"},
	{"storage.", "storage: [{mountPath: /data, claim: c}]"},
	{"storage.dataset.", withDataset},
	{"storage.dynamic.", "storage: [{mountPath: /data}]"},
	{"storage.efs.", "storage: [{mountPath: /data, efs: {fileSystem: fs-1123456789abcdef0}}]"},
	{"storage.efs.provision.", "storage: [{mountPath: /data, efs: {fileSystem: fs-1123456789abcdef0, " +
		"provision: {gidRangeStart: 1, gidRangeEnd: 9}}}]"},
	{"storage.onDelete", "storage: [{mountPath: /data}]"},
	{"storage.emptyDir.", "storage: [{mountPath: /data, emptyDir: {size: 1Gi}}]"},
	{"storage.fsx.", "storage: [{mountPath: /data, fsx: {fileSystem: fs-1123456789abcdef0, dnsName: a.b, " +
		"mountName: m}}]"},
	{"storage.fsx.", "storage: [{mountPath: /data, fsx: {provision: {subnet: subnet-1123456789abcdef0, " +
		"securityGroups: [sg-1123456789abcdef0]}}}]"},
	{"storage.hostPath.", "storage: [{mountPath: /data, hostPath: {path: /a}}]"},
	{"storage.nfs.", "storage: [{mountPath: /data, nfs: {server: a.b, path: /a}}]"},
	{"workers.", "workers: {replicas: 2}, launcher: entrypoint"},
}

const (
	withDataset   = "storage: [{mountPath: /data, claim: c, dataset: {url: 'https://example.org/d.tar'}}]"
	withCompanion = "rendezvous: {backend: etcd, store: companion}, images: {rendezvous: 'r:1'}"
)

// silent are leaves that change nothing on some rows of leafRows, and why that is no fault. A framework alone stands
// for all its rows.
var silent = []struct{ leaves, rows, why string }{
	{"bytescheduler.mode", "bytescheduler/job/byteps", "the row has it"},
	{"mxnet.mode", "mxnet/job/local", "the row has it"},
	{"workers.min network.clusterDomain", "mxnet/job/local", "it is a worker alone"},
	{"rendezvous.backend", "torchelastic/elasticjob", "its controller has no other backend"},
	{
		"identity.nodeRole", "torchelastic dlrover mxnet horovod bytescheduler",
		"it says that the node's own role is enough",
	},
	{
		"images.etcd images.etcdV2 images.rendezvous", "torchelastic/trainjob dlrover mxnet horovod bytescheduler",
		"no store of a rendezvous is the job's own",
	},
	{"images.etcd", "torchelastic/elasticjob", "its workers speak etcd's v2 API alone"},
	{
		"images.kubectl", "torchelastic dlrover mxnet horovod/mpijob bytescheduler/mpijob bytescheduler/job/byteps",
		"no ssh keys are made in the cluster",
	},
	{
		"kubernetesVersion", "torchelastic/elasticjob torchelastic/vcjob dlrover mxnet/mxjob mxnet/mxjob-mlkube " +
			"horovod/mpijob bytescheduler/mpijob",
		"they lack gang.scheduler kubernetes, which alone differs between releases",
	},
	{
		"network.clusterDomain", "torchelastic/pods torchelastic/elasticjob torchelastic/pytorchjob " +
			"torchelastic/trainjob dlrover mxnet/mxjob mxnet/mxjob-mlkube horovod/mpijob bytescheduler/mpijob",
		"their pods find each other by short names",
	},
	{
		"gitops", "torchelastic/elasticjob dlrover mxnet/mxjob-mlkube",
		"no names need a hash, and nothing expires",
	},
}

// values are examples of leaves, by the end of their paths, whose type alone does not say what to write.
var values = map[string]string{
	"checkpoint.path":                       "/data/ckpt",
	"dlrover.nodeUnit":                      "2",
	"dlrover.strategy":                      "CustomStrategy",
	"gang.minAvailable":                     "3",
	"rendezvous.keepAliveAttempts":          "4",
	"rendezvous.maxRestarts":                "4",
	"roles.etcd.resources.ephemeralStorage": "5Gi",
	"tolerations.operator":                  "Equal",
	"storage.dataset.sha256":                "'0123456789012345678901234567890123456789012345678901234567890123'",
	"images.etcdV2":                         "other:3.5.1",
	"placement.priorityClass":               "high",
	"podTemplate.metadata":                  "{annotations: {a: b}}",
	"podTemplate.spec":                      "{dnsPolicy: Default}",
	"rendezvous.store":                      "etcd",
	"script.s3":                             "s3://other/main.py",
	"workers.firstIndex":                    "0",
	"workers.min":                           "1",
	"rendezvous.companion.storage.size":     "3Gi",
	"rendezvous.conf":                       "{read_timeout: '7'}",
}

// byType are examples of values by the words for their type, the first that fits.
var byType = []struct {
	words *regexp.Regexp
	value string
}{
	{regexp.MustCompile("^true or false"), "true"},
	{regexp.MustCompile("duration"), "7m"},
	{regexp.MustCompile("amount of CPU"), "3"},
	{regexp.MustCompile("amount of bytes"), "3Gi"},
	{regexp.MustCompile("ARN"), "arn:aws:iam::123456789012:role/r"},
	{regexp.MustCompile("an image with"), "other:2"},
	{regexp.MustCompile("^a list, each a string"), "[a, b]"},
	{regexp.MustCompile("^a list, each an integer"), "[3, 5]"},
	{regexp.MustCompile("^a list, each a security"), "[sg-0123456789abcdef0]"},
	{regexp.MustCompile("^a list, each namespace/name"), "[ml/j, ml/k]"},
	{regexp.MustCompile("^a list, each a URL"), "['http://etcd:2379']"},
	{regexp.MustCompile("^a list"), "[other]"},
	{regexp.MustCompile("^a mapping of any"), "{a: b}"},
	{regexp.MustCompile("^a mapping of names"), "{a: b}"},
	{regexp.MustCompile("^a mapping"), "{}"},
	{regexp.MustCompile("host:port"), "other:1234"},
	{regexp.MustCompile("S3"), "s3://b/k.py"},
	{regexp.MustCompile("EFS access"), "fsap-0123456789abcdef0"},
	{regexp.MustCompile("EFS id|FSx id"), "fs-0123456789abcdef0"},
	{regexp.MustCompile("subnet"), "subnet-0123456789abcdef0"},
	{regexp.MustCompile("http or https"), "https://example.org/e.tar"},
	{regexp.MustCompile("hexadecimal"), "0123456789012345678901234567890123456789012345678901234567890123"},
	{regexp.MustCompile("absolute path"), "/other"},
	{regexp.MustCompile("relative path"), "other"},
	{regexp.MustCompile("octal"), "'755'"},
	{regexp.MustCompile("resource name"), "amd.com/gpu"},
	{regexp.MustCompile("minor version"), "'1.36'"},
	{regexp.MustCompile("four lower"), "ab12"},
	{regexp.MustCompile("from 1024"), "2345"},
	{regexp.MustCompile("^an integer|^a number"), "3"},
	{regexp.MustCompile("^Memory"), "Memory"},
	{regexp.MustCompile(""), "other"},
}
