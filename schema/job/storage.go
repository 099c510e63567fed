package job

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/structural"
)

// SaveHook names the script of a preStop hook that has checkpoints written.
const SaveHook = "save"

// afterSave is what a pod needs beyond its checkpoint: as much as torchrun leaves its processes to end.
const afterSave = 30 * time.Second

// Agent is a word of the command line by which a worker's launcher is found among its processes, "" where the program
// is the container's first process.
func (s *Spec) Agent() string {
	switch l := s.Launch(); {
	case s.Framework != FrameworkTorchelastic:
		return ""
	case l != nil && l.Program != "":
		return l.Program
	case s.Torchrun():
		return LauncherTorchrun
	}
	return ""
}

// GraceToSave gives a pod the time that its checkpoint takes, where nobody says how long it has.
func (s *Spec) GraceToSave(root *structural.Node) {
	if c := s.Checkpoint; c != nil && c.Save != nil && !root.IsSet("spec.gracePeriod") {
		s.GracePeriod = metav1.Duration{Duration: c.Save.Takes.Duration + afterSave}
	}
}

// Code mirrors #Code.
type Code struct {
	MountPath string `json:"mountPath"`
	Git       *Git   `json:"git,omitempty"`
	Image     string `json:"image,omitempty"`
}

// Git mirrors #Code.git.
type Git struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref,omitempty"`
	Secret     string `json:"secret,omitempty"`
	Size       Amount `json:"size"`
}

// SSH says whether the repository is reached by ssh, and not by https.
func (g *Git) SSH() bool { return !strings.HasPrefix(g.Repository, "https://") }

// Port is that of the repository's host.
func (g *Git) Port() int32 {
	if _, rest, ok := strings.Cut(g.Repository, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if n, err := strconv.ParseInt(host[strings.LastIndex(host, ":")+1:], 10, 32); err == nil {
			return int32(n)
		}
	}
	if g.SSH() {
		return 22
	}
	return 443
}

// The stores of datasets that are no web servers.
const (
	s3Scheme  = "s3://"
	hubScheme = "hf://"
)

// FromS3 says whether a dataset is in a bucket.
func (d *Dataset) FromS3() bool { return strings.HasPrefix(d.URL, s3Scheme) }

// FromHub says whether a dataset is a repository on the Hugging Face Hub.
func (d *Dataset) FromHub() bool { return strings.HasPrefix(d.URL, hubScheme) }

// Tree says whether a dataset is many files, which are fetched one by one and never unpacked.
func (d *Dataset) Tree() bool { return d.FromHub() || d.FromS3() && strings.HasSuffix(d.URL, "/") }

// Repository is a repository of the Hub: its kind, as huggingface_hub calls it, its name, and a revision or "".
func (d *Dataset) Repository() (kind, name, revision string) {
	name, revision, _ = strings.Cut(strings.TrimPrefix(d.URL, hubScheme), "@")
	if rest, ok := strings.CutPrefix(name, "datasets/"); ok {
		return "dataset", rest, revision
	}
	return "model", name, revision
}

// KeysOf are the keys of the Secret of a dataset, which are the variables of who fetches it.
func (d *Dataset) KeysOf() []string {
	switch {
	case d.FromS3():
		return []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	case d.FromHub():
		return []string{"HF_TOKEN"}
	}
	return nil
}

// Printed is the local disk of what a store prints, and of the log that it writes before its data.
const Printed = "1Gi"

// EtcdDisk is the local disk that a member of the rendered etcd needs: for its database with its log and snapshots, or
// only for what it prints.
func (s *Spec) EtcdDisk() resource.Quantity {
	disk, e := resource.MustParse(Printed), &s.Rendezvous.Etcd
	if e.Storage == nil {
		disk.Add(e.Quota)
	}
	return disk
}

