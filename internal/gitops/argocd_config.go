package gitops

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// ArgoCDConfig returns the part of argocd-cm that shows jobs as they are. Applied by the server's side it leaves all
// other keys to whoever wrote them. Namespace is that of Argo CD; suspended is the health of a suspended job.
func ArgoCDConfig(namespace, suspended string) []runtime.Object {
	data := map[string]string{}
	for _, r := range apis.Rules(suspended) {
		data[r.Key] = r.Lua
	}
	return []runtime.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "argocd-cm", Namespace: namespace,
			Labels: map[string]string{ // by which Argo CD finds it
				"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd",
			},
		},
		Data: data,
	}}
}

// CheckConfig returns every mistake in what ArgoCDConfig and PluginConfig take, a line each. Without an image there is
// no plugin.
func CheckConfig(namespace, suspended, image string) error {
	var errs []error
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--namespace: must be the namespace of Argo CD, such as argocd, not %q",
			namespace))
	}
	if suspended != apis.Suspended && suspended != apis.Healthy {
		errs = append(errs, fmt.Errorf("--suspended: must be %s or %s, not %q: the health that a suspended job is "+
			"shown with", apis.Suspended, apis.Healthy, suspended))
	}
	if image != "" {
		if err := schema.CheckImage(image); err != nil {
			errs = append(errs, fmt.Errorf("--plugin-image: %w", err))
		}
	}
	return errors.Join(errs...)
}

// The plugin that renders jobs in Argo CD's repo-server.
const (
	pluginName = "tegen"
	pluginTmp  = "tegen-tmp"

	// JobVariable and OverlayVariable are what an Application says to the plugin, which finds them behind
	// PluginPrefix.
	JobVariable     = "TEGEN_JOB"
	OverlayVariable = "TEGEN_OVERLAY"
	PluginPrefix    = "ARGOCD_ENV_"
)

// rendering is the source of a job that the plugin renders. Its path is the root, since the overlay is not beside the
// job.
func (a ArgoCD) rendering() applicationSource {
	env := []envVar{{JobVariable, a.jobFile()}}
	if a.Overlay != "" {
		env = append(env, envVar{OverlayVariable, a.Overlay})
	}
	return applicationSource{Path: ".", Plugin: &pluginOfSource{Name: pluginName, Env: env}}
}

// jobFile is the path of a job's file, which at the root of a repository has no folder.
func (a ArgoCD) jobFile() string {
	if a.Path == "." {
		return "{{.path.filename}}"
	}
	return "{{.path.path}}/{{.path.filename}}"
}

// PluginConfig returns the plugin's container in Argo CD's repo-server: a part of that Deployment, to be applied by the
// server's side or as a patch. The image brings the plugin's configuration along. Argo CD asks for the user 999 and for
// the two volumes that its own containers have.
func PluginConfig(namespace, image string) []runtime.Object {
	type object = map[string]any
	container := object{
		"name": pluginName, "image": image,
		"command": []any{"/var/run/argocd/argocd-cmp-server"}, // which an init container of Argo CD puts there
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": int64(999), "readOnlyRootFilesystem": true,
			"allowPrivilegeEscalation": false, "capabilities": object{"drop": []any{"ALL"}},
			"seccompProfile": object{"type": "RuntimeDefault"},
		},
		"resources": object{
			"requests": object{"cpu": "100m", "memory": "128Mi"}, "limits": object{"memory": "512Mi"},
		},
		"volumeMounts": []any{
			object{"name": "var-files", "mountPath": "/var/run/argocd"},
			object{"name": "plugins", "mountPath": "/home/argocd/cmp-server/plugins"},
			object{"name": pluginTmp, "mountPath": "/tmp"}, // not that of repo-server, which holds other repositories
		},
	}
	return []runtime.Object{
		&unstructured.Unstructured{Object: object{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": object{"name": "argocd-repo-server", "namespace": namespace},
			"spec": object{"template": object{"spec": object{
				"containers": []any{container},
				"volumes":    []any{object{"name": pluginTmp, "emptyDir": object{}}},
			}}},
		}},
	}
}
