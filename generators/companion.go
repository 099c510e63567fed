package generators

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

const companionData = "/var/lib/" + names.Rendezvous

// companionName is the name of the Service that workers dial, and of what runs behind it.
func companionName(j *job.Job) string {
	if n := j.Spec.Rendezvous.Companion.Name; n != "" {
		return n
	}
	return roleName(j, componentCompanion)
}

// companionStatusName is the name of the headless Service that has the pods' own names, and their status port.
func companionStatusName(j *job.Job) string { return companionName(j) + "-status" }

// forgets says whether the store is the companion's memory: c10d's, where no proxies keep its keys elsewhere.
func forgets(j *job.Job) bool {
	return j.Spec.Rendezvous.Backend == job.BackendC10d && !j.Spec.Proxied()
}

// expendable reports whether the companion's pod may go at any time: another one goes on with what it has served, and
// its clients wait for that one, as proxies do, or turn to a replica. Nothing then keeps a node from being drained.
func expendable(j *job.Job) bool {
	c := &j.Spec.Rendezvous.Companion
	return j.Spec.Proxied() && (c.Etcd != nil || c.Storage != nil) || companionReplicas(j) > 1
}

// companionPort is where workers dial it.
func companionPort(j *job.Job) int32 {
	if j.Spec.Rendezvous.Backend == job.BackendC10d {
		return c10dPort(j)
	}
	return etcdPort(j)
}

// companionReplicas: a store of c10d lives in the memory of one pod, and so does an etcd of the pod's own. What an etcd
// that exists keeps, any pod can serve.
func companionReplicas(j *job.Job) int32 {
	c := &j.Spec.Rendezvous.Companion
	if c.Etcd != nil {
		return cmp.Or(c.Replicas, 2)
	}
	return cmp.Or(c.Replicas, 1)
}

// companion is a tegen-rendezvous of the job's own, in which its workers meet.
func companion(j *job.Job) []runtime.Object {
	if j.Spec.Rendezvous.Store != job.StoreCompanion {
		return nil
	}
	out := companionAt(j, companionName(j), false)
	if mutualTLS(j) {
		out = append(keys(j), out...)
	}
	return out
}

// companionAt is a companion that its clients dial as host. One that jobs share outlives each of them.
func companionAt(j *job.Job, host string, shared bool) []runtime.Object {
	replicas, template := companionReplicas(j), companionTemplate(j, host)
	if mutualTLS(j) && !shared { // whose clients have no certificates in their namespaces
		withCertificates(j, &template)
	}
	out := []runtime.Object{
		headless(j, companionStatusName(j), componentCompanion, selector(j, componentCompanion),
			port("status", names.RendezvousStatusPort)),
		// Not the headless one: this name has an address before there is a pod, so that workers that come first are
		// refused, which torch tries again; whether torch retries an unresolved name is unknown.
		&corev1.Service{
			ObjectMeta: meta(j, companionName(j), componentCompanion),
			Spec: corev1.ServiceSpec{
				Selector: selector(j, componentCompanion),
				Ports:    []corev1.ServicePort{port("rendezvous", companionPort(j))},
			},
		},
	}
	if j.Spec.Disruption.Budget && (replicas > 1 || !expendable(j)) {
		out = append(out, budget(j, companionName(j), componentCompanion, max(1, replicas-1)))
	}
	if j.Spec.Rendezvous.Companion.Etcd != nil {
		return append(out, companionGateways(j, replicas, template, shared))
	}
	return append(out, companionStore(j, replicas, template, shared))
}

func companionMeta(j *job.Job, shared bool) metav1.ObjectMeta {
	m := versionedMeta(j, companionName(j), componentCompanion)
	if shared {
		installedAs(&m)
	}
	return m
}

// companionGateways keep nothing: any of them may go at any time.
func companionGateways(j *job.Job, replicas int32, template corev1.PodTemplateSpec, shared bool,
) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: companionMeta(j, shared),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector(j, componentCompanion)},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: ptr(intstr.FromInt32(0)), // a new one serves before an old one goes
					MaxSurge:       ptr(intstr.FromInt32(1)),
				},
			},
			Template: template,
		},
	}
	if replicas > 1 {
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			// One node for all still beats none.
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: selector(j, componentCompanion)},
			// Or pods that a rollout is about to end count too.
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		}}
	}
	d.Spec.Template = patched(j, job.RoleCompanion, d.Spec.Template)
	expect(j, &d.ObjectMeta, d.Spec.Template.Spec)
	return d
}

