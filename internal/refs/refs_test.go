package refs_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/refs"
)

// refCase changes the bundle so that it still resolves, then breaks the change.
type refCase struct {
	name     string
	reason   string
	resolves func(*bundle)
	breaks   func(*bundle)
	want     []string // From: Field: To, of what then is broken
}

func (tc refCase) run(t *testing.T) {
	b := newBundle()
	tc.resolves(b)
	if got := refs.Check(b.objects()); got != nil {
		t.Errorf("broken before the break (%s): %v", tc.reason, got)
	}
	if got := refs.Check(crowded(b)); got != nil {
		t.Errorf("broken in a crowd before the break (%s): %v", tc.reason, got)
	}
	tc.breaks(b)
	if diff := cmp.Diff(tc.want, pairs(t, refs.Check(b.objects()))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
	if diff := cmp.Diff(tc.want, pairs(t, refs.Check(crowded(b)))); diff != "" {
		t.Errorf("in a crowd: %s (-want +got):\n%s", tc.reason, diff)
	}
}

// crowded is a bundle among so many pods of another namespace that workloads are found by their labels.
func crowded(b *bundle) []runtime.Object {
	all := b.objects()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "crowd", Labels: map[string]string{"app": "nothing"},
		}})
	}
	return all
}

func pairs(t *testing.T, all []refs.Broken) []string {
	var list []string
	for _, b := range all {
		list = append(list, b.From+": "+b.Field+": "+b.To)
		if !strings.Contains(b.Why, ";") && !strings.Contains(b.Why, ",") {
			t.Errorf("no remedy in %q", b.Why)
		}
	}
	return list
}

const (
	jobPod = "Job training/imagenet: spec.template.spec."
	worker = jobPod + "containers[worker]."
)

func TestPodReferences(t *testing.T) {
	for _, tc := range podCases {
		t.Run(tc.name, tc.run)
	}
}

