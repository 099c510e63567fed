package generators

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
)

// Installation is a tegen-scheduler as a cluster runs it. internal/install has checked it, so that nothing can be wrong
// here.
type Installation struct {
	Namespace string
	Image     string // with a tag or a digest
	Replicas  int32  // of which one schedules
	Config    string // a KubeSchedulerConfiguration, byte for byte
	Lease     string // the name that Config elects its leader by; the Lease is in Namespace

	NamespaceExists bool // and is not rendered
	PodMonitor      bool // Prometheus' operator is there, and asks for metrics
}

const (
	schedulerPort      = 10259 // kube-scheduler's own, for HTTPS
	schedulerConfigDir = "/etc/" + names.Scheduler
	schedulerUser      = int64(65534) // the image's
)

// Install is everything that the scheduler needs in a cluster, in the order of being referred to. What Kubernetes
// brings itself is only named: the namespaces kube-system and default, and the roles of its own scheduler.
func Install(i *Installation) []runtime.Object {
	var out []runtime.Object
	if !BuiltInNamespace(i.Namespace) && !i.NamespaceExists {
		out = append(out, i.namespace())
	}
	if !BuiltInNamespace(i.Namespace) {
		out = append(out, i.quota())
	}
	out = append(out, i.account())
	out = append(out, i.access()...)
	out = append(out, i.config(), i.network(), i.budget(), i.deployment())
	return append(out, i.monitor()...)
}

// BuiltInNamespace reports whether Kubernetes itself creates a namespace, which an installation never renders: a Pod
// Security label would keep other pods out of it.
func BuiltInNamespace(namespace string) bool {
	switch namespace {
	case metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, metav1.NamespaceDefault:
		return true
	}
	return false
}

func (i *Installation) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: i.Namespace, Labels: i.labels()}
}

// clusterMeta names an object that is not in the namespace after it: another installation has objects of its own.
func (i *Installation) clusterMeta(part string) metav1.ObjectMeta {
	m := i.meta(names.Scheduler + "." + i.Namespace + "." + part)
	m.Namespace = ""
	m.Labels[names.LabelNamespace] = i.Namespace
	return m
}

func (i *Installation) labels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     names.Scheduler,
		"app.kubernetes.io/instance": names.Scheduler,
		names.LabelComponent:         componentScheduler,
		"app.kubernetes.io/part-of":  names.ManagedBy,
		names.LabelManagedBy:         names.ManagedBy,
		"app.kubernetes.io/version":  version(i.Image),
	}
}

func (i *Installation) selector() map[string]string {
	return map[string]string{
		"app.kubernetes.io/instance": names.Scheduler,
		names.LabelComponent:         componentScheduler,
	}
}

func (i *Installation) namespace() *corev1.Namespace {
	m := i.meta(i.Namespace)
	m.Namespace = ""
	return restrictedNamespace(keptOf(names.Scheduler, m))
}

// restrictedNamespace is of metadata that is kept: with a namespace goes all that others put into it.
func restrictedNamespace(m metav1.ObjectMeta) *corev1.Namespace {
	m.Labels[podSecurityLabel] = "restricted"
	return &corev1.Namespace{ObjectMeta: m}
}

// criticalClass keeps training pods from pushing out what places them. Kubernetes has it in every cluster.
const criticalClass = "system-cluster-critical"

// quota lets the namespace have critical pods: where an API server limits them by its admission configuration, as GKE
// does, a namespace other than kube-system has none without a quota that names the class.
func (i *Installation) quota() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: i.meta(names.Scheduler),
		Spec: corev1.ResourceQuotaSpec{
			// Old and new ones, in a rollout.
			Hard: corev1.ResourceList{corev1.ResourcePods: quantity(2 * int64(i.Replicas))},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
				ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
				Values: []string{criticalClass},
			}}},
		},
	}
}

