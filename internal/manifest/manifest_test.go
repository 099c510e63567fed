package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

func sampleJob() *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": "train", "app.kubernetes.io/managed-by": "tegen",
		"team": "ml",
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "train", Namespace: "ml", Labels: labels,
			Annotations: map[string]string{"y": "on", "8080": "1e3"},
		},
		Spec: batchv1.JobSpec{
			Completions:  new(int32(8)),
			Parallelism:  new(int32(8)),
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name:    "main",
						Image:   "ghcr.io/acme/train:1.2.3",
						Command: []string{"/bin/sh", "-c", "set -eu\npython train.py \\\n  --epochs=10\n"},
						Args:    []string{"--config=/etc/train.yaml", "8080"},
						Env: []corev1.EnvVar{
							{Name: "MODE", Value: "yes"},
							{
								Name: "POD",
								ValueFrom: &corev1.EnvVarSource{
									FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
								},
							},
						},
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{
								"cpu":    resource.MustParse("500m"),
								"memory": resource.MustParse("1Gi"),
							},
							Limits: corev1.ResourceList{
								"nvidia.com/gpu": resource.MustParse("1"),
								"memory":         resource.MustParse("2Gi"),
							},
						},
						VolumeMounts: []corev1.VolumeMount{
							{Name: "tmp", MountPath: "/tmp"},
							{Name: "data", MountPath: "/data", ReadOnly: true},
						},
						SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true)},
					}},
					Volumes: []corev1.Volume{
						{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{
							Name: "data",
							VolumeSource: corev1.VolumeSource{
								PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
							},
						},
					},
				},
			},
		},
	}
}

const sampleJobYAML = `apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: ml
  labels:
    app.kubernetes.io/managed-by: tegen
    app.kubernetes.io/name: train
    team: ml
  annotations:
    "8080": "1e3"
    "y": "on"
spec:
  parallelism: 8
  completions: 8
  backoffLimit: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/managed-by: tegen
        app.kubernetes.io/name: train
        team: ml
    spec:
      volumes:
      - name: tmp
        emptyDir: {}
      - name: data
        persistentVolumeClaim:
          claimName: data
      containers:
      - name: main
        image: ghcr.io/acme/train:1.2.3
        command:
        - /bin/sh
        - -c
        - |
          set -eu
          python train.py \
            --epochs=10
        args:
        - --config=/etc/train.yaml
        - "8080"
        ports:
        - name: http
          containerPort: 8080
        env:
        - name: MODE
          value: "yes"
        - name: POD
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        resources:
          limits:
            memory: 2Gi
            nvidia.com/gpu: "1"
          requests:
            cpu: 500m
            memory: 1Gi
        volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: data
          readOnly: true
          mountPath: /data
        securityContext:
          runAsNonRoot: true
      restartPolicy: Never
`

func mustAppend(t testing.TB, obj runtime.Object) string {
	t.Helper()
	out, err := Append(nil, obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAppendTyped(t *testing.T) {
	job := sampleJob()
	if diff := cmp.Diff(sampleJobYAML, mustAppend(t, job)); diff != "" {
		t.Error(diff)
	}
	if job.Kind != "" {
		t.Error("Append changed the caller's object")
	}
	job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	if diff := cmp.Diff(sampleJobYAML, mustAppend(t, job)); diff != "" {
		t.Errorf("with TypeMeta set: %s", diff)
	}
}

func TestAppendPrunes(t *testing.T) {
	tests := map[string]struct {
		obj  runtime.Object
		want string
	}{
		"deployment": {
			&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec: appsv1.DeploymentSpec{
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}},
				},
				Status: appsv1.DeploymentStatus{Replicas: 3},
			},
			"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\nspec:\n  template:\n    spec:\n" +
				"      containers:\n      - name: c\n",
		},
		"stateful set": {
			&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
				ServiceName:          "s",
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "v"}}},
			}},
			"apiVersion: apps/v1\nkind: StatefulSet\nspec:\n  template: {}\n  volumeClaimTemplates:\n  - metadata:\n" +
				"      name: v\n  serviceName: s\n",
		},
		"network policy": {
			&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
				Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
				Egress: []networkingv1.NetworkPolicyEgressRule{
					{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}},
				},
			}},
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec:\n  podSelector: {}\n  ingress:\n  - {}\n" +
				"  egress:\n  - to:\n    - podSelector: {}\n",
		},
		"service": {
			&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Port: 80},
				{Port: 81, TargetPort: intstr.FromString("web")},
			}}},
			"apiVersion: v1\nkind: Service\nspec:\n  ports:\n  - port: 80\n  - port: 81\n    targetPort: web\n",
		},
		"null list": {&rbacv1.ClusterRole{}, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"},
		"namespace": {
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
			"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns\n",
		},
		"unstructured": {
			&unstructured.Unstructured{Object: map[string]any{
				"spec": map[string]any{
					"z": nil, "resources": map[string]any{}, "basic": map[string]any{},
					"egress": []any{}, "n": int64(1), "f": 0.5,
					"template": map[string]any{"metadata": map[string]any{"creationTimestamp": nil}},
				},
				"aaa": true, "status": map[string]any{"x": "y"}, "kind": "Foo", "apiVersion": "x.io/v1",
				"metadata": map[string]any{
					"annotations": map[string]any{}, "name": "foo", "namespace": "ns",
					"creationTimestamp": nil,
				},
			}},
			"apiVersion: x.io/v1\nkind: Foo\nmetadata:\n  name: foo\n  namespace: ns\n  annotations: {}\naaa: true\n" +
				"spec:\n  basic: {}\n  egress: []\n  f: 0.5\n  \"n\": 1\n  resources: {}\n  template:\n" +
				"    metadata: {}\n" +
				"  z: null\n",
		},
	}
	for name, tt := range tests {
		if diff := cmp.Diff(tt.want, mustAppend(t, tt.obj)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestBooleanSpellingsSurvive(t *testing.T) {
	data := map[string]string{}
	for _, word := range []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"} {
		for _, s := range []string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
			data[s] = s
		}
	}
	cm := &corev1.ConfigMap{Data: data}
	text := mustAppend(t, cm)
	var got corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, got.Data); diff != "" {
		t.Error(diff)
	}
	if got, want := strings.Count(text, `": "`), len(data)-3; got < want {
		t.Errorf("%d entries are quoted, want %d:\n%s", got, want, text)
	}
}

