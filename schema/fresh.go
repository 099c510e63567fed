package schema

import (
	"fmt"
	"path"
	"strings"
)

// checkpointVolume is the volume that holds spec.checkpoint.path, nil where none does.
func (s *Spec) checkpointVolume() (on *Storage) {
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

// directoryNotes say of each volume that the job writes to what nobody does for it: its directory belongs to whoever
// made it, and on a fresh one that is root.
func (s *Spec) directoryNotes() (notes []string) {
	if s.Security.RunAsUser.Is(0) {
		return nil
	}
	checkpoints := s.checkpointVolume()
	for i := range s.Storage {
		v := &s.Storage[i]
		writes := "the dataset cannot be fetched"
		if v.Dataset == nil {
			writes = "no checkpoint can be written"
		}
		where, otherwise := v.directory()
		if where == "" || v.Dataset == nil && v != checkpoints {
			continue
		}
		notes = append(notes, fmt.Sprintf("spec.storage[%d]: %s must exist and be writable for %s, or %s%s",
			i, where, s.user(), writes, otherwise))
	}
	return notes
}

// directory is a volume's directory that somebody has to make, in words, with another way; "" where a driver makes it.
func (v *Storage) directory() (where, otherwise string) {
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

// user is whom the pods run as, in words.
func (s *Spec) user() string {
	if s.Security.RunAsUser.Number == nil {
		return "the image's user"
	}
	return fmt.Sprintf("user %d", *s.Security.RunAsUser.Number)
}
