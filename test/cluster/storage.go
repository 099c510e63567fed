package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageClass is called as kind's own is, which the kind overlay names.
const StorageClass = "standard"

// storageInterval is how often claims are looked for.
const storageInterval = 500 * time.Millisecond

// provisioner marks the volumes that StartStorage makes: the controller-manager leaves their deletion to it.
const (
	provisioner   = "tegen.dev/directory"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// StartStorage makes a folder below dir for every claim of the storage class, from now on until the context ends. Like
// kind's provisioner it makes folders of mode 0777 (the setup script of rancher/local-path-provisioner), which no
// network file system need do, and removes them with their claim, as its reclaim policy Delete says. Unlike that one it
// serves every access mode, on all nodes, and before a pod asks: claims of ReadWriteMany stand for those of a network
// file system.
func (c *Cluster) StartStorage(ctx context.Context, dir string, progress io.Writer) error {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: StorageClass}, Provisioner: provisioner}
	if _, err := c.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the storage class: %w", err)
	}
	go func() {
		for ctx.Err() == nil {
			if err := c.provision(ctx, dir); err != nil && ctx.Err() == nil {
				say(progress, "providing volumes: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(storageInterval):
			}
		}
	}()
	return nil
}

// provision makes a volume for every claim that waits for one, and removes those whose claim is gone.
func (c *Cluster) provision(ctx context.Context, dir string) error {
	core := c.client.CoreV1()
	claims, err := core.PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, claim := range claims.Items {
		class := claim.Spec.StorageClassName
		if class == nil || *class != StorageClass || claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		volume, err := newVolume(dir, &claim)
		if err != nil {
			return err
		}
		_, err = core.PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	volumes, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, volume := range volumes.Items {
		if volume.Status.Phase != corev1.VolumeReleased || volume.Annotations[provisionedBy] != provisioner ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
			return err
		}
		if err := core.PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// newVolume is a new folder, bound to a claim. All nodes see it, and any user may write: nobody changes the owner of a
// folder of the node for a pod's fsGroup.
func newVolume(parent string, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	name := "claim-" + string(claim.UID)
	dir := filepath.Join(parent, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			StorageClassName:              StorageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: dir},
			},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID,
			},
		},
	}, nil
}