func TestDeterministic(t *testing.T) {
	want := ""
	for range 20 {
		m, content := map[string]string{}, map[string]any{}
		for i := range 30 { // Go starts each walk over a map elsewhere
			m[fmt.Sprint("k", i)] = "v"
			content[fmt.Sprint("k", i)] = map[string]any{"b": "x", "a": "y"}
		}
		rebuilt := map[string]any{"apiVersion": "x/v1", "kind": "K"}
		for k, v := range content {
			rebuilt[k] = v
		}
		var buf bytes.Buffer
		err := Write(&buf, []runtime.Object{&corev1.ConfigMap{Data: m}, &unstructured.Unstructured{Object: rebuilt}})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = buf.String()
		}
		if buf.String() != want {
			t.Fatal(cmp.Diff(want, buf.String()))
		}
	}
}

func TestWrite(t *testing.T) {
	ns := &corev1.Namespace{}
	var buf bytes.Buffer
	if err := Write(&buf, []runtime.Object{ns, ns}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("apiVersion: v1\nkind: Namespace\n---\napiVersion: v1\nkind: Namespace\n",
		buf.String()); diff != "" {
		t.Error(diff)
	}
	if err := Write(&buf, nil); err != nil {
		t.Error(err)
	}
	err := Write(&buf, []runtime.Object{ns, (*corev1.Pod)(nil)})
	if err == nil || !strings.Contains(err.Error(), "document 2") {
		t.Errorf("writing a nil pod: %v", err)
	}
	if err := Write(brokenWriter{}, []runtime.Object{ns}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing to a broken writer: %v", err)
	}
}

func TestWriteFlushes(t *testing.T) {
	objs := make([]runtime.Object, 500)
	var want []byte
	for i := range objs {
		job := sampleJob()
		job.Name = fmt.Sprint("job-", i)
		objs[i] = job
		if i > 0 {
			want = append(want, "---\n"...)
		}
		want = append(want, mustAppend(t, job)...)
	}
	var buf bytes.Buffer
	if err := Write(&buf, objs); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, buf.Bytes()) {
		t.Error("Write and Append differ")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestGVK(t *testing.T) {
	s, err := readScheme()
	if err != nil {
		t.Fatal(err)
	}
	for gvk := range s.AllKnownTypes() {
		obj, err := newTyped(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if obj == nil {
			continue
		}
		if got, err := GVK(obj); err != nil || got != gvk {
			t.Errorf("got %v, %v, want %v", got, err, gvk)
		}
	}
	for _, obj := range []runtime.Object{nil, &unstructured.Unstructured{}, &metav1.Status{}} {
		if _, err := GVK(obj); err == nil {
			t.Errorf("%T: want an error", obj)
		}
		if out, err := Append([]byte("x"), obj); err == nil || string(out) != "x" {
			t.Errorf("%T: got %q, %v", obj, out, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	job := sampleJob()
	b.Run("manifest", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			dst, _ = Append(dst[:0], job)
		}
		b.SetBytes(int64(len(dst)))
	})
	b.Run("sigs-yaml", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := yaml.Marshal(job); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json-alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(job); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWrite20000(b *testing.B) {
	objs := make([]runtime.Object, 20000)
	for i := range objs {
		objs[i] = sampleJob()
	}
	for b.Loop() {
		var n countingWriter
		if err := Write(&n, objs); err != nil {
			b.Fatal(err)
		}
	}
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}
