package importer_test

import "testing"

// TestEnvironmentSources: what a variable takes its value from is a field of the job where the schema has one, and
// podTemplate carries what it has not.
func TestEnvironmentSources(t *testing.T) {
	t.Parallel()
	job := func(container string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
			"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: " +
			"'a/b:1', command: [python, t.py], " + container + "}]}}}\n"
	}
	for name, c := range map[string]claim{
		"fields of the pod": {
			in: job("env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}, " +
				"{name: B, valueFrom: {resourceFieldRef: {containerName: c, resource: limits.cpu}}}], " +
				"resources: {limits: {cpu: 4}}"),
			jobs: []string{`name: A\n +field: status.podIP`, `name: B\n +resource: limits.cpu`},
		},
		"an amount in other units, or of another container": {
			in: job("env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}, " +
				"{name: B, valueFrom: {resourceFieldRef: {containerName: proxy, resource: requests.memory}}}]"),
			jobs:   []string{`divisor: 1Mi`, `containerName: proxy`},
			silent: []string{"- name: B\n    resource: requests"},
		},
		"all keys": {
			in: job("envFrom: [{secretRef: {name: s, optional: true}}, {prefix: C_, configMapRef: {name: c}}]"),
			jobs: []string{
				`envFrom:\n +- secret: s\n +optional: true\n +- configMap: c\n +prefix: C_`,
			},
			silent: []string{"secretRef"},
		},
	} {
		t.Run(name, c.check)
	}
}

// TestSidecars: init containers that go on running become sidecars, and the kubelet's questions probes; what the schema
// has no word for stays in podTemplate, and so does all where the order or the rights would change.
func TestSidecars(t *testing.T) {
	t.Parallel()
	job := func(pod, container string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
			"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, " + pod +
			"containers: [{name: c, image: 'a/b:1', command: [python, t.py]" + container + "}]}}}\n"
	}
	const logs = "{name: logs, image: 'l:1', restartPolicy: Always"
	for name, c := range map[string]claim{
		"with a volume of the workers": {
			in: job("volumes: [{name: d, persistentVolumeClaim: {claimName: d}}], initContainers: ["+logs+
				", ports: [{name: http, containerPort: 80}], volumeMounts: [{name: d, mountPath: /logs, readOnly: "+
				"true}]}], ", ", volumeMounts: [{name: d, mountPath: /data}]"),
			jobs: []string{
				`sidecars:\n +- name: logs`, `ports:\n +http: 80`, `volume: d\n +path: /logs\n +readOnly: true`,
			},
			silent: []string{"initContainers"},
		},
		"with a volume of its own": {
			in: job("volumes: [{name: d, emptyDir: {}}], initContainers: ["+logs+", volumeMounts: [{name: d, "+
				"mountPath: /logs}]}], ", ""),
			jobs: []string{`sidecars:\n +- name: logs`, `initContainers:\n +- name: logs\n +volumeMounts:`},
		},
		"before another that may need it": {
			in:     job("initContainers: ["+logs+"}, {name: warm, image: 'w:1'}], ", ""),
			jobs:   []string{`initContainers:\n +- name: logs\n +image: l:1`},
			silent: []string{"sidecars"},
		},
		"with a file system for reading": {
			in:     job("initContainers: ["+logs+", securityContext: {readOnlyRootFilesystem: true}}], ", ""),
			jobs:   []string{`initContainers:`},
			silent: []string{"sidecars"},
		},
		"probes": {
			in: job("", ", ports: [{name: health, containerPort: 8080}], livenessProbe: {httpGet: {port: health, "+
				"path: /h}, periodSeconds: 30, successThreshold: 1}, startupProbe: {exec: {command: [test, -e, /x]}, "+
				"failureThreshold: 9}, readinessProbe: {tcpSocket: {port: 80}}"),
			jobs: []string{
				`liveness:\n +http:\n +port: 8080\n +path: /h\n +period: 30s`, `exec:\n +- test`,
				`failures: 9`, `tcp: 80`,
			},
			silent: []string{"httpGet", "port: health"},
		},
		"a probe by TLS, and one by gRPC": {
			in:   job("", ", livenessProbe: {httpGet: {port: 80, scheme: HTTPS}}, readinessProbe: {grpc: {port: 81}}"),
			jobs: []string{`scheme: HTTPS`, `grpc:`}, silent: []string{"probes:"},
		},
	} {
		t.Run(name, c.check)
	}
}