// CompanionDisk is the local disk that a pod of the companion needs: for its store with its log and snapshots, or only
// for what it prints.
func (s *Spec) CompanionDisk() resource.Quantity {
	disk := resource.MustParse(Printed)
	if !s.StoresInCompanion() {
		return disk
	}
	// The store's file, of which there are two for as long as one is written anew, and its log; the file's limit is the
	// memory, and at least 512Mi. 14,000 swaps of 43 kB took 168 MiB of disk and 280 MiB of memory at most
	// (rendezvous/bench/README.md).
	twice := s.CompanionMemory()
	if twice.Add(s.CompanionMemory()); disk.Cmp(twice) < 0 {
		return twice
	}
	return disk
}

// StoresInCompanion says whether a companion writes a store to the disk of its pod.
func (s *Spec) StoresInCompanion() bool {
	z := &s.Rendezvous
	return z.Store == StoreCompanion && z.Backend != BackendC10d && z.Companion.Etcd == nil &&
		z.Companion.Storage == nil
}

// UsualCompanionMemory is the default of roles.companion.resources.memory in defaults.cue.
const UsualCompanionMemory = "512Mi"

// CompanionMemory is the memory that a companion may have; where its author wants no limit, what it asks for or the
// usual one, whichever is more.
func (s *Spec) CompanionMemory() resource.Quantity {
	own := &s.Roles.Companion.Resources
	if limit := own.MemoryLimit(); limit != nil {
		return *limit
	}
	memory := resource.MustParse(UsualCompanionMemory)
	if asked := own.Amount(own.Requests, ResourceMemory); asked != nil && asked.Cmp(memory) > 0 {
		return *asked
	}
	return memory
}

// ClaimName returns the name of the PersistentVolumeClaim that a volume is mounted through, "" for scratch space.
func (s *Storage) ClaimName(j *Job) string {
	own := ""
	switch {
	case s.EmptyDir != nil:
		return ""
	case s.Claim != "":
		return s.Claim
	case s.Dynamic != nil:
		own = s.Dynamic.Claim
	case s.EFS != nil:
		own = s.EFS.Claim
	case s.FSx != nil:
		own = s.FSx.Claim
	case s.NFS != nil:
		own = s.NFS.Claim
	case s.HostPath != nil:
		own = s.HostPath.Claim
	}
	if own != "" {
		return own
	}
	return j.Metadata.Name + "-" + s.Name
}

// CheckpointVolume is the volume that holds spec.checkpoint.path, nil where none does.
func (s *Spec) CheckpointVolume() (on *Storage) {
	if s.Checkpoint == nil {
		return nil
	}
	dir := path.Clean(s.Checkpoint.Path)
	for i := range s.Storage {
		v := &s.Storage[i]
		mount := path.Clean(v.MountPath)
		if (dir == mount || strings.HasPrefix(dir, mount+"/")) &&
			(on == nil || len(mount) > len(path.Clean(on.MountPath))) {
			on = v
		}
	}
	return on
}

// Directory is a volume's directory that somebody has to make, in words, with another way; "" where a driver makes it.
func (v *Storage) Directory() (where, otherwise string) {
	switch {
	case v.EFS != nil && v.EFS.AccessPoint == "" && v.EFS.Provision == nil:
		where = fmt.Sprintf("%s of %s", path.Join("/", v.EFS.Path), v.EFS.FileSystem)
		return where, "; efs.provision: {} in place of path and volume has a directory made"
	case v.NFS != nil:
		return fmt.Sprintf("%s of %s", v.NFS.Path, v.NFS.Server), ""
	case v.HostPath != nil:
		return v.HostPath.Path + " of the node", "; where it is missing the kubelet makes it, for root"
	}
	return "", ""
}

// User is whom the pods run as, in words.
func (s *Spec) User() string {
	if s.Security.RunAsUser.Number == nil {
		return "the image's user"
	}
	return fmt.Sprintf("user %d", *s.Security.RunAsUser.Number)
}

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
