package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupHierarchies are the folders that groups are made in: one for each controller with version 1, one with version
// 2.
func cgroupHierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var all []string
	for _, entry := range entries {
		dir := filepath.Join(cgroupMount, entry.Name())
		// Links name controllers that share a hierarchy.
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && entry.IsDir() {
			all = append(all, dir)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("looking for cgroups: none in %s", cgroupMount)
	}
	return all, nil
}

// makeCgroup makes a group, such as /tegen-lab-17/n1, in every hierarchy, with the CPUs of its parent.
func makeCgroup(group string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		dir := hierarchy
		for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
			parent := dir
			dir = filepath.Join(parent, part)
			if err := delegate(parent); err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("making a cgroup: %w", err)
			}
			// A new group of version 1 has none, and nothing can run in it.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				if err := inherit(parent, dir, file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// delegate lets the children of a group of version 2 have the controllers that a kubelet wants. Those of the root stay
// so.
func delegate(dir string) error {
	control := filepath.Join(dir, "cgroup.subtree_control")
	can, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // version 1
	}
	has, err2 := os.ReadFile(control)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	for _, controller := range []string{"cpu", "cpuset", "hugetlb", "memory", "pids"} {
		// Beside version 1, whose hierarchies have the controllers, version 2 has none to give.
		if !slices.Contains(strings.Fields(string(can)), controller) ||
			slices.Contains(strings.Fields(string(has)), controller) {
			continue
		}
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("giving cgroups the controller %s (in a container, processes in %s prevent it): %w",
				controller, dir, err)
		}
	}
	return nil
}

func inherit(parent, dir, file string) error {
	own, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil || len(bytes.TrimSpace(own)) > 0 {
		return nil // another controller's hierarchy, or it is set
	}
	value, err := os.ReadFile(filepath.Join(parent, file))
	if err != nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil && len(bytes.TrimSpace(value)) > 0 {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	return nil
}

// removeCgroup removes a group and those below it, and waits some seconds for their processes to be gone.
func removeCgroup(group string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	var errs []error
	deadline := time.Now().Add(10 * time.Second)
	for _, hierarchy := range hierarchies {
		for {
			err := removeTree(filepath.Join(hierarchy, group))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				errs = append(errs, fmt.Errorf("removing a cgroup: %w", err))
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return errors.Join(errs...)
}

// removeTree removes a folder of cgroups from below: their files go with them and cannot be removed.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}
