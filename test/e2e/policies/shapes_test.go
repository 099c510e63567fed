package policies

// shape is what rules and values of one place can be.
type shape struct {
	kind   kind
	values []string // in JSON, of scalars
	fields []field  // of a mapping
	item   *shape   // of a list, or a field of a free mapping
	keys   []string // of a free mapping
}

type kind int

const (
	text kind = iota
	integer
	boolean
	quantity
	list
	free // a mapping with any names
	mapping
)

type field struct {
	name   string
	always bool // in every value, which would not be valid without
	*shape
}

func scalar(k kind, values ...string) *shape { return &shape{kind: k, values: values} }

func listOf(item *shape) *shape { return &shape{kind: list, item: item} }

func freeOf(item *shape, keys ...string) *shape { return &shape{kind: free, item: item, keys: keys} }

func mappingOf(fields ...field) *shape { return &shape{kind: mapping, fields: fields} }

func with(name string, s *shape) field { return field{name, false, s} }

// must is a field that every value has.
func must(name string, s *shape) field { return field{name, true, s} }

var (
	flag   = scalar(boolean, "true", "false")
	word   = scalar(text, `"a"`, `"ab"`, `"b"`, `""`)
	amount = scalar(quantity, `"1"`, `"500m"`, `1`, `"0.5"`, `"2Gi"`, `"64Gi"`, `"65536Mi"`)
	sizes  = freeOf(amount, "cpu", "memory", "example.com/gpu")
	labels = freeOf(scalar(text, `"a"`, `"ab"`, `"b"`), "team", "example.com/team", "app.kubernetes.io/name")
)

// NUMBER stands for the position in a list, so that names differ.
var containers = listOf(mappingOf(
	must("name", scalar(text, `"cNUMBER"`)),
	must("image", scalar(text, `"busybox"`, `"registry.acme.com/a:1"`, `"registry.acme.com/b@sha256:`+digest+`"`)),
	with("command", listOf(word)),
	with("args", listOf(word)),
	with("workingDir", scalar(text, `"/a"`, `"/ab"`, `""`)),
	with("stdin", flag),
	with("tty", flag),
	with("env", listOf(mappingOf(
		must("name", scalar(text, `"A"`, `"AB"`, `"SECRET"`)),
		with("value", word),
	))),
	with("resources", mappingOf(with("limits", sizes))),
	with("ports", listOf(mappingOf(
		must("containerPort", scalar(integer, "8080", "29500")),
		with("name", scalar(text, `"nNUMBER"`)),
	))),
	with("volumeMounts", listOf(mappingOf(
		must("name", scalar(text, `"v0"`)),
		must("mountPath", scalar(text, `"/mNUMBER"`)),
		with("readOnly", flag),
		with("subPath", scalar(text, `"a"`, `""`)),
	))),
	with("securityContext", mappingOf(
		with("privileged", flag),
		with("allowPrivilegeEscalation", flag),
		with("readOnlyRootFilesystem", flag),
		with("runAsUser", scalar(integer, "0", "1", "1000")),
		with("runAsNonRoot", flag),
		with("capabilities", mappingOf(
			with("add", listOf(scalar(text, `"IPC_LOCK"`, `"SYS_ADMIN"`))),
			with("drop", listOf(scalar(text, `"ALL"`))),
		)),
	)),
))

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// podSpec has the fields that a policy for training is about, and values by which they are valid.
var podSpec = mappingOf(
	with("hostNetwork", flag),
	with("hostPID", flag),
	with("hostIPC", flag),
	with("shareProcessNamespace", scalar(boolean, "false")),
	with("nodeName", scalar(text, `""`, `"n"`, `"node-1"`)),
	with("serviceAccountName", scalar(text, `""`, `"default"`, `"a"`)),
	with("serviceAccount", scalar(text, `"a"`)),
	with("automountServiceAccountToken", flag),
	with("enableServiceLinks", flag),
	with("hostname", scalar(text, `"a"`, `"b"`, `""`)),
	with("subdomain", scalar(text, `"a"`, `""`)),
	with("schedulerName", scalar(text, `"a"`, `"tegen-scheduler"`)),
	with("dnsPolicy", scalar(text, `"Default"`, `"ClusterFirst"`)),
	with("terminationGracePeriodSeconds", scalar(integer, "0", "30", "60")),
	with("nodeSelector", labels),
	with("tolerations", listOf(mappingOf(
		must("key", scalar(text, `"gpu"`, `"example.com/gpu"`)),
		must("operator", scalar(text, `"Exists"`)),
		with("effect", scalar(text, `"NoSchedule"`, `"NoExecute"`, `""`)),
	))),
	with("securityContext", mappingOf(
		with("runAsNonRoot", flag),
		with("runAsUser", scalar(integer, "0", "1000")),
		with("fsGroup", scalar(integer, "0", "1000")),
		with("supplementalGroups", listOf(scalar(integer, "0", "10"))),
		with("seccompProfile", mappingOf(must("type", scalar(text, `"RuntimeDefault"`, `"Unconfined"`)))),
	)),
	must("volumes", listOf(mappingOf(
		must("name", scalar(text, `"vNUMBER"`)),
		with("hostPath", mappingOf(must("path", scalar(text, `"/"`, `"/data"`)))),
		with("emptyDir", mappingOf(with("medium", scalar(text, `""`, `"Memory"`)), with("sizeLimit", amount))),
		with("nfs", mappingOf(
			must("server", scalar(text, `"a"`)), must("path", scalar(text, `"/"`)), with("readOnly", flag),
		)),
		with("persistentVolumeClaim", mappingOf(must("claimName", scalar(text, `"a"`, `"b"`)), with("readOnly", flag))),
	))),
	with("initContainers", containers),
	must("containers", containers),
)

