package command

import "slices"

// kustomizeRow is a row of the table of docs/environments.md, and what shows that it is true.
type kustomizeRow struct {
	field, where, job, objects, reported string // the cells

	places []string
	runs   []kustomizeRun
}

// kustomizeRun is a build with one field more, and the differences.
type kustomizeRun struct {
	text       string   // of the field
	configured bool     // with the configuration of 'tegen init'
	changes    []string // some of the objects' differences
	keeps      []string // starts of differences that there are not
	vet, check []string // parts of what they report; nothing where there are none
	fails      string   // a part of the error of kustomize
}

const (
	newImage = "images: [{name: example.org/train, newTag: '2.0'}]\n"
	// changed is what is reported of an object that no longer is what its name says.
	changed = " is the hash of other content: this object was changed after tegen rendered it"
	// unmatchedReplicas is kustomize's own error.
	unmatchedReplicas = "resource with name resnet does not match a config"
)

var resnetChanged, bertChanged = []string{"Job ml/resnet-worker-", changed}, []string{"JobSet ml/bert-", changed}

func onJob(patch string) string {
	return "patches:\n- target: {kind: TrainingJob, name: resnet}\n  patch: |-\n    - " + patch + "\n"
}

func onRendered(patch string) string {
	return "patches:\n- target: {kind: Job}\n  patch: |-\n    - " + patch + "\n"
}

func replaced(target string) string {
	return "replacements:\n- source: {kind: ConfigMap, name: settings, fieldPath: data.a}\n  targets: " +
		"[" + target + "]\n"
}

