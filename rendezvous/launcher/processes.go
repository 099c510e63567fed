package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// mostProcesses is far more than machines have use for. Each is a process with files and pipes of its own, and one zero
// too many would take the machine down.
const mostProcesses = 1024

// parseProcesses reads --nproc-per-node.
func parseProcesses(text string, lookup func(string) (string, bool)) (int, error) {
	switch text {
	case "cpu":
		return runtime.GOMAXPROCS(0), nil // of the container, where torchrun counts those of the host
	case "gpu":
		n := accelerators("/dev", lookup)
		if n == 0 {
			return 0, fmt.Errorf("gpu: no NVIDIA or AMD accelerator is visible on this machine")
		}
		return n, nil
	case "auto":
		if n := accelerators("/dev", lookup); n > 0 {
			return n, nil
		}
		return runtime.GOMAXPROCS(0), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is neither a number above 0 nor one of auto, gpu, cpu", text)
	}
	if n > mostProcesses {
		return 0, fmt.Errorf("%d is above %d, the most on one machine", n, mostProcesses)
	}
	return n, nil
}

// accelerators counts what a program with CUDA or ROCm would see: the device files that a container is given, or fewer
// where a variable says so.
func accelerators(dev string, lookup func(string) (string, bool)) int {
	n, variables := 0, []string{"CUDA_VISIBLE_DEVICES"}
	if found, _ := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*")); len(found) > 0 {
		n = len(found)
	} else if _, err := os.Stat(filepath.Join(dev, "kfd")); err == nil {
		found, _ := filepath.Glob(filepath.Join(dev, "dri", "renderD*"))
		n, variables = len(found), []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}
	}
	for _, name := range variables {
		if list, ok := lookup(name); ok {
			n = min(n, visible(list, n))
		}
	}
	return n
}

// visible counts the devices of a list that a driver would take: it stops at the first that does not exist
// (CUDA C programming guide, CUDA environment variables).
func visible(list string, present int) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		i, err := strconv.Atoi(part)
		if part == "" || err == nil && (i < 0 || i >= present) {
			return n
		}
		n++ // a number, or the name of a device or a part of one
	}
	return n
}
