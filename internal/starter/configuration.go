package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// imageFields are the images of a job, as a configuration of kustomize names them. It finds those of podTemplate
// itself.
var imageFields = []string{
	"spec/image", "spec/sidecars/image", "spec/code/image", "spec/groups/image", "spec/roles/server/image",
	"spec/roles/scheduler/image", "spec/roles/launcher/image", "spec/images/etcd", "spec/images/etcdV2",
	"spec/images/fetch", "spec/images/aws", "spec/images/git", "spec/images/kubectl", "spec/images/rendezvous",
}

// reference is what pods name, and the fields of a pod's spec that name it.
type reference struct {
	Kind   string
	Fields []string
}

// references are those that kustomize knows in the pods of Kubernetes' own workloads.
var references = []reference{
	{"ConfigMap", []string{
		"volumes/configMap/name", "volumes/projected/sources/configMap/name",
		"containers/env/valueFrom/configMapKeyRef/name", "containers/envFrom/configMapRef/name",
		"initContainers/env/valueFrom/configMapKeyRef/name", "initContainers/envFrom/configMapRef/name",
	}},
	{"Secret", []string{
		"volumes/secret/secretName", "volumes/projected/sources/secret/name",
		"containers/env/valueFrom/secretKeyRef/name", "containers/envFrom/secretRef/name",
		"initContainers/env/valueFrom/secretKeyRef/name", "initContainers/envFrom/secretRef/name",
		"imagePullSecrets/name",
	}},
	{"ServiceAccount", []string{"serviceAccountName"}},
	{"PersistentVolumeClaim", []string{"volumes/persistentVolumeClaim/claimName"}},
}

// podSpec is where a custom resource has the spec of its pods.
type podSpec struct{ Kind, Group, Path string }

var index = lazy.Regexp(`\[\d*\]`)

// podSpecs are those of the custom resources that a job becomes.
func podSpecs(job []byte) (all []podSpec, err error) {
	jobs, err := schema.Load([]schema.Source{{Name: JobFile, Data: job}})
	if err != nil {
		return nil, fmt.Errorf("reading the job: %w", err)
	}
	for _, concern := range generators.Generate(jobs[0]) {
		for _, obj := range concern.Objects {
			gvk, err := manifest.GVK(obj)
			if err != nil {
				return nil, fmt.Errorf("reading the job: %w", err)
			}
			w := apis.WorkloadOf(obj)
			custom := slices.ContainsFunc(apis.Kinds, func(k apis.Kind) bool { return k.GroupVersionKind == gvk })
			if w == nil || !custom {
				continue
			}
			for _, set := range w.PodSets() {
				if !set.Foreign {
					path := strings.ReplaceAll(index().ReplaceAllString(set.Path, ""), ".", "/") + "/spec"
					all = append(all, podSpec{gvk.Kind, gvk.Group, path})
				}
			}
		}
	}
	return all, nil
}
