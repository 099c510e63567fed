package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storageClass is called as kind's own is, which the kind overlay names.
const storageClass = "standard"

// startStorage makes a folder of this machine for every claim of the storage class, from now on. Like kind's
// provisioner it makes folders of mode 0777 (the setup script of rancher/local-path-provisioner), which no network file
// system need do. Unlike that one it serves every access mode, on all nodes, and before a pod asks: claims of
// ReadWriteMany stand for those of a network file system.
func (l *lab) startStorage(ctx context.Context) error {
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: storageClass},
		Provisioner: "tegen.dev/directory",
	}
	if _, err := l.cluster.Client().StorageV1().StorageClasses().Create(ctx, class,
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the storage class: %w", err)
	}
	go func() {
		for ctx.Err() == nil {
			if err := l.provision(ctx); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(l.progress, "providing volumes: %v\n", err)
			}
			time.Sleep(pollInterval)
		}
	}()
	return nil
}

// provision makes a volume for every claim that waits for one, and removes those whose claim is gone.
func (l *lab) provision(ctx context.Context) error {
	core := l.cluster.Client().CoreV1()
	claims, err := core.PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, claim := range claims.Items {
		class := claim.Spec.StorageClassName
		if class == nil || *class != storageClass || claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		volume, err := l.volume(&claim)
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
		if volume.Status.Phase != corev1.VolumeReleased || volume.Spec.HostPath == nil {
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

// volume is a new folder, bound to a claim. All nodes see it, and any user may write: nobody changes the owner of a
// folder of the node for a pod's fsGroup.
func (l *lab) volume(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	name := "claim-" + string(claim.UID)
	dir := filepath.Join(l.spec.Dir, "volumes", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			StorageClassName:              storageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, // provision deletes it
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
