package generators_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// TestKeptBesideOptions: what an author tells Argo CD of every object stays, but where it says otherwise of what keeps
// the data.
func TestKeptBesideOptions(t *testing.T) {
	for authors, want := range map[string]string{
		"":               "Prune=false,Delete=false",
		"Validate=false": "Validate=false,Prune=false,Delete=false",
		"Prune=false":    "Prune=false,Delete=false",
		"Prune=true, Validate=false , Delete=confirm,": "Validate=false,Prune=false,Delete=false",
		"PruneLast=true": "PruneLast=true,Prune=false,Delete=false",
	} {
		j := load(t, jobText("storage: [{mountPath: /data}]"))
		j.Metadata.Annotations = map[string]string{
			"argocd.argoproj.io/sync-options":    authors,
			"argocd.argoproj.io/compare-options": "ServerSideDiff=true, IgnoreExtraneous",
			"kustomize.toolkit.fluxcd.io/prune":  "enabled",
			"team":                               "vision",
		}
		got := find[*corev1.PersistentVolumeClaim](t, objects(j), "resnet-data").Annotations
		for key, want := range map[string]string{
			"argocd.argoproj.io/sync-options":    want,
			"argocd.argoproj.io/compare-options": "ServerSideDiff=true,IgnoreExtraneous",
			"kustomize.toolkit.fluxcd.io/prune":  "disabled",
			"team":                               "vision",
		} {
			if got[key] != want {
				t.Errorf("with %q: %s is %q, want %q", authors, key, got[key], want)
			}
		}
		service := find[*corev1.Service](t, objects(j), "resnet-worker").Annotations
		if service["argocd.argoproj.io/sync-options"] != authors {
			t.Errorf("the Service has options %v, not its author's %q", service, authors)
		}
	}
}

// TestReclaim: what a driver has provisioned goes with a claim that goes with its job, or it would be paid for unseen;
// files that were there before the job never do.
func TestReclaim(t *testing.T) {
	const efs = "efs: {fileSystem: fs-0123456789abcdef0, provision: {}}"
	const nfs = "nfs: {server: nfs.example.com, path: /x}"
	for onDelete, want := range map[string]corev1.PersistentVolumeReclaimPolicy{
		"retain": corev1.PersistentVolumeReclaimRetain, "delete": corev1.PersistentVolumeReclaimDelete,
	} {
		objs := objects(load(t, jobText("storage: [{name: a, mountPath: /a, "+efs+", onDelete: "+onDelete+
			"}, {name: b, mountPath: /b, "+nfs+", onDelete: "+onDelete+"}]")))
		if got := find[*storagev1.StorageClass](t, objs, "ml-resnet-a").ReclaimPolicy; got == nil || *got != want {
			t.Errorf("%s: the class has the policy %v, want %s", onDelete, got, want)
		}
		got := find[*corev1.PersistentVolume](t, objs, "ml-resnet-b").Spec.PersistentVolumeReclaimPolicy
		if got != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("%s: an export of NFS has the policy %s", onDelete, got)
		}
	}
}