// config has the hash of its text in its name: another text is another ConfigMap, and so a rollout.
func (i *Installation) config() *corev1.ConfigMap {
	m := i.meta(i.configName())
	annotate(&m, names.ContentHash, contentHash(i.Config))
	return &corev1.ConfigMap{ObjectMeta: m, Immutable: ptr(true), Data: map[string]string{schedulerConfigKey: i.Config}}
}

const schedulerConfigKey = "config.yaml"

func (i *Installation) configName() string { return names.Scheduler + "-" + contentHash(i.Config) }

// network lets everyone ask for health and metrics, which the scheduler grants to those whom the API server lets read
// /metrics. Where the API server is, no policy could know.
func (i *Installation) network() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: i.meta(names.Scheduler),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: i.selector()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: tcp(schedulerPort)}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{}},
		},
	}
}

func (i *Installation) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: i.meta(names.Scheduler),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr(intstr.FromInt32(1)), // of a single replica too: a node must be drainable
			Selector:                   &metav1.LabelSelector{MatchLabels: i.selector()},
			UnhealthyPodEvictionPolicy: ptr(policyv1.AlwaysAllow), // a pod that does not run protects nothing
		},
	}
}

func (i *Installation) deployment() *appsv1.Deployment {
	m := i.meta(names.Scheduler)
	installedAs(&m)
	return &appsv1.Deployment{
		ObjectMeta: m,
		Spec: appsv1.DeploymentSpec{
			Replicas: &i.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: i.selector()},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					// A new one stands by, its caches filled, before an old one goes.
					MaxUnavailable: ptr(intstr.FromInt32(0)),
					MaxSurge:       ptr(intstr.FromInt32(1)),
				},
			},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: i.labels()}, Spec: i.podSpec()},
		},
	}
}

// installedAs notes the place of an installation, of which its other objects speak: kustomize may move it.
func installedAs(m *metav1.ObjectMeta) { annotate(m, names.InstalledAs, m.Namespace+"/"+m.Name) }

func (i *Installation) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName:            names.Scheduler,
		AutomountServiceAccountToken:  ptr(true), // to watch pods and bind them is all its work
		EnableServiceLinks:            ptr(false),
		PriorityClassName:             criticalClass,
		TerminationGracePeriodSeconds: ptr[int64](30),
		SecurityContext:               podSecurityContext(schedulerUser, schedulerUser, schedulerUser),
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			// One node for all still beats none.
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: i.selector()},
			// Or pods that a rollout is about to end count too.
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		}},
		Volumes: []corev1.Volume{{
			Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: i.configName()},
				DefaultMode:          ptr[int32](0o444),
			}},
		}},
		Containers: []corev1.Container{i.container()},
	}
}

func (i *Installation) container() corev1.Container {
	probe := func(path string, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("https"), Scheme: corev1.URISchemeHTTPS,
			}},
			PeriodSeconds: period, FailureThreshold: failures,
		}
	}
	resources := fixed(resource.MustParse("2"), resource.MustParse("1Gi"), resource.MustParse("256Mi"))
	// One of them only stands by, and bursts of pods are short.
	resources.Requests[corev1.ResourceCPU] = resource.MustParse("250m")
	return corev1.Container{
		Name:  names.Scheduler,
		Image: i.Image,
		// To which the image's entrypoint is the program.
		Args: []string{"--config=" + schedulerConfigDir + "/" + schedulerConfigKey},
		Ports: []corev1.ContainerPort{{
			Name: "https", ContainerPort: schedulerPort,
			Protocol: corev1.ProtocolTCP,
		}},
		Resources:       resources,
		StartupProbe:    probe("/livez", 2, 60),
		LivenessProbe:   probe("/livez", 10, 6), // it also fails where a leader cannot renew its Lease and did not end
		ReadinessProbe:  probe("/readyz", 5, 3), // of a standby too, once its caches are filled
		SecurityContext: containerSecurity(true),
		VolumeMounts:    []corev1.VolumeMount{{Name: "config", MountPath: schedulerConfigDir, ReadOnly: true}},
	}
}
