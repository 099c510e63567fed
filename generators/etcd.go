package generators

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

const etcdData = "/var/lib/etcd"

// etcdName is the name of the client Service and the StatefulSet; the tutorial's is etcd.
func etcdName(j *job.Job) string {
	if n := j.Spec.Rendezvous.Etcd.Name; n != "" {
		return n
	}
	return j.Metadata.Name + "-" + componentEtcd
}

func etcdPeerName(j *job.Job) string { return etcdName(j) + "-peer" }

func etcdPort(j *job.Job) int32 {
	if p := j.Spec.Rendezvous.Port; p != 0 {
		return p
	}
	return names.EtcdClientPort
}

func etcdImage(j *job.Job) string {
	if job.SpeaksV2(j.Spec.Rendezvous.Backend) {
		return j.Spec.Images.EtcdV2
	}
	return j.Spec.Images.Etcd
}

func etcd(j *job.Job) []runtime.Object {
	z := &j.Spec.Rendezvous
	if z.Store != job.StoreEtcd {
		return nil
	}
	client := port("client", etcdPort(j))
	var out []runtime.Object
	if mutualTLS(j) {
		out = keys(j)
	}
	out = append(out,
		headless(j, etcdPeerName(j), componentEtcd, selector(j, componentEtcd),
			port("peer", names.EtcdPeerPort)),
		&corev1.Service{
			ObjectMeta: meta(j, etcdName(j), componentEtcd),
			Spec:       corev1.ServiceSpec{Selector: selector(j, componentEtcd), Ports: []corev1.ServicePort{client}},
		},
	)
	if j.Spec.Disruption.Budget {
		quorum := z.Etcd.Replicas/2 + 1 // fewer members lose the rendezvous
		out = append(out, budget(j, etcdName(j), componentEtcd, quorum))
	}
	return append(out, etcdMembers(j))
}

func etcdMembers(j *job.Job) *appsv1.StatefulSet {
	e := &j.Spec.Rendezvous.Etcd
	set := &appsv1.StatefulSet{
		ObjectMeta: versionedMeta(j, etcdName(j), componentEtcd),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: etcdPeerName(j),
			Replicas:    &e.Replicas,
			// Members wait for each other, so none may wait to be created.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: selector(j, componentEtcd)},
			Template:            etcdTemplate(j),
		},
	}
	if e.Storage != nil {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{dataClaim(j, componentEtcd, e.Storage)}
		set.Spec.PersistentVolumeClaimRetentionPolicy = dataOfOneRun()
	} else {
		set.Spec.Template.Spec.Volumes = append(set.Spec.Template.Spec.Volumes,
			dataOf(&j.Spec.Roles.Etcd, j.Spec.EtcdDisk()))
	}
	set.Spec.Template = patched(j, job.RoleEtcd, set.Spec.Template)
	expect(j, &set.ObjectMeta, set.Spec.Template.Spec)
	return set
}

// dataClaim is the volume of one pod that keeps data.
func dataClaim(j *job.Job, component string, s *job.EtcdStorage) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{
		// An API server adds them where they are missing, which Argo CD shows as a difference for ever.
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: selector(j, component)},
		Spec:       claimSpec(corev1.ReadWriteOnce, s.Size),
	}
	if s.StorageClass != "" {
		claim.Spec.StorageClassName = &s.StorageClass
	}
	return claim
}

// dataOfAllRuns stays without its StatefulSet, which goes on with it when it is there again.
func dataOfAllRuns() *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
}

// dataOfOneRun goes with its StatefulSet.
func dataOfOneRun() *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		// A new run must not meet the state of an old one.
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
}

// dataOf is where a pod keeps data that ends with it: of the size that it needs, or of all that its author allows.
func dataOf(role *job.RolePods, needs resource.Quantity) corev1.Volume {
	if limit := role.Resources.DiskLimit(); limit != nil {
		return scratch("data", *limit)
	}
	return scratch("data", needs)
}

// serving is what a pod asks for that workers meet in.
func serving(role *job.RolePods, disk resource.Quantity) corev1.ResourceRequirements {
	// The others have defaults of the schema's.
	return askedOr(role.Resources, resource.Quantity{}, resource.Quantity{}, disk)
}

func etcdTemplate(j *job.Job) corev1.PodTemplateSpec {
	e := &j.Spec.Rendezvous.Etcd
	container := etcdContainer(j)
	pod := podSpec(j, &j.Spec.Roles.Etcd)
	pod.ServiceAccountName = ""                  // etcd needs neither a cloud role nor the Kubernetes API
	pod.PriorityClassName = j.Spec.PodPriority() // workers that nobody pushes out need a store that nobody pushes out
	if v := etcdCertificates(j); v != nil {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: "tls", MountPath: tlsDir,
			ReadOnly: true,
		})
		pod.Volumes = []corev1.Volume{*v}
	}
	pod.Containers = []corev1.Container{container}
	pod.TerminationGracePeriodSeconds = ptr[int64](30)
	if e.Replicas > 1 {
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			// One node for all still beats none.
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: selector(j, componentEtcd)},
		}}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      podLabels(j, componentEtcd),
			Annotations: evictionAnnotations(j),
		},
		Spec: pod,
	}
}