// companionStore is one pod that keeps the data itself, under a name that never stands for two pods at a time.
func companionStore(j *job.Job, replicas int32, template corev1.PodTemplateSpec, shared bool) *appsv1.StatefulSet {
	c := &j.Spec.Rendezvous.Companion
	set := &appsv1.StatefulSet{
		ObjectMeta: companionMeta(j, shared),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: companionStatusName(j),
			Replicas:    &replicas,
			Selector:    &metav1.LabelSelector{MatchLabels: selector(j, componentCompanion)},
			Template:    template,
		},
	}
	if c.Storage != nil {
		claim := dataClaim(j, componentCompanion, c.Storage)
		set.Spec.PersistentVolumeClaimRetentionPolicy = dataOfOneRun()
		if shared {
			claim.Labels = dataLabels(claim.Labels, j.Metadata.Name)
			set.Spec.PersistentVolumeClaimRetentionPolicy = dataOfAllRuns()
		}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	} else {
		// What is in the pod, and connections of c10d, which its clients never make again, would end with a new image
		// or flag.
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		if !forgets(j) {
			set.Spec.Template.Spec.Volumes = append(set.Spec.Template.Spec.Volumes,
				dataOf(&j.Spec.Roles.Companion, j.Spec.CompanionDisk()))
		}
	}
	set.Spec.Template = patched(j, job.RoleCompanion, set.Spec.Template)
	expect(j, &set.ObjectMeta, set.Spec.Template.Spec)
	return set
}

func companionTemplate(j *job.Job, host string) corev1.PodTemplateSpec {
	e := j.Spec.Rendezvous.Companion.Etcd
	container := companionContainer(j, host)
	pod := podSpec(j, &j.Spec.Roles.Companion)
	pod.ServiceAccountName = ""                  // it needs neither a cloud role nor the Kubernetes API
	pod.PriorityClassName = j.Spec.PodPriority() // as with an etcd
	pod.TerminationGracePeriodSeconds = ptr[int64](30)
	switch {
	case forgets(j):
		// It goes on serving until runs have ended: workers that are deleted with it have that long for their
		// checkpoint.
		*pod.TerminationGracePeriodSeconds += seconds(j.Spec.GracePeriod)
	case e == nil:
		container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: companionData}}
	case e.TLS != nil:
		pod.Volumes = []corev1.Volume{secretVolume("tls", e.TLS.Secret)}
		container.VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: tlsDir, ReadOnly: true}}
	}
	pod.Containers = []corev1.Container{container}
	template := corev1.PodTemplateSpec{Spec: pod}
	template.Labels = podLabels(j, componentCompanion)
	if !expendable(j) {
		template.Annotations = evictionAnnotations(j)
	}
	return template
}

func companionContainer(j *job.Job, host string) corev1.Container {
	c, memory := &j.Spec.Rendezvous.Companion, j.Spec.CompanionMemory()
	probe := func(path string, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("status"),
			}},
			PeriodSeconds: period, FailureThreshold: failures,
			TimeoutSeconds: 3, // it says after 2 that the store does not answer
		}
	}
	// The collector works harder before the kernel kills: what is kept, and what is on its way, is less than this.
	env := []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(memory.Value()*6/10, 10)}}
	if c.Etcd != nil && c.Etcd.Password != nil {
		env = append(env, corev1.EnvVar{
			Name: names.RendezvousPassword,
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: c.Etcd.Password.Name}, Key: c.Etcd.Password.Key,
			}},
		})
	}
	return corev1.Container{
		Name:            componentCompanion,
		Image:           j.Spec.Images.Rendezvous,
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		// To which the image's entrypoint is the program.
		Args: append([]string{"serve"}, companionFlags(j, host)...),
		Env:  env,
		Ports: []corev1.ContainerPort{
			{Name: "rendezvous", ContainerPort: companionPort(j), Protocol: corev1.ProtocolTCP},
			{Name: "status", ContainerPort: names.RendezvousStatusPort, Protocol: corev1.ProtocolTCP},
		},
		Resources: serving(&j.Spec.Roles.Companion, j.Spec.CompanionDisk()),
		// A large log takes its time; serve itself ends when it gets no further.
		StartupProbe:    probe("/readyz", 2, 900),
		ReadinessProbe:  probe("/readyz", 5, 3),
		LivenessProbe:   probe("/healthz", 10, 6), // a restart ends every run of c10d: not at the first doubt
		SecurityContext: containerSecurity(true),
	}
}