var podTemplate = mappingOf(
	with("metadata", mappingOf(with("labels", labels), with("annotations", labels))),
	must("spec", podSpec),
)

// objects are kinds with rules for themselves.
var objects = map[string]*shape{
	"Service": mappingOf(
		with("metadata", mappingOf(with("labels", labels))),
		must("spec", mappingOf(
			with("type", scalar(text, `"ClusterIP"`, `"NodePort"`, `"LoadBalancer"`)),
			with("selector", labels),
			must("ports", listOf(mappingOf(
				must("name", scalar(text, `"nNUMBER"`)),
				must("port", scalar(integer, "80", "443", "29500")),
				with("targetPort", scalar(integer, "80", "8080")),
			))),
			with("publishNotReadyAddresses", flag),
			with("externalName", scalar(text, `""`)),
		)),
	),
	"PersistentVolumeClaim": mappingOf(
		with("metadata", mappingOf(with("labels", labels))),
		must("spec", mappingOf(
			must("accessModes", listOf(scalar(text, `"ReadWriteMany"`, `"ReadWriteOnce"`))),
			with("storageClassName", scalar(text, `""`, `"a"`)),
			must("resources", mappingOf(must("requests", freeOf(amount, "storage")))),
		)),
	),
	"ConfigMap": mappingOf(
		with("metadata", mappingOf(with("annotations", labels))),
		with("data", freeOf(word, "a", "b.sh", "key")),
		with("immutable", flag),
	),
	"JobSet.jobset.x-k8s.io": mappingOf(
		with("metadata", mappingOf(with("labels", labels))),
		must("spec", mappingOf(
			with("suspend", flag),
			with("ttlSecondsAfterFinished", scalar(integer, "0", "60")),
			with("failurePolicy", mappingOf(
				with("maxRestarts", scalar(integer, "0", "3")),
				must("restartStrategy", scalar(text, `"Recreate"`, `"BlockingRecreate"`)), // as of replicas below
			)),
			must("replicatedJobs", listOf(mappingOf(
				must("name", scalar(text, `"jNUMBER"`)),
				must("replicas", scalar(integer, "1", "4")), // for which the definition has a default
			))),
		)),
	),
}