var podCases = []refCase{{
	name:   "claim volume",
	reason: "a pod with a claim that does not exist stays Pending",
	resolves: func(b *bundle) {
		b.add(claim("data", "", "gp3"))
		b.volume("data", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "data",
		}})
	},
	breaks: func(b *bundle) { b.more = nil },
	want:   []string{jobPod + "volumes[data].persistentVolumeClaim: PersistentVolumeClaim training/data"},
}, {
	name:   "claim of a volumeClaimTemplate",
	reason: "the StatefulSet controller makes <template>-<set>-<ordinal>, for its replicas",
	resolves: func(b *bundle) {
		b.etcd.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		b.etcd.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		b.volume("backup", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "data-etcd-2",
		}})
	},
	breaks: func(b *bundle) { b.etcd.Spec.Replicas = ptr(int32(2)) },
	want:   []string{jobPod + "volumes[backup].persistentVolumeClaim: PersistentVolumeClaim training/data-etcd-2"},
}, {
	name:   "secret and configMap volumes",
	reason: "an absent object or item key keeps the pod in ContainerCreating",
	resolves: func(b *bundle) {
		b.add(secret("tls", "ca"), configMap("conf", "a"))
		b.volume("tls", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}})
		b.volume("conf", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: local("conf"), Items: []corev1.KeyToPath{{Key: "a"}},
		}})
		b.volume("maybe", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: local("absent"), Optional: ptr(true),
		}})
	},
	breaks: func(b *bundle) { b.more = []runtime.Object{configMap("conf", "b")} },
	want: []string{
		jobPod + "volumes[conf].configMap: ConfigMap training/conf",
		jobPod + "volumes[tls].secret: Secret training/tls",
	},
}, {
	name:   "projected volume",
	reason: "each source is a reference; kube-root-ca.crt is in every namespace",
	resolves: func(b *bundle) {
		b.add(secret("tls"), configMap("conf"))
		b.volume("all", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: local("tls")}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("conf")}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("kube-root-ca.crt")}},
		}}})
	},
	breaks: func(b *bundle) { b.more = nil },
	want: []string{
		jobPod + "volumes[all].projected.sources[0]: Secret training/tls",
		jobPod + "volumes[all].projected.sources[1]: ConfigMap training/conf",
	},
}, {
	name:   "volumeMount",
	reason: "the API server refuses a mount without volume, and two mounts in one place",
	resolves: func(b *bundle) {
		b.volume("shm", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		b.worker.VolumeMounts = []corev1.VolumeMount{
			{Name: "shm", MountPath: "/dev/shm"},
			{Name: "shm", MountPath: "/tmp"},
		}
	},
	breaks: func(b *bundle) {
		b.worker.VolumeMounts[1] = corev1.VolumeMount{Name: "scratch", MountPath: "/dev/shm/"}
	},
	want: []string{
		worker + "volumeMounts[scratch]: mountPath /dev/shm/",
		worker + "volumeMounts[scratch]: volume scratch",
	},
}, {
	name:   "env from a Secret key",
	reason: "the object and the key must both be there",
	resolves: func(b *bundle) {
		b.add(secret("hf", "token"))
		b.envFrom("HF_TOKEN", secretKey("hf", "token"))
	},
	breaks: func(b *bundle) { b.more = []runtime.Object{secret("hf", "TOKEN")} },
	want:   []string{worker + "env[HF_TOKEN]: Secret training/hf"},
}, {
	name:   "env from a ConfigMap key",
	reason: "optional references resolve always",
	resolves: func(b *bundle) {
		b.add(configMap("conf", "lr"))
		b.envFrom("LR", configMapKey("conf", "lr"))
		b.envFrom("MAYBE", configMapKey("absent", "lr"))
		b.worker.Env[1].ValueFrom.ConfigMapKeyRef.Optional = ptr(true)
	},
	breaks: func(b *bundle) { b.more = nil },
	want:   []string{worker + "env[LR]: ConfigMap training/conf"},
}, {
	name:   "envFrom",
	reason: "the container does not start without them, unless optional",
	resolves: func(b *bundle) {
		b.add(secret("hf"), configMap("conf"))
		b.worker.EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("hf")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("conf")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("absent"), Optional: ptr(true)}},
		}
	},
	breaks: func(b *bundle) { b.more = nil },
	want:   []string{worker + "envFrom[0]: Secret training/hf", worker + "envFrom[1]: ConfigMap training/conf"},
}, {
	name:   "imagePullSecrets and serviceAccountName",
	reason: "a pull secret is a Secret of the namespace; the account default always exists",
	resolves: func(b *bundle) {
		b.add(secret("pull"), &corev1.ServiceAccount{ObjectMeta: named("trainer")})
		b.job.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("pull")}
		b.job.Spec.Template.Spec.ServiceAccountName = "trainer"
		b.etcd.Spec.Template.Spec.ServiceAccountName = "default"
	},
	breaks: func(b *bundle) { b.more = nil },
	want: []string{
		jobPod + "imagePullSecrets[pull]: Secret training/pull",
		jobPod + "serviceAccountName: ServiceAccount training/trainer",
	},
}, {
	name:   "fieldRef to a label",
	reason: "an absent label reads as the empty string; the controllers add some",
	resolves: func(b *bundle) {
		b.envFrom("ROLE", field("metadata.labels['role']"))
		b.envFrom("JOB", field("metadata.labels['batch.kubernetes.io/job-name']"))
		b.envFrom("RANK", field("metadata.annotations['batch.kubernetes.io/job-completion-index']"))
		b.envFrom("NAME", field("metadata.name"))
		etcd := &b.etcd.Spec.Template.Spec.Containers[0]
		etcd.Env = []corev1.EnvVar{{Name: "POD", ValueFrom: ptr(
			field("metadata.labels['statefulset.kubernetes.io/pod-name']"))}}
	},
	breaks: func(b *bundle) {
		delete(b.job.Spec.Template.Labels, "role")
		b.job.Spec.CompletionMode = nil
		b.envFrom("TEAM", field("metadata.annotations['team']"))
	},
	want: []string{
		worker + "env[RANK]: metadata.annotations['batch.kubernetes.io/job-completion-index']",
		worker + "env[ROLE]: metadata.labels['role']",
		worker + "env[TEAM]: metadata.annotations['team']",
	},
}, {
	name:   "other kinds with pods",
	reason: "the path of the pod template depends on the kind",
	resolves: func(b *bundle) {
		app := map[string]string{"app": "x"}
		b.add(
			&corev1.Pod{ObjectMeta: named("pod"), Spec: corev1.PodSpec{}},
			&batchv1.CronJob{
				ObjectMeta: named("cron"),
				Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{
					Spec: batchv1.JobSpec{Template: template(app, "c")},
				}},
			},
			&appsv1.Deployment{
				ObjectMeta: named("deploy"),
				Spec:       appsv1.DeploymentSpec{Selector: matching(app), Template: template(app, "c")},
			},
			&appsv1.ReplicaSet{
				ObjectMeta: named("rs"),
				Spec:       appsv1.ReplicaSetSpec{Selector: matching(app), Template: template(app, "c")},
			},
			&appsv1.DaemonSet{
				ObjectMeta: named("ds"),
				Spec:       appsv1.DaemonSetSpec{Selector: matching(app), Template: template(app, "c")},
			},
		)
	},
	breaks: func(b *bundle) {
		b.more[0].(*corev1.Pod).Spec.ServiceAccountName = "x"
		b.more[1].(*batchv1.CronJob).Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName = "x"
		b.more[2].(*appsv1.Deployment).Spec.Selector = matching(map[string]string{"app": "y"})
		b.more[3].(*appsv1.ReplicaSet).Spec.Selector = matching(map[string]string{"app": "y"})
		b.more[4].(*appsv1.DaemonSet).Spec.Selector = matching(map[string]string{"app": "y"})
	},
	want: []string{
		"CronJob training/cron: spec.jobTemplate.spec.template.spec.serviceAccountName: ServiceAccount training/x",
		"DaemonSet training/ds: spec.selector: pods training/app=y",
		"Deployment training/deploy: spec.selector: pods training/app=y",
		"Pod training/pod: spec.serviceAccountName: ServiceAccount training/x",
		"ReplicaSet training/rs: spec.selector: pods training/app=y",
	},
}, {
	name:   "Job selector",
	reason: "the controller writes a Job's selector unless manualSelector is set",
	resolves: func(b *bundle) {
		b.job.Spec.Selector = matching(map[string]string{"controller-uid": "1"})
	},
	breaks: func(b *bundle) { b.job.Spec.ManualSelector = ptr(true) },
	want:   []string{"Job training/imagenet: spec.selector: pods training/controller-uid=1"},
}}

