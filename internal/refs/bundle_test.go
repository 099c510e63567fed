package refs_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// bundle is a small training job whose references all resolve: four numbered
// workers behind a headless Service and three etcd pods behind another.
type bundle struct {
	job         *batchv1.Job
	worker      *corev1.Container // of job
	etcd        *appsv1.StatefulSet
	service     *corev1.Service // of job
	etcdService *corev1.Service
	more        []runtime.Object
}

func (b *bundle) objects() []runtime.Object {
	return append([]runtime.Object{b.job, b.etcd, b.service, b.etcdService}, b.more...)
}

func (b *bundle) add(objs ...runtime.Object) { b.more = append(b.more, objs...) }

func (b *bundle) env(name, value string) {
	b.worker.Env = append(b.worker.Env, corev1.EnvVar{Name: name, Value: value})
}

func (b *bundle) envFrom(name string, source corev1.EnvVarSource) {
	b.worker.Env = append(b.worker.Env, corev1.EnvVar{Name: name, ValueFrom: &source})
}

func (b *bundle) volume(name string, source corev1.VolumeSource) {
	pod := &b.job.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
}

func (b *bundle) expect(list string) {
	b.job.Annotations = map[string]string{"tegen.dev/expects": list}
}

func ptr[T any](v T) *T { return &v }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "training", Name: name}
}

func local(name string) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: name}
}

func newBundle() *bundle {
	worker := map[string]string{"app": "imagenet", "role": "worker"}
	etcd := map[string]string{"app": "etcd"}
	b := &bundle{
		job: &batchv1.Job{ObjectMeta: named("imagenet"), Spec: batchv1.JobSpec{
			Completions:    ptr(int32(4)),
			CompletionMode: ptr(batchv1.IndexedCompletion),
			Template:       template(worker, "worker"),
		}},
		etcd: &appsv1.StatefulSet{ObjectMeta: named("etcd"), Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr(int32(3)),
			ServiceName: "etcd",
			Selector:    &metav1.LabelSelector{MatchLabels: etcd},
			Template:    template(etcd, "etcd"),
		}},
		service:     headless("imagenet", map[string]string{"batch.kubernetes.io/job-name": "imagenet"}, 29400),
		etcdService: headless("etcd", etcd, 2379, 2380),
	}
	b.job.Spec.Template.Spec.Subdomain = "imagenet"
	b.worker = &b.job.Spec.Template.Spec.Containers[0]
	return b
}

func template(labels map[string]string, container string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: container}}},
	}
}

func headless(name string, selector map[string]string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: selector}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p, TargetPort: intstr.FromInt32(p)})
	}
	return s
}

func configMap(name string, keys ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: named(name), Data: map[string]string{}}
	for _, k := range keys {
		m.Data[k] = "x"
	}
	return m
}

func secret(name string, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{}}
	for _, k := range keys {
		s.Data[k] = []byte("x")
	}
	return s
}

func claim(name, volume, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: named(name), Spec: corev1.PersistentVolumeClaimSpec{
		VolumeName: volume, StorageClassName: &class,
	}}
}

func secretKey(name, key string) corev1.EnvVarSource {
	return corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(name), Key: key}}
}

func configMapKey(name, key string) corev1.EnvVarSource {
	return corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: local(name),
		Key:                  key,
	}}
}

func field(path string) corev1.EnvVarSource {
	return corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func matching(pairs map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: pairs}
}