// companionFlags open one protocol to the workers and shut the others: replicas would answer c10d each from a memory of
// its own, and c10d has no use for a store where no proxies speak it.
func companionFlags(j *job.Job, host string) []string {
	z := &j.Spec.Rendezvous
	memory := j.Spec.CompanionMemory()
	status := fmt.Sprintf("--listen-status=:%d", names.RendezvousStatusPort)
	if forgets(j) {
		return []string{
			"--listen-client=",
			fmt.Sprintf("--listen-c10d=:%d", c10dPort(j)),
			status,
			fmt.Sprintf("--drain-timeout=%ds", seconds(j.Spec.GracePeriod)),
			// What workers write is refused before it costs the pod its memory, and with it the run of all.
			fmt.Sprintf("--max-bytes=%d", memory.Value()/4),
		}
	}
	listeners := []string{
		fmt.Sprintf("--listen-client=:%d", etcdPort(j)),
		// The Service: what clients dial when they connect again.
		fmt.Sprintf("--advertise-client-urls=http://%s:%d", host, etcdPort(j)),
		"--listen-c10d=",
		status,
		fmt.Sprintf("--max-bytes=%d", memory.Value()/4),
		fmt.Sprintf("--max-answer-bytes=%d", memory.Value()/8), // held for clients that read slowly, or never
	}
	if j.Spec.Proxied() {
		listeners = []string{
			"--listen-client=", "--listen-c10d=",
			fmt.Sprintf("--listen-proxies=:%d", c10dPort(j)),
			status,
			fmt.Sprintf("--max-bytes=%d", memory.Value()/4),
		}
	}
	e := z.Companion.Etcd
	if e == nil {
		// A directory of its own: the mount point's rights are not the program's to set.
		return append([]string{"--store=embedded", "--data-dir=" + companionData + "/data"}, listeners...)
	}
	flags := append([]string{"--store=etcd", "--endpoints=" + strings.Join(e.Endpoints, ",")}, listeners...)
	if e.TLS != nil {
		flags = append(flags, "--cacert="+tlsDir+"/ca.crt", "--cert="+tlsDir+"/tls.crt", "--key="+tlsDir+"/tls.key")
	}
	if e.User != "" {
		flags = append(flags, "--user="+e.User) // its password comes by a variable, which no process list shows
	}
	return flags
}

// companionPolicy lets in the members, and who reads the metrics. Probes come from the pod's own node, which no policy
// keeps out.
func companionPolicy(j *job.Job, members []networkingv1.NetworkPolicyPeer,
	watchers ...networkingv1.NetworkPolicyPeer,
) *networkingv1.NetworkPolicy {
	var out []networkingv1.NetworkPolicyEgressRule
	if e := j.Spec.Rendezvous.Companion.Etcd; e != nil {
		var ports []int
		for _, endpoint := range e.Endpoints {
			n, _ := strconv.Atoi(endpoint[strings.LastIndex(endpoint, ":")+1:]) // schema.Load read it
			ports = append(ports, n)
		}
		slices.Sort(ports)
		out = []networkingv1.NetworkPolicyEgressRule{{Ports: tcp(slices.Compact(ports)...)}, {Ports: dns()}}
	}
	in := []networkingv1.NetworkPolicyIngressRule{{From: members, Ports: tcp(int(companionPort(j)))}}
	for _, w := range watchers {
		in = append(in, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{w}, Ports: tcp(names.RendezvousStatusPort),
		})
	}
	return policy(j, componentCompanion, in, egress{rules: out})
}
