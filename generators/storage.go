package generators

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

const (
	efsDriver = "efs.csi.aws.com"
	fsxDriver = "fsx.csi.aws.com"
)

func storage(j *job.Job) []runtime.Object {
	var out []runtime.Object
	done := map[string]bool{} // one claim may be mounted twice
	for i := range j.Spec.Storage {
		v := &j.Spec.Storage[i]
		claim := v.ClaimName(j)
		if done[claim] {
			continue
		}
		done[claim] = true
		out = append(out, volume(j, v, claim)...)
	}
	return out
}

// volume returns what makes a claim exist: nothing for scratch space and for a claim that exists.
func volume(j *job.Job, v *job.Storage, claim string) []runtime.Object {
	switch {
	case v.Dynamic != nil:
		d := v.Dynamic
		pvc := persistentVolumeClaim(j, v, claim, d.Size)
		pvc.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(d.AccessMode)}
		if d.StorageClass != "" {
			pvc.Spec.StorageClassName = &d.StorageClass
		}
		return []runtime.Object{pvc}
	case v.EFS != nil && v.EFS.Provision != nil:
		return provisioned(j, v, claim, v.EFS.Size, efsClass(v.EFS))
	case v.FSx != nil && v.FSx.Provision != nil:
		return provisioned(j, v, claim, v.FSx.Size, fsxClass(v.FSx.Provision))
	case v.EFS != nil:
		return pinned(j, v, claim, v.EFS.Volume, v.EFS.Size,
			corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:       efsDriver,
				VolumeHandle: efsHandle(v.EFS),
			}})
	case v.FSx != nil:
		return pinned(j, v, claim, v.FSx.Volume, v.FSx.Size,
			corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           fsxDriver,
				VolumeHandle:     v.FSx.FileSystem,
				VolumeAttributes: map[string]string{"dnsname": v.FSx.DNSName, "mountname": v.FSx.MountName},
			}}, "flock") // Lustre refuses file locks without it
	case v.NFS != nil:
		return pinned(j, v, claim, v.NFS.Volume, v.NFS.Size,
			corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: v.NFS.Server, Path: v.NFS.Path}})
	case v.HostPath != nil:
		return pinned(j, v, claim, v.HostPath.Volume, v.HostPath.Size,
			corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: v.HostPath.Path,
				Type: ptr(corev1.HostPathDirectoryOrCreate),
			}})
	}
	return nil
}

// efsHandle is file system[:path[:access point]], the form that every version of the driver reads.
func efsHandle(e *job.EFS) string {
	switch {
	case e.AccessPoint != "":
		return e.FileSystem + ":" + e.Path + ":" + e.AccessPoint
	case e.Path != "" && e.Path != "/":
		return e.FileSystem + ":" + e.Path
	}
	return e.FileSystem
}

// pinned is a volume and its claim, each naming the other: without that, claims and volumes of one class bind as they
// please. It is mounted through a claim because restricted pods may mount nothing else.
func pinned(j *job.Job, v *job.Storage, claim, name string, size resource.Quantity,
	source corev1.PersistentVolumeSource, mountOptions ...string,
) []runtime.Object {
	if name == "" {
		name = clusterName(j, claim)
	}
	pvc := persistentVolumeClaim(j, v, claim, size)
	pvc.Spec.VolumeName = name
	pvc.Spec.StorageClassName = ptr("") // no provisioner may touch it
	return []runtime.Object{
		&corev1.PersistentVolume{
			ObjectMeta: volumeMeta(j, v, clusterMeta(j, name, componentStorage)),
			Spec: corev1.PersistentVolumeSpec{
				Capacity:    corev1.ResourceList{corev1.ResourceStorage: size},
				AccessModes: pvc.Spec.AccessModes,
				// The files were there before the job, and no driver could delete them.
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				VolumeMode:                    ptr(corev1.PersistentVolumeFilesystem),
				MountOptions:                  mountOptions,
				ClaimRef: &corev1.ObjectReference{
					APIVersion: "v1",
					Kind:       "PersistentVolumeClaim",
					Namespace:  j.Metadata.Namespace,
					Name:       claim,
				},
				PersistentVolumeSource: source,
			},
		},
		pvc,
	}
}

// clusterName names what belongs to a claim but has no namespace itself. Claims may be as long as such names can be, so
// the longest are cut, and a hash distinguishes them.
func clusterName(j *job.Job, claim string) string {
	const longest = 253
	name := j.Metadata.Namespace + "-" + claim
	if len(name) <= longest {
		return name
	}
	hash := "-" + contentHash(name)
	return strings.TrimRight(name[:longest-len(hash)], "-.") + hash
}

// provisioned is a class of the job's own, since its parameters name one file system, and a claim of that class.
func provisioned(j *job.Job, v *job.Storage, claim string, size resource.Quantity,
	class *storagev1.StorageClass,
) []runtime.Object {
	class.ObjectMeta = volumeMeta(j, v, clusterMeta(j, clusterName(j, claim), componentStorage))
	class.ReclaimPolicy = ptr(corev1.PersistentVolumeReclaimRetain)
	if v.OnDelete == job.OnDeleteDelete {
		class.ReclaimPolicy = ptr(corev1.PersistentVolumeReclaimDelete) // or the file system would stay, and its price
	}
	pvc := persistentVolumeClaim(j, v, claim, size)
	pvc.Spec.StorageClassName = &class.Name
	return []runtime.Object{class, pvc}
}

func efsClass(e *job.EFS) *storagev1.StorageClass {
	parameters := map[string]string{
		"provisioningMode": "efs-ap",
		"fileSystemId":     e.FileSystem,
		"directoryPerms":   e.Provision.DirectoryPerms,
	}
	if e.Provision.BasePath != "" {
		parameters["basePath"] = e.Provision.BasePath
	}
	if e.Provision.GIDRangeStart != 0 {
		parameters["gidRangeStart"] = strconv.FormatInt(e.Provision.GIDRangeStart, 10)
		parameters["gidRangeEnd"] = strconv.FormatInt(e.Provision.GIDRangeEnd, 10)
	}
	return &storagev1.StorageClass{Provisioner: efsDriver, Parameters: parameters}
}

func fsxClass(p *job.FSxProvision) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		Provisioner: fsxDriver,
		Parameters: map[string]string{
			"subnetId":         p.Subnet,
			"securityGroupIds": strings.Join(p.SecurityGroups, ","),
			"deploymentType":   p.DeploymentType,
		},
		MountOptions: []string{"flock"},
	}
}

// volumeMeta is the metadata of a part of a volume: the volume outlives the job unless its author says otherwise.
func volumeMeta(j *job.Job, v *job.Storage, m metav1.ObjectMeta) metav1.ObjectMeta {
	if v.OnDelete == job.OnDeleteDelete {
		return m
	}
	return kept(j, m)
}

func persistentVolumeClaim(j *job.Job, v *job.Storage, name string,
	size resource.Quantity,
) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: volumeMeta(j, v, meta(j, name, componentStorage)),
		// Workers on several nodes read it at once.
		Spec: claimSpec(corev1.ReadWriteMany, size),
	}
}

func claimSpec(mode corev1.PersistentVolumeAccessMode, size resource.Quantity) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
	}
}
