package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is one of an inventory.
type object = map[string]any

// writeInventory writes what 'kubectl get nodes,pods -A --show-managed-fields' prints of a cluster with -o json, or
// -o yaml: a List, with all that a real cluster's objects carry, some twelve kilobytes each in JSON.
func writeInventory(w io.Writer, nodes, pods int, inYAML bool) error {
	f := inventoryJSON
	if inYAML {
		f = inventoryYAML
	}
	node, err := f.item(inventoryNode())
	if err != nil {
		return fmt.Errorf("printing a Node: %w", err)
	}
	pod, err := f.item(inventoryPod())
	if err != nil {
		return fmt.Errorf("printing a Pod: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<20) // a writer with a buffer keeps its error until it is flushed
	_, _ = out.WriteString(f.head)
	for i := range nodes + pods {
		text, names := node, nodeNames(i)
		if i >= nodes {
			text, names = pod, podNames(i-nodes, nodes)
		}
		if i > 0 {
			_, _ = out.WriteString(f.between)
		}
		_, _ = strings.NewReplacer(names...).WriteString(out, text)
	}
	_, _ = out.WriteString(f.end)
	return out.Flush()
}

// inventoryForm is how kubectl prints a List.
type inventoryForm struct {
	head, between, end string
	item               func(object) (string, error)
}

var (
	inventoryJSON = inventoryForm{
		"{\n    \"apiVersion\": \"v1\",\n    \"items\": [", ",",
		"\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n",
		func(o object) (string, error) {
			text, err := json.MarshalIndent(o, "        ", "    ")
			return "\n        " + string(text), err
		},
	}
	inventoryYAML = inventoryForm{
		"apiVersion: v1\nitems:\n", "", "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
		func(o object) (string, error) {
			text, err := yaml.Marshal(o)
			indented := strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ")
			return "- " + strings.ReplaceAll(indented, "VERSION", `"VERSION"`) + "\n", err // it becomes a number
		},
	}
)

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.internal.example", i>>16, i>>8&255, i&255)
}

// nodeNames and podNames are what stands in place of words in capitals.
func nodeNames(i int) []string {
	return []string{
		"NODE", nodeName(i), "RACK", fmt.Sprintf("rack-%d", i/20), "UID", digest(i),
		"VERSION", fmt.Sprint(1_000_000 + i),
	}
}

func podNames(i, nodes int) []string {
	app := fmt.Sprintf("service-%d", i/40)
	set := app + "-" + letters(digest(i / 40)[:10])
	return []string{
		"APP", app, "SET", set, "POD", set + "-" + letters(digest(i)[:5]), "TEAM", fmt.Sprintf("team-%d", i/400),
		"NODE", nodeName(i % nodes), "UID", digest(i), "VERSION", fmt.Sprint(2_000_000 + i),
	}
}

const stamp = "2026-11-20T08:15:30Z"

func inventoryNode() object {
	resources := object{
		"cpu": "192", "ephemeral-storage": "1887436800Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
		"memory": "2097152000Ki", "nvidia.com/gpu": "8", "pods": "250", "vpc.amazonaws.com/efa": "32",
	}
	var conditions, images []object
	for kind, status := range map[string]string{
		"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True",
	} {
		conditions = append(conditions, object{
			"type": kind, "status": status, "reason": "Kubelet" + kind, "lastHeartbeatTime": stamp,
			"lastTransitionTime": stamp, "message": "kubelet says so",
		})
	}
	for k := range 12 {
		name := fmt.Sprintf("registry.example.com/team-%d/image-%d", k%7, k)
		images = append(images, object{
			"names":     []string{name + "@sha256:" + digest(k), fmt.Sprintf("%s:v1.%d", name, k)},
			"sizeBytes": 100_000_000 + k*1_234_567,
		})
	}
	return object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": metadata(object{
			"name": "NODE",
			"labels": object{
				"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"kubernetes.io/hostname": "NODE", "kubernetes.io/os": "linux", "example.com/rack": "RACK",
				"node.kubernetes.io/instance-type": "p5.48xlarge", "topology.kubernetes.io/region": "region-1",
				"topology.kubernetes.io/zone": "region-1a",
			},
			"annotations": object{"csi.volume.kubernetes.io/nodeid": `{"csi.example.com":"i-UID"}`},
		}),
		"spec": object{"providerID": "example:///region-1a/UID"},
		"status": object{
			"addresses": []object{
				{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "NODE"},
			},
			"allocatable": resources, "capacity": resources, "conditions": conditions, "images": images,
			"daemonEndpoints": object{"kubeletEndpoint": object{"Port": 10250}},
			"nodeInfo": object{
				"architecture": "amd64", "containerRuntimeVersion": "containerd://2.1", "kernelVersion": "6.8.0",
				"kubeletVersion": "v1.36.3", "machineID": "UID", "operatingSystem": "linux",
				"osImage": "Debian GNU/Linux 12",
			},
		},
	}
}

