package generators

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// Where the members' and the workers' certificates are mounted.
const tlsDir = "/tegen/tls"

// c10dPort is where worker 0 serves the store.
func c10dPort(j *job.Job) int32 {
	if p := j.Spec.Rendezvous.Port; p != 0 {
		return p
	}
	return names.C10dPort
}

// torchWorker is a worker of torchelastic; first is the address of the first worker.
func torchWorker(j *job.Job, first string) rolePodSpec {
	spec := workerPodSpec(j)
	spec.command, spec.args = program(j)
	if j.Spec.Unlaunched() {
		return spec
	}
	spec.env = rendezvousEnv(j, first)
	if j.Spec.Rendezvous.Store == job.StoreWorker {
		spec.ports = []corev1.ContainerPort{{
			Name: "rendezvous", ContainerPort: c10dPort(j),
			Protocol: corev1.ProtocolTCP,
		}}
	}
	return spec
}

// endpoint is what every worker dials, host:port; first is the address of the first worker.
func endpoint(j *job.Job, first string) string {
	z := &j.Spec.Rendezvous
	switch z.Store {
	case job.StoreExternal:
		return z.Endpoint
	case job.StoreEtcd:
		return fmt.Sprintf("%s:%d", etcdName(j), etcdPort(j))
	case job.StoreCompanion:
		return fmt.Sprintf("%s:%d", companionName(j), companionPort(j))
	}
	return fmt.Sprintf("%s:%d", first, c10dPort(j))
}

// inService is the full name of one pod behind a headless Service: never the Service's, which is every pod's. It is the
// name that torch compares with the canonical name of its own host (torch/distributed/elastic/rendezvous/utils.py).
func inService(j *job.Job, host, service string) string {
	return fmt.Sprintf("%s.%s.%s.svc.%s", host, service, j.Metadata.Namespace, j.Spec.Network.ClusterDomain)
}

// fixedRun names the run of pods that carry nothing which is new with each run.
func fixedRun(j *job.Job) string {
	s, w := &j.Spec, j.Spec.Workers
	switch {
	case s.Rendezvous.ID != "":
		return s.Rendezvous.ID
	case s.Rendezvous.Store == job.StoreEtcd, s.Rendezvous.Store == job.StoreExternal,
		s.Rendezvous.Companion.Etcd != nil, s.Proxied():
		// That store remembers what has ended: a changed job is another run, but one worker more or a start is not.
		parts := []any{
			s.Image, s.Command, s.Args, s.Env, s.Script, meetingOf(j), s.Resources, w.Min, w.Max,
			w.Processes,
		}
		if len(s.EnvFrom) > 0 { // younger than the hash
			parts = append(parts, s.EnvFrom)
		}
		return j.Metadata.Namespace + "-" + j.Metadata.Name + "-" + contentHash(parts...)
	}
	return j.Metadata.Name
}

// meetingOf is the rendezvous without what is not used: its hash stays what it was before there were such fields.
func meetingOf(j *job.Job) job.Rendezvous {
	z := j.Spec.Rendezvous
	if z.Store != job.StoreCompanion {
		z.Companion = job.Companion{}
	}
	if z.KeepsAliveByDefault() {
		z.KeepAlive, z.KeepAliveAttempts = metav1.Duration{}, 0
	}
	return z
}

// runEnv names the run. Where pods carry the uid of what made them, a job that is created again never meets the closed
// state of its predecessor, which etcd keeps for two hours; bare pods have nothing of the kind.
func runEnv(j *job.Job) []corev1.EnvVar {
	id, run := j.Spec.Rendezvous.ID, targetOf(j).run
	if run == "" {
		return []corev1.EnvVar{{Name: "PET_RDZV_ID", Value: fixedRun(j)}}
	}
	if id == "" {
		id = j.Metadata.Name
	}
	return []corev1.EnvVar{
		{Name: "TEGEN_RUN_UID", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: run},
		}},
		{Name: "PET_RDZV_ID", Value: id + "-$(TEGEN_RUN_UID)"},
	}
}

// ownStore keeps agents from sharing a store of theirs with the training processes, which hangs every second rendezvous
// (seen with torch 2.6 and 2.14). c10d and etcd-v2 share it: they are one class; backend etcd never did.
func ownStore(j *job.Job) []corev1.EnvVar {
	if !job.KeepsAlive(j.Spec.Rendezvous.Backend) {
		return nil
	}
	return []corev1.EnvVar{{Name: "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", Value: "1"}}
}

// rendezvousEnv is torchrun's configuration as its PET_ variables, and the tutorial's variables for images whose
// entrypoint reads those (pytorch/elastic examples/kubernetes/native).
func rendezvousEnv(j *job.Job, first string) []corev1.EnvVar {
	z, w := &j.Spec.Rendezvous, &j.Spec.Workers
	env := runEnv(j)
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	add("PET_RDZV_BACKEND", z.Backend)
	add("PET_RDZV_ENDPOINT", endpoint(j, first))
	add("PET_RDZV_CONF", conf(j))
	add("PET_NNODES", fmt.Sprintf("%d:%d", w.Min, w.Max))
	add("PET_NPROC_PER_NODE", w.Processes.String())
	add("PET_MAX_RESTARTS", strconv.Itoa(int(z.MaxRestarts)))
	env = append(append(env, ownStore(j)...), sliceEnv(j)...)
	if j.Spec.Launcher == job.LauncherEntrypoint {
		env = append(env, tutorialEnv(j, endpoint(j, first), runID(env))...)
	}
	return env
}