func TestObjectReferences(t *testing.T) {
	for _, tc := range objectCases {
		t.Run(tc.name, tc.run)
	}
}

var objectCases = []refCase{{
	name:     "StatefulSet.serviceName",
	reason:   "the governing Service must select the set's pods",
	resolves: func(b *bundle) {},
	breaks: func(b *bundle) {
		b.etcdService.Spec.Selector = map[string]string{"app": "imagenet"}
	},
	want: []string{"StatefulSet training/etcd: spec.serviceName: Service training/etcd"},
}, {
	name:     "subdomain without headless Service",
	reason:   "a Service with an address of its own gives pods no names",
	resolves: func(b *bundle) {},
	breaks:   func(b *bundle) { b.service.Spec.ClusterIP = "" },
	want:     []string{jobPod + "subdomain: Service training/imagenet"},
}, {
	name:   "subdomain of unselected pods",
	reason: "labels of the Job controller count, an index that no pod has does not",
	resolves: func(b *bundle) {
		b.service.Spec.Selector = map[string]string{
			"job-name": "imagenet",
			"batch.kubernetes.io/job-completion-index": "3",
		}
	},
	breaks: func(b *bundle) { b.service.Spec.Selector["batch.kubernetes.io/job-completion-index"] = "4" },
	want: []string{
		jobPod + "subdomain: Service training/imagenet",
		"Service training/imagenet: spec.selector: pods " +
			"training/batch.kubernetes.io/job-completion-index=4,job-name=imagenet",
	},
}, {
	name:   "Service selector",
	reason: "a Service that selects nothing has no endpoints; pods of one set have names of their own",
	resolves: func(b *bundle) {
		b.add(headless("first", map[string]string{"statefulset.kubernetes.io/pod-name": "etcd-0"}),
			headless("manual", nil))
	},
	breaks: func(b *bundle) {
		b.more[0].(*corev1.Service).Spec.Selector["statefulset.kubernetes.io/pod-name"] = "etcd-3"
	},
	want: []string{"Service training/first: spec.selector: pods training/statefulset.kubernetes.io/pod-name=etcd-3"},
}, {
	name:   "named targetPort",
	reason: "a name is looked up in the pods, a number is used as it is",
	resolves: func(b *bundle) {
		b.service.Spec.Ports = []corev1.ServicePort{
			{Name: "http", Port: 80, TargetPort: intstr.FromString("web")},
			{Name: "raw", Port: 81, TargetPort: intstr.FromInt32(9999)},
		}
		b.worker.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	},
	breaks: func(b *bundle) { b.worker.Ports[0].Name = "www" },
	want:   []string{"Service training/imagenet: spec.ports[http].targetPort: container port web"},
}, {
	name:   "PodDisruptionBudget",
	reason: "a budget that selects nothing protects nothing",
	resolves: func(b *bundle) {
		b.add(&policyv1.PodDisruptionBudget{
			ObjectMeta: named("pdb"),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"zookeeper", "etcd"}},
					{Key: "role", Operator: metav1.LabelSelectorOpDoesNotExist},
				},
			}},
		})
	},
	breaks: func(b *bundle) {
		sel := b.more[0].(*policyv1.PodDisruptionBudget).Spec.Selector
		sel.MatchExpressions[1].Operator = metav1.LabelSelectorOpExists
	},
	want: []string{"PodDisruptionBudget training/pdb: spec.selector: pods training/app in (etcd,zookeeper),role"},
}, {
	name:   "NetworkPolicy",
	reason: "peers of this namespace are in the set; with a namespaceSelector they may be anyone's",
	resolves: func(b *bundle) {
		peers := []networkingv1.NetworkPolicyPeer{
			{PodSelector: matching(map[string]string{"app": "imagenet"})},
			{PodSelector: matching(map[string]string{"app": "prometheus"}), NamespaceSelector: &metav1.LabelSelector{}},
			{PodSelector: &metav1.LabelSelector{}},
		}
		b.add(&networkingv1.NetworkPolicy{ObjectMeta: named("net"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *matching(map[string]string{"app": "etcd"}),
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers}},
		}})
	},
	breaks: func(b *bundle) {
		spec := &b.more[0].(*networkingv1.NetworkPolicy).Spec
		spec.PodSelector.MatchLabels["app"] = "etcdd"
		spec.Ingress[0].From[0].PodSelector.MatchLabels["app"] = "image"
	},
	want: []string{
		"NetworkPolicy training/net: spec.egress[0].to[0]: pods training/app=image",
		"NetworkPolicy training/net: spec.ingress[0].from[0]: pods training/app=image",
		"NetworkPolicy training/net: spec.podSelector: pods training/app=etcdd",
	},
}, {
	name:   "claim and volume",
	reason: "a pinned pair needs both sides and one class; a StorageClass is the cluster's",
	resolves: func(b *bundle) {
		b.add(claim("data", "pv", "efs"), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "pv",
				Labels: map[string]string{"app.kubernetes.io/managed-by": "tegen"},
			},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "efs",
				ClaimRef:         &corev1.ObjectReference{Namespace: "training", Name: "data"},
			},
		})
	},
	breaks: func(b *bundle) {
		b.more[0].(*corev1.PersistentVolumeClaim).Spec.StorageClassName = nil
		b.more[1].(*corev1.PersistentVolume).Spec.ClaimRef.Namespace = "default"
		b.add(claim("other", "pv-2", "efs"))
	},
	want: []string{
		"PersistentVolume pv: spec.claimRef: PersistentVolumeClaim default/data",
		"PersistentVolumeClaim training/data: spec.storageClassName: PersistentVolume pv",
		"PersistentVolumeClaim training/other: spec.volumeName: PersistentVolume pv-2",
	},
}, {
	name:     "duplicates",
	reason:   "the last one applied wins silently; no namespace is the namespace default",
	resolves: func(b *bundle) { b.add(configMap("conf"), secret("conf")) },
	breaks: func(b *bundle) {
		first, second := configMap("x"), configMap("x")
		first.Namespace, second.Namespace = "", "default"
		b.add(configMap("conf"), first, second)
	},
	want: []string{
		"ConfigMap default/x: metadata.name: ConfigMap default/x",
		"ConfigMap training/conf: metadata.name: ConfigMap training/conf",
	},
}, {
	name:   "kinds of other groups",
	reason: "a Knative Service of the same name is neither a duplicate nor a stand-in",
	resolves: func(b *bundle) {
		b.add(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "serving.knative.dev/v1", "kind": "Service",
			"metadata": map[string]any{"name": "etcd", "namespace": "training"},
		}})
	},
	breaks: func(b *bundle) { b.etcdService.Name = "eks-etcd" },
	want:   []string{"StatefulSet training/etcd: spec.serviceName: Service training/etcd"},
}}

func TestShuffled(t *testing.T) {
	b := newBundle()
	b.env("A_ENDPOINT", "etcd:1")
	b.env("B_ENDPOINT", "imagenet-9.imagenet:29400")
	b.envFrom("HF_TOKEN", secretKey("hf", "token"))
	b.volume("data", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
		ClaimName: "data",
	}})
	// Of two objects with one name either could win, so only the name counts.
	b.add(secret("hf", "token"), secret("hf"), claim("dat", "pv", ""), claim("a-data", "pv", ""),
		claim("b-data", "pv", ""))
	b.add(headless("etcd", map[string]string{"app": "nothing"}, 1))
	objs := b.objects()
	want := refs.Check(objs)
	if len(want) < 6 {
		t.Fatalf("too little is broken to prove anything: %v", want)
	}
	for seed := range uint64(200) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(objs), func(i, j int) { objs[i], objs[j] = objs[j], objs[i] })
		if diff := cmp.Diff(want, refs.Check(objs)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}