// etcdCertificates are those of the members, nil without TLS.
func etcdCertificates(j *job.Job) *corev1.Volume {
	var v corev1.Volume
	switch tls := j.Spec.Rendezvous.Etcd.TLS; {
	case mutualTLS(j):
		v = secretVolume("tls", certificateSecret(j))
		v.Secret.Items = []corev1.KeyToPath{
			{Key: "ca.crt", Path: "ca.crt"}, {Key: "server.crt", Path: "tls.crt"}, {Key: "server.key", Path: "tls.key"},
		}
	case tls != nil:
		v = secretVolume("tls", tls.Secret)
	default:
		return nil
	}
	return &v
}

// etcdHosts are the names by which members dial each other.
func etcdHosts(j *job.Job) []string {
	hosts := make([]string, j.Spec.Rendezvous.Etcd.Replicas)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("%s-%d.%s", etcdName(j), i, etcdPeerName(j))
	}
	return hosts
}

func etcdContainer(j *job.Job) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("metrics"), // the client port asks for certificates where TLS is on
		}}}
	}
	startup := probe("/health")
	startup.FailureThreshold, startup.PeriodSeconds = 60, 5 // members of a new cluster wait for the last one's image
	// /livez and /readyz came with etcd 3.5.11; this works with any image that an author names.
	liveness := probe("/health?serializable=true")
	liveness.FailureThreshold, liveness.PeriodSeconds = 6, 10
	return corev1.Container{
		Name:            "etcd",
		Image:           etcdImage(j),
		ImagePullPolicy: corev1.PullPolicy(j.Spec.ImagePullPolicy),
		Command:         append([]string{"etcd"}, etcdFlags(j)...),
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
		}}},
		Ports: []corev1.ContainerPort{
			{Name: "client", ContainerPort: etcdPort(j), Protocol: corev1.ProtocolTCP},
			{Name: "peer", ContainerPort: names.EtcdPeerPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: names.EtcdMetricsPort, Protocol: corev1.ProtocolTCP},
		},
		Resources:       serving(&j.Spec.Roles.Etcd, j.Spec.EtcdDisk()),
		StartupProbe:    startup,
		ReadinessProbe:  probe("/health"),
		LivenessProbe:   liveness,
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: etcdData}},
	}
}

// etcdFlags advertise names, never 0.0.0.0: what a member advertises is what clients dial when they reconnect.
func etcdFlags(j *job.Job) []string {
	e := &j.Spec.Rendezvous.Etcd
	scheme, encrypted := "http", etcdCertificates(j) != nil
	if encrypted {
		scheme = "https"
	}
	members := etcdHosts(j)
	for i, host := range members {
		name, _, _ := strings.Cut(host, ".")
		members[i] = fmt.Sprintf("%s=%s://%s:%d", name, scheme, host, names.EtcdPeerPort)
	}
	flags := []string{
		"--name=$(POD_NAME)",
		"--data-dir=" + etcdData + "/data", // a directory of its own: the mount point's rights are not etcd's to set
		fmt.Sprintf("--listen-client-urls=%s://0.0.0.0:%d", scheme, etcdPort(j)),
		fmt.Sprintf("--advertise-client-urls=%s://%s:%d", scheme, etcdName(j), etcdPort(j)),
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", scheme, names.EtcdPeerPort),
		fmt.Sprintf("--initial-advertise-peer-urls=%s://$(POD_NAME).%s:%d", scheme, etcdPeerName(j),
			names.EtcdPeerPort),
		"--initial-cluster=" + strings.Join(members, ","),
		"--initial-cluster-state=new",
		"--initial-cluster-token=" + j.Metadata.Namespace + "-" + etcdName(j),
		fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", names.EtcdMetricsPort),
		fmt.Sprintf("--quota-backend-bytes=%d", e.Quota.Value()),
		"--auto-compaction-mode=periodic",
		fmt.Sprintf("--auto-compaction-retention=%ds", seconds(e.Compaction)),
	}
	if job.SpeaksV2(j.Spec.Rendezvous.Backend) {
		flags = append(flags, "--enable-v2=true") // what torch's etcd backends speak
	}
	if encrypted {
		for _, side := range []string{"", "peer-"} {
			flags = append(flags,
				"--"+side+"cert-file="+tlsDir+"/tls.crt",
				"--"+side+"key-file="+tlsDir+"/tls.key",
				"--"+side+"trusted-ca-file="+tlsDir+"/ca.crt",
				"--"+side+"client-cert-auth=true",
			)
		}
	}
	if mutualTLS(j) {
		flags = append(flags, "--peer-cert-allowed-cn=server") // or workers could be members: their authority is one
	}
	return flags
}
