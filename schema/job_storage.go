package schema

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Storage mirrors #Storage: a mount and its source.
type Storage struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	SubPath   string `json:"subPath,omitempty"`
	ReadOnly  bool   `json:"readOnly"`
	OnDelete  string `json:"onDelete"` // means nothing for a claim that exists and for scratch space
	VolumeSource
	Dataset *Dataset `json:"dataset,omitempty"`
}

// VolumeSource mirrors #Source: at most one field is set, and after Load exactly one.
type VolumeSource struct {
	Claim    string    `json:"claim,omitempty"`
	Dynamic  *Dynamic  `json:"dynamic,omitempty"`
	EFS      *EFS      `json:"efs,omitempty"`
	FSx      *FSx      `json:"fsx,omitempty"`
	NFS      *NFS      `json:"nfs,omitempty"`
	HostPath *HostPath `json:"hostPath,omitempty"`
	EmptyDir *EmptyDir `json:"emptyDir,omitempty"`
}

// Shared says whether every pod of the job sees the same files.
func (s *VolumeSource) Shared() bool { return s.EmptyDir == nil }

// Dynamic is a claim that the cluster provisions.
type Dynamic struct {
	Size         resource.Quantity `json:"size"`
	StorageClass string            `json:"storageClass,omitempty"`
	AccessMode   string            `json:"accessMode"`
	Claim        string            `json:"claim,omitempty"`
}

// EFS is an Amazon EFS file system.
type EFS struct {
	FileSystem  string            `json:"fileSystem"`
	AccessPoint string            `json:"accessPoint,omitempty"`
	Path        string            `json:"path,omitempty"`
	Claim       string            `json:"claim,omitempty"`
	Volume      string            `json:"volume,omitempty"`
	Size        resource.Quantity `json:"size"`
	Provision   *EFSProvision     `json:"provision,omitempty"`
}

// EFSProvision lets the driver make an access point for the claim.
type EFSProvision struct {
	DirectoryPerms string `json:"directoryPerms"`
	BasePath       string `json:"basePath,omitempty"`
	GIDRangeStart  int64  `json:"gidRangeStart,omitempty"`
	GIDRangeEnd    int64  `json:"gidRangeEnd,omitempty"`
}

// FSx is an Amazon FSx for Lustre file system.
type FSx struct {
	FileSystem string            `json:"fileSystem,omitempty"`
	DNSName    string            `json:"dnsName,omitempty"`
	MountName  string            `json:"mountName,omitempty"`
	Claim      string            `json:"claim,omitempty"`
	Volume     string            `json:"volume,omitempty"`
	Size       resource.Quantity `json:"size"`
	Provision  *FSxProvision     `json:"provision,omitempty"`
}

// FSxProvision lets the driver make the file system.
type FSxProvision struct {
	Subnet         string   `json:"subnet"`
	SecurityGroups []string `json:"securityGroups"`
	DeploymentType string   `json:"deploymentType"`
}

// NFS is an NFS export.
type NFS struct {
	Server string            `json:"server"`
	Path   string            `json:"path"`
	Claim  string            `json:"claim,omitempty"`
	Volume string            `json:"volume,omitempty"`
	Size   resource.Quantity `json:"size"`
}

// HostPath is a directory of the node.
type HostPath struct {
	Path   string            `json:"path"`
	Claim  string            `json:"claim,omitempty"`
	Volume string            `json:"volume,omitempty"`
	Size   resource.Quantity `json:"size"`
}

// EmptyDir is scratch space.
type EmptyDir struct {
	Size   *resource.Quantity `json:"size,omitempty"`
	Medium string             `json:"medium,omitempty"`
}

// Dataset mirrors #Dataset.
type Dataset struct {
	URL      string          `json:"url"`
	Secret   string          `json:"secret,omitempty"`
	Endpoint string          `json:"endpoint,omitempty"`
	Region   string          `json:"region,omitempty"`
	SHA256   string          `json:"sha256,omitempty"`
	Path     string          `json:"path,omitempty"`
	Unpack   bool            `json:"unpack"`
	Deadline metav1.Duration `json:"deadline"`
}