func inventoryPod() object {
	var env, mounts, volumes, statuses, containers, conditions []object
	for k := range 2 {
		env = append(env, object{"name": fmt.Sprintf("SETTING_%d", k), "value": "https://config.example.com/v1/APP"})
	}
	for k := range 2 {
		volume := fmt.Sprintf("volume-%d", k)
		mounts = append(mounts, object{"name": volume, "mountPath": "/var/lib/" + volume, "readOnly": true})
		volumes = append(volumes, object{"name": volume, "configMap": object{"defaultMode": 420, "name": "APP-config"}})
	}
	for _, container := range []string{"main", "proxy"} {
		requests := object{"cpu": "250m", "memory": "512Mi"}
		resources := object{"limits": object{"memory": "512Mi"}, "requests": requests}
		image := "registry.example.com/APP/" + container + ":v1.2.3"
		containers = append(containers, object{
			"name": container, "image": image, "imagePullPolicy": "IfNotPresent", "env": env, "volumeMounts": mounts,
			"args": []string{"--listen=:8080", "--log-level=info"}, "resources": resources,
			"ports": []object{{"containerPort": 8080, "name": "http", "protocol": "TCP"}},
			"livenessProbe": object{
				"httpGet": object{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10,
			},
		})
		statuses = append(statuses, object{
			"name": container, "image": image, "imageID": image + "@sha256:UID", "ready": true, "started": true,
			"containerID": "containerd://UID", "restartCount": 0, "resources": resources,
			"allocatedResources": requests, "state": object{"running": object{"startedAt": stamp}},
		})
	}
	for _, kind := range []string{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, object{"type": kind, "status": "True", "lastTransitionTime": stamp})
	}
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": metadata(object{
			"name": "POD", "namespace": "TEAM", "generateName": "SET-",
			"labels": object{"app": "APP", "pod-template-hash": "SET", "team": "TEAM"},
			"ownerReferences": []object{{
				"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "SET", "uid": "UID", "controller": true,
				"blockOwnerDeletion": true,
			}},
		}),
		"spec": object{
			"containers": containers, "nodeName": "NODE", "volumes": volumes, "dnsPolicy": "ClusterFirst",
			"restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccountName": "APP",
			"tolerations": []object{
				{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
			},
		},
		"status": object{
			"phase": "Running", "conditions": conditions, "containerStatuses": statuses, "hostIP": "10.0.0.1",
			"podIP": "10.1.2.3", "podIPs": []object{{"ip": "10.1.2.3"}}, "qosClass": "Burstable", "startTime": stamp,
		},
	}
}

// metadata adds what a server does, with the fields that a manager owns.
func metadata(own object) object {
	below := object{}
	for k := range 2 {
		below[fmt.Sprintf(`k:{"name":"FIELD_%d"}`, k)] = object{".": object{}, "f:name": object{}, "f:value": object{}}
	}
	own["creationTimestamp"], own["resourceVersion"], own["uid"] = stamp, "VERSION", "UID"
	own["managedFields"] = []object{{
		"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": object{"f:spec": below}, "manager": "controller",
		"operation": "Update", "time": stamp,
	}}
	return own
}

// digest looks like one, of a number.
func digest(i int) string {
	h := uint64(i)*0x9e3779b97f4a7c15 + 0x1234567
	var b strings.Builder
	for range 4 {
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
		fmt.Fprintf(&b, "%016x", h)
	}
	return b.String()
}

// letters makes of digits those by which Kubernetes ends names.
func letters(digits string) string {
	return strings.Map(func(r rune) rune {
		return rune("bcdfghjklmnpqrst"[strings.IndexRune("0123456789abcdef", r)])
	}, digits)
}