var kustomizeRows = []kustomizeRow{
	{
		"`images`", "base or beside, without a configuration", "no change, except in containers of `podTemplate`",
		"no change", "`vet --overlay` notes it",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text: newImage, keeps: []string{"Job", "JobSet"},
				vet: []string{"note: images[0]: TrainingJob resnet keeps example.org/train:1.0 in spec.image: "},
			},
			{
				text: "images: [{name: example.org/typo, newTag: '2.0'}]\n", keeps: []string{"Job", "JobSet"},
				vet: []string{"note: images[0]: no image has the name example.org/typo, so it changes nothing"},
			},
		},
	},
	{
		"`images`", "base or beside, with the configuration of `tegen init`", "every image of that name changes",
		"follow, under new names", "-",
		[]string{inBase, beside},
		[]kustomizeRun{{
			text: newImage, configured: true, changes: []string{
				"Job resnet-worker-H: spec.template.spec.containers[0].image: example.org/train:2.0",
				"Job resnet-worker-H: new hash", "JobSet bert-H: new hash",
			},
		}},
	},
	{
		"`images`", "above", "it is rendered already", "containers change under the old hashed name",
		"`vet --overlay` notes it, `check` fails",
		[]string{above},
		[]kustomizeRun{{
			text: newImage, configured: true,
			changes: []string{"Job resnet-worker-H: spec.template.spec.containers[0].image: example.org/train:2.0"},
			keeps:   []string{"Job resnet-worker-H: new hash"},
			vet:     slices.Concat([]string{"kustomization.yaml: note: "}, resnetChanged, bertChanged),
			check:   slices.Concat(resnetChanged, bertChanged),
		}},
	},
	{
		"`namePrefix`", "base or beside", "its name changes", "names, addresses, selectors and gangs follow; a " +
			"reference " +
			"of a custom resource to a ConfigMap or Secret of the overlay follows with the configuration of " +
			"`tegen init`",
		"`vet --overlay` and `check` note a reference that stays",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text: "namePrefix: eu-\n", configured: true, changes: []string{
					"Job resnet-worker-H: metadata.name: eu-resnet-worker-H", "Job resnet-worker-H: new hash",
					"Job resnet-worker-H: spec.template.spec.subdomain: eu-resnet-worker",
					"Job resnet-worker-H: spec.template.metadata.labels.scheduling.x-k8s.io/pod-group: eu-resnet",
					"Service resnet-etcd: metadata.name: eu-resnet-etcd",
					"Service resnet-etcd: spec.selector.tegen.dev/job: eu-resnet",
					" env A: eu-settings",
					"JobSet bert-H: spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: eu-bert",
				},
			},
			{
				text: "namePrefix: eu-\n", changes: []string{"JobSet bert-H: metadata.name: eu-bert-H"},
				vet: []string{
					"JobSet.jobset.x-k8s.io ml/eu-bert-", "it needs ConfigMap settings, and the set has eu-settings",
				},
				check: []string{"note: ", "it needs ConfigMap settings, and the set has eu-settings"},
			},
		},
	},
	{
		"`namePrefix`", "above", "it is rendered already", "names change; addresses, subdomains, gangs and " +
			"references of " +
			"custom resources do not",
		"`vet --overlay` and `check` fail",
		[]string{above},
		[]kustomizeRun{{
			text: "namePrefix: eu-\n", changes: []string{"Service resnet-etcd: metadata.name: eu-resnet-etcd"},
			keeps: []string{
				"Job resnet-worker-H: spec.template.spec.subdomain", "Job resnet-worker-H: new hash",
				"Job resnet-worker-H: spec.template.metadata.labels.scheduling.x-k8s.io/pod-group",
			},
			vet: []string{
				"subdomain: Service ml/resnet-worker: no object", "pod-group]: PodGroup", "Service ml/resnet-etcd:",
			},
			check: []string{
				"subdomain: Service ml/resnet-worker: no object", "pod-group]: PodGroup", "Service ml/resnet-etcd:",
				"serviceAccountName: ServiceAccount ml/bert:",
			},
		}},
	},
	{
		"`namespace`", "base or beside", "it moves", "follow, with their addresses", "-",
		[]string{inBase, beside},
		[]kustomizeRun{{
			text: "namespace: prod\n", changes: []string{
				"Job resnet-worker-H: metadata.namespace: prod", "JobSet bert-H: new hash",
				".bert-H.prod.svc.cluster.local:29400",
			},
		}},
	},
	{
		"`namespace`", "above", "it is rendered already", "they move; full addresses stay",
		"`vet --overlay` and `check` fail, where there is such an address",
		[]string{above},
		[]kustomizeRun{{
			text: "namespace: prod\n", changes: []string{"JobSet bert-H: metadata.namespace: prod"},
			keeps: []string{"JobSet bert-H: new hash"},
			vet:   []string{"env[PET_RDZV_ENDPOINT]: Service ml/bert-", "the Service is in namespace prod"},
			check: []string{"env[PET_RDZV_ENDPOINT]: Service ml/bert-", "the Service is in namespace prod"},
		}},
	},
	{
		"`labels`", "base or beside, with `includeSelectors` or without", "its labels", "they and their pods have " +
			"them; " +
			"selectors stay",
		"-",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text: "labels: [{pairs: {team: vision}}]\n", changes: []string{
					"Job resnet-worker-H: spec.template.metadata.labels.team: vision", "Job resnet-worker-H: new hash",
					"Service resnet-etcd: metadata.labels.team: vision",
				},
				keeps: []string{"Service resnet-etcd: spec.selector"},
			},
			{
				text: "labels: [{pairs: {team: vision}, includeSelectors: true}]\n", changes: []string{
					"JobSet bert-H: spec.replicatedJobs[0].template.spec.template.metadata.labels.team: vision",
				},
				keeps: []string{"Service resnet-etcd: spec.selector"},
			},
		},
	},
	{
		"`labels`", "above", "it is rendered already", "the objects have them, pods do not", "-",
		[]string{above},
		[]kustomizeRun{{
			text:    "labels: [{pairs: {team: vision}}]\n",
			changes: []string{"Job resnet-worker-H: metadata.labels.team: vision"},
			keeps:   []string{"Job resnet-worker-H: spec.template", "JobSet bert-H: spec"},
		}},
	},
	{
		"`labels`", "above, with `includeTemplates` or `includeSelectors`", "it is rendered already", "pods of a " +
			"Job have " +
			"them under the old hashed name; selectors select no pods of a custom resource",
		"`vet --overlay` notes the first and fails for the second, `check` fails",
		[]string{above},
		[]kustomizeRun{
			{
				text:    "labels: [{pairs: {team: vision}, includeTemplates: true}]\n",
				changes: []string{"Job resnet-worker-H: spec.template.metadata.labels.team: vision"},
				keeps:   []string{"Job resnet-worker-H: new hash"},
				vet:     slices.Concat([]string{"note: "}, resnetChanged), check: resnetChanged,
			},
			{
				text:    "labels: [{pairs: {team: vision}, includeSelectors: true}]\n",
				changes: []string{"NetworkPolicy bert-worker: spec.podSelector.matchLabels.team: vision"},
				keeps:   []string{"JobSet bert-H: spec"},
				vet:     []string{"the selector matches the labels of no pod"},
				check:   append([]string{"the selector matches the labels of no pod"}, resnetChanged...),
			},
		},
	},
	{
		"`replicas`", "base or beside", "`spec.workers.replicas`, with the configuration of `tegen init`", "follow",
		"without it, kustomize fails",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text: "replicas: [{name: resnet, count: 5}]\n", configured: true,
				changes: []string{"Job resnet-worker-H: spec.parallelism: 5"},
			},
			{
				text: "replicas: [{name: resnet, count: " +
					"5}]\n", fails: unmatchedReplicas, vet: []string{unmatchedReplicas},
			},
		},
	},
	{
		"`replicas`", "above", "it is rendered already", "Deployments and StatefulSets change, so do not " +
			"name the companion or etcd of a job: its members have a fixed list of each other",
		"for the name of a job, kustomize or `vet --overlay` fails",
		[]string{above},
		[]kustomizeRun{
			{
				text: "replicas: [{name: resnet-etcd, count: 5}]\n", changes: []string{
					"StatefulSet resnet-etcd: spec.replicas: 5",
				},
			},
			{
				text: "replicas: [{name: resnet, count: " +
					"5}]\n", fails: unmatchedReplicas, vet: []string{unmatchedReplicas},
			},
		},
	},
	{
		"`patches`", "base or beside", "changes as patched", "follow; a patch of a rendered object has no target yet",
		"`vet --overlay` fails for a target that selects nothing",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text:    onJob("{op: replace, path: /spec/image, value: 'example.org/train:2.0'}"),
				changes: []string{"Job resnet-worker-H: new hash"}, keeps: []string{"JobSet"},
			},
			{
				text:  onRendered("{op: replace, path: /spec/template/spec/containers/0/image, value: 'a:2'}"),
				keeps: []string{"Job", "JobSet"},
				vet:   []string{"patches[0]: nothing matches its target (kind: Job), so it changes nothing: "},
			},
		},
	},
	{
		"`patches`", "above", "no effect", "change as patched; a pod template under the old hashed name",
		"`vet --overlay` fails for a TrainingJob and notes a changed template, for which `check` fails",
		[]string{above},
		[]kustomizeRun{
			{
				text:  onJob("{op: replace, path: /spec/image, value: 'example.org/train:2.0'}"),
				keeps: []string{"Job", "JobSet"},
				vet: []string{
					"patches[0]: nothing matches", "tegen has rendered the TrainingJobs in a kustomization below",
				},
			},
			{
				text: "patches: [{patch: '{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, metadata: {name: " +
					"resnet, " +
					"namespace: ml}, spec: {image: \"a:2\"}}'}]\n",
				keeps: []string{"Job", "JobSet"},
				vet:   []string{"TrainingJob.v1alpha1.tegen.dev/resnet.ml"},
			},
			{
				text:    onRendered("{op: replace, path: /spec/template/spec/containers/0/image, value: 'a:2'}"),
				changes: []string{"Job resnet-worker-H: spec.template.spec.containers[0].image: a:2"},
				keeps:   []string{"Job resnet-worker-H: new hash"},
				vet:     slices.Concat([]string{"note: "}, resnetChanged), check: resnetChanged,
			},
			{
				text:    onRendered("{op: replace, path: /spec/parallelism, value: 1}"),
				changes: []string{"Job resnet-worker-H: spec.parallelism: 1"},
			},
		},
	},
	{
		"`replacements`", "base or beside", "its fields, as targets and as sources", "follow; one of a rendered " +
			"object " +
			"has no target yet",
		"`vet --overlay` fails for a target that selects nothing",
		[]string{inBase, beside},
		[]kustomizeRun{
			{
				text:    replaced("{select: {kind: TrainingJob, name: resnet}, fieldPaths: [spec.command.1]}"),
				changes: []string{"Job resnet-worker-H: new hash", "command[3]: b"}, keeps: []string{"JobSet"},
			},
			{
				text:  replaced("{select: {kind: Job}, fieldPaths: [spec.template.spec.containers.0.image]}"),
				keeps: []string{"Job", "JobSet"},
				vet:   []string{"replacements[0]: nothing matches its target (kind: Job), so it changes nothing: "},
			},
		},
	},
	{
		"`replacements`", "above", "no effect", "change as written; a pod template under the old hashed name",
		"`vet --overlay` fails for a TrainingJob and notes a changed template, for which `check` fails",
		[]string{above},
		[]kustomizeRun{
			{
				text:  replaced("{select: {kind: TrainingJob, name: resnet}, fieldPaths: [spec.command.1]}"),
				keeps: []string{"Job", "JobSet"},
				vet: []string{
					"replacements[0]: nothing matches", "tegen has rendered the TrainingJobs in a kustomization below",
				},
			},
			{
				text:    replaced("{select: {kind: Job}, fieldPaths: [spec.template.spec.containers.0.image]}"),
				changes: []string{"Job resnet-worker-H: spec.template.spec.containers[0].image: b"},
				keeps:   []string{"Job resnet-worker-H: new hash"},
				vet:     slices.Concat([]string{"note: "}, resnetChanged), check: resnetChanged,
			},
		},
	},
}