// tutorialEnv is what the entrypoints of the tutorial's images read.
func tutorialEnv(j *job.Job, endpoint, run string) (env []corev1.EnvVar) {
	w := &j.Spec.Workers
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	add("RDZV_ENDPOINT", endpoint)
	add("JOB_ID", run)
	add("MIN_SIZE", strconv.Itoa(int(w.Min)))
	add("MAX_SIZE", strconv.Itoa(int(w.Max)))
	if !setsSize(j) {
		add("SIZE", strconv.Itoa(int(w.Max))) // not the replicas: one more worker must not change the others' pods
	}
	if clientSecret(j) != "" && !j.Spec.Proxied() {
		add("ETCD_PROTOCOL", "https")
		add("ETCD_CACERT", tlsDir+"/ca.crt")
		add("ETCD_CERT", tlsDir+"/tls.crt")
		add("ETCD_KEY", tlsDir+"/tls.key")
	}
	return env
}

// runID is the run's name where it is known already, a reference to it where the pod brings it.
func runID(env []corev1.EnvVar) string {
	if id := env[0]; id.Name == "PET_RDZV_ID" {
		return id.Value
	}
	return "$(PET_RDZV_ID)"
}

func setsSize(j *job.Job) bool {
	return slices.ContainsFunc(j.Spec.Env, func(e job.Env) bool { return e.Name == "SIZE" })
}

// conf is the value of --rdzv-conf, keys sorted.
func conf(j *job.Job) string {
	pairs := confPairs(j)
	out := make([]string, 0, len(pairs))
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, k+"="+pairs[k])
	}
	return strings.Join(out, ",")
}

func confPairs(j *job.Job) map[string]string {
	z := &j.Spec.Rendezvous
	pairs := map[string]string{
		"last_call_timeout": strconv.FormatInt(seconds(z.LastCall), 10),
		"join_timeout":      strconv.FormatInt(seconds(z.JoinTimeout), 10),
	}
	if j.Spec.Framework == job.FrameworkDLRover { // its master's names (dlrover/trainer/torch/elastic_run.py)
		pairs["lastcall_timeout"] = pairs["last_call_timeout"]
		delete(pairs, "last_call_timeout")
	}
	if z.Backend == job.BackendEtcd {
		delete(pairs, "join_timeout")
		pairs["timeout"] = strconv.FormatInt(seconds(z.JoinTimeout), 10) // the legacy backend's name for it
	}
	if clientSecret(j) != "" && !j.Spec.Proxied() {
		ca, cert, key := "cacert", "cert", "key"
		if z.Backend == job.BackendEtcdV2 { // torch's second etcd backend names them anew
			ca, cert, key = "ca_cert", "ssl_cert", "ssl_cert_key"
		}
		pairs["protocol"] = "https"
		pairs[ca], pairs[cert], pairs[key] = tlsDir+"/ca.crt", tlsDir+"/tls.crt", tlsDir+"/tls.key"
	}
	if z.Store == job.StoreCompanion && z.Backend == job.BackendC10d && !j.Spec.Proxied() {
		pairs["is_host"] = "0" // no worker may try to be the store itself
	}
	if job.KeepsAlive(z.Backend) && !z.KeepsAliveByDefault() { // torch's own need no words
		pairs["keep_alive_interval"] = strconv.FormatInt(seconds(z.KeepAlive), 10)
		pairs["keep_alive_max_attempt"] = strconv.Itoa(int(z.KeepAliveAttempts))
	}
	for key, value := range z.Conf {
		pairs[key] = literal(value)
	}
	if j.Spec.Proxied() {
		delete(pairs, "user") // the proxy's
	}
	return pairs
}

// clientVolume has the workers' certificate of that Secret. The image's own user reads it as one of the others, where
// the pod has no group for its volumes.
func clientVolume(j *job.Job, secret string) corev1.Volume {
	v := secretVolume("tls", secret)
	if !mutualTLS(j) {
		return v
	}
	v.Secret.Items = []corev1.KeyToPath{
		{Key: "ca.crt", Path: "ca.crt"}, {Key: "client.crt", Path: "tls.crt"}, {Key: "client.key", Path: "tls.key"},
	}
	if j.Spec.Security.FSGroup.Number == nil {
		v.Secret.DefaultMode = ptr[int32](0o444)
	}
	return v
}

// clientSecret is the Secret with the workers' certificate for the rendered store, "" without TLS.
func clientSecret(j *job.Job) string {
	z := &j.Spec.Rendezvous
	if mutualTLS(j) {
		return certificateSecret(j)
	}
	if z.Store != job.StoreEtcd || z.Etcd.TLS == nil {
		return ""
	}
	if z.Etcd.TLS.ClientSecret != "" {
		return z.Etcd.TLS.ClientSecret
	}
	return z.Etcd.TLS.Secret
}
