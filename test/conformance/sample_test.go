package conformance

import (
	"strings"
	"testing"
)

// mutate returns the sample with one passage replaced, and fails where the
// passage is not there exactly once: a mutation that changes nothing, or more
// than it says, proves nothing.
func mutate(t *testing.T, old, replacement string) string {
	t.Helper()
	if n := strings.Count(sample, old); n != 1 {
		t.Fatalf("the sample holds %q %d times, want once", old, n)
	}
	return strings.Replace(sample, old, replacement, 1)
}

// sample is a deployment both evaluators pass, of the kinds tegen writes.
const sample = `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: demo
data:
  RANKS: "4"
---
apiVersion: v1
kind: Service
metadata:
  name: demo
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: demo}
  ports:
  - name: grpc
    port: 50051
    targetPort: grpc
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: demo-shard
  labels: {app.kubernetes.io/component: shard}
spec:
  replicas: 2
  serviceName: demo
  podManagementPolicy: Parallel
  selector:
    matchLabels: {app: demo}
  template:
    metadata:
      labels: {app: demo}
    spec:
      automountServiceAccountToken: false
      securityContext:
        fsGroup: 20000
        runAsGroup: 20000
        runAsUser: 20000
        seccompProfile: {type: RuntimeDefault}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {app: demo}
      containers:
      - image: example.com/demo:1.2.3
        name: shard
        imagePullPolicy: Always
        args: [serve]
        ports:
        - name: grpc
          containerPort: 50051
        readinessProbe:
          tcpSocket: {port: grpc}
        securityContext:
          allowPrivilegeEscalation: false
          privileged: false
          readOnlyRootFilesystem: true
          runAsGroup: 20000
          runAsUser: 20000
          runAsNonRoot: true
        resources:
          requests: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}
          limits: {cpu: 2, memory: 1Gi, ephemeral-storage: 1Gi}
        volumeMounts:
        - name: data
          mountPath: /data
  volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      resources:
        requests: {storage: 1.5Gi}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: demo
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app: demo}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: demo-ranks
  annotations: {kube-score/ignore: container-image-tag}
  labels: {app.kubernetes.io/component: ranks}
spec:
  backoffLimit: 0
  completionMode: Indexed
  completions: 4
  parallelism: 4
  template:
    metadata:
      labels: {app: demo-ranks}
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      containers:
      - image: example.com/demo:1.2.3
        name: worker
        imagePullPolicy: Always
        envFrom:
        - configMapRef: {name: demo}
        securityContext:
          allowPrivilegeEscalation: false
          privileged: false
          readOnlyRootFilesystem: true
          runAsGroup: 20000
          runAsUser: 20000
        resources:
          requests: {cpu: "4", memory: 8Gi, ephemeral-storage: 2Gi}
          limits: {cpu: "4", memory: 8Gi, ephemeral-storage: 2Gi}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: demo
spec:
  podSelector:
    matchExpressions:
    - {key: app, operator: In, values: [demo, demo-ranks]}
  policyTypes: [Ingress]
  ingress:
  - from:
    - podSelector:
        matchLabels: {app: demo-ranks}
    ports:
    - port: grpc
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: demo
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: demo
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadOnlyMany]
  storageClassName: demo
  nfs:
    server: files.example.com
    path: /demo
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: demo
spec:
  accessModes: [ReadOnlyMany]
  storageClassName: demo
  volumeName: demo
  resources:
    requests:
      storage: 10Gi
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: demo
rules:
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
`
