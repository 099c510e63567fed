package image

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/images/layer"
)

func TestClosure(t *testing.T) {
	const list = "" +
		// name, version, name with architecture, architecture, dependencies, provided, status
		"torch\t1.13\ttorch\tamd64\t, libc6 (>= 2.36), blas | libblas.so.3, " +
		"python3:any\tpython3-torch-abi (= 1)\tinstalled\n" +
		"openblas\t0.3\topenblas:amd64\tamd64\tlibc6, docs\tlibblas.so.3\tinstalled\n" +
		"atlas\t3\tatlas:amd64\tamd64\tlibc6\tlibblas.so.3 (= 3)\tinstalled\n" +
		"blas\t3.11\tblas:amd64\tamd64\tlibc6\t\tconfig-files\n" +
		"libc6\t2.36\tlibc6:amd64\tamd64\tlibgcc\t\tinstalled\n" +
		"libc6\t2.35\tlibc6:i386\ti386\tlibgcc\t\tinstalled\n" +
		"libgcc\t12\tlibgcc:amd64\tamd64\tlibc6, gone\t\tinstalled\n" +
		"python3\t3.11\tpython3\tall\tdocs, libc6\t\tinstalled\n" +
		"docs\t1\tdocs\tall\treader\t\tinstalled\n" +
		"reader\t1\treader\tall\t\t\tinstalled\n" +
		"vim\t9\tvim\tamd64\tlibc6\t\tinstalled\n"
	records := parseRecords(list, "amd64")
	packages, err := closure(records, []string{"torch"}, map[string]bool{"docs": true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range packages {
		got = append(got, p.query+" "+p.version)
	}
	// Of two that provide the same, the first by name. Nothing that only a package needs that is left out.
	want := []string{"atlas:amd64 3", "libc6:amd64 2.36", "libgcc:amd64 12", "python3 3.11", "torch 1.13"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = closure(records, []string{"torch", "blas", "curl"}, nil)
	if err == nil || !strings.Contains(err.Error(), "blas, curl (test/node/setup.sh installs them)") {
		t.Errorf("packages that are not installed: %v", err)
	}
}

// A root folder as Debian lays it out: /bin is a link, libraries are chosen by alternatives, Python has compiled.
func TestCollect(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"/usr/bin/dash": "", "/usr/lib/blas/libblas.so.3": "", "/usr/lib/python3/x.py": "",
		"/usr/lib/python3/tests/y.py":                          "",
		"/usr/lib/python3/__pycache__/x.cpython-311.pyc":       "",
		"/usr/lib/python3/__pycache__/x.cpython-311.opt-1.pyc": "",
		"/usr/lib/python3/__pycache__/other.cpython-311.pyc":   "",
		"/usr/share/doc/dash/copyright":                        "", "/usr/share/openmpi/help.txt": "",
		"/usr/lib/libx.a": "",
		"/etc/secret":     "",
		// The mode, the link, then names and links; the empty line ends them.
		"/var/lib/dpkg/alternatives/libblas.so.3": "auto\n/usr/lib/libblas.so.3\n\n/usr/lib/blas/libblas.so.3\n10\n\n",
		"/var/lib/dpkg/alternatives/editor": "auto\n/usr/bin/editor\neditor.1.gz\n" +
			"/usr/share/man/editor.1.gz\n\n/bin/vim\n",
	} {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(root+"/etc/alternatives", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"/bin": "usr/bin", "/usr/bin/sh": "dash",
		"/etc/alternatives/libblas.so.3": "/usr/lib/blas/libblas.so.3",
		"/usr/lib/libblas.so.3":          "/etc/alternatives/libblas.so.3",
		"/etc/alternatives/editor":       "/bin/vim", "/usr/bin/editor": "/etc/alternatives/editor",
	} {
		if err := os.Symlink(target, root+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root+"/etc/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := collect(root, []string{
		"/.", "/bin", "/bin/dash", "/bin/sh", "/usr/lib/blas/libblas.so.3", "/usr/lib/python3/x.py",
		"/usr/lib/python3/tests/y.py",
		"/usr/share/doc/dash/copyright", "/usr/share/openmpi/help.txt", "/usr/lib/libx.a",
		"/etc/secret", "/usr/bin/gone", "/opt/gone/x",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		line := e.Path
		if e.Link != "" {
			line += " -> " + e.Link
		}
		if !e.Time.IsZero() {
			line += " keeps its time"
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := []string{
		"/bin -> usr/bin",
		"/etc", "/etc/alternatives", "/etc/alternatives/libblas.so.3 -> /usr/lib/blas/libblas.so.3",
		"/usr", "/usr/bin", "/usr/bin/dash keeps its time", "/usr/bin/sh -> dash",
		"/usr/lib", "/usr/lib/blas", "/usr/lib/blas/libblas.so.3 keeps its time",
		"/usr/lib/libblas.so.3 -> /etc/alternatives/libblas.so.3",
		"/usr/lib/python3", "/usr/lib/python3/__pycache__", "/usr/lib/python3/__pycache__/x.cpython-311.pyc",
		"/usr/lib/python3/x.py keeps its time",
		"/usr/share", "/usr/share/openmpi", "/usr/share/openmpi/help.txt keeps its time",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTopEntries(t *testing.T) {
	entries, err := topEntries(fstest.MapFS{
		"root/workspace/entrypoint":          {Data: []byte("#!/bin/sh\n")},
		"root/workspace/train.py":            {Data: []byte("import torch\n")},
		"root/workspace/__pycache__/t.pyc":   {Data: []byte("x")},
		"root/etc/nsswitch.conf":             {Data: []byte("ours\n")},
		"root/usr/local/bin/deep/er/program": {Data: []byte("#!/usr/bin/python3\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{}
	for _, e := range entries {
		if modes[e.Path] != "" {
			t.Errorf("%s is in the layer twice", e.Path)
		}
		modes[e.Path] = e.Mode.String()
		if e.Path == "/etc/nsswitch.conf" && string(e.Data) != "ours\n" {
			t.Errorf("a file of root/ is not taken for what is there by default: %s", e.Data)
		}
	}
	want := map[string]string{
		"/dev": "drwxr-xr-x", "/proc": "drwxr-xr-x", "/sys": "drwxr-xr-x", "/tmp": "dtrwxrwxrwx", "/var": "drwxr-xr-x",
		"/var/run": "Lrwxrwxrwx", "/etc": "drwxr-xr-x", "/etc/passwd": "-rw-r--r--", "/etc/group": "-rw-r--r--",
		"/etc/nsswitch.conf": "-rw-r--r--", "/workspace": "drwxr-xr-x", "/workspace/entrypoint": "-rwxr-xr-x",
		"/workspace/train.py": "-rw-r--r--", "/usr": "drwxr-xr-x", "/usr/bin": "drwxr-xr-x",
		"/usr/bin/python": "Lrwxrwxrwx",
		"/usr/local":      "drwxr-xr-x", "/usr/local/bin": "drwxr-xr-x", "/usr/local/bin/deep": "drwxr-xr-x",
		"/usr/local/bin/deep/er": "drwxr-xr-x", "/usr/local/bin/deep/er/program": "-rwxr-xr-x",
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRoot: whatever lies under root/ is embedded, which links, for one, are not.
func TestRoot(t *testing.T) {
	files := 0
	err := filepath.WalkDir("root", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "__pycache__" { // it comes and goes
			return fs.SkipDir
		}
		files++
		_, err = fs.Stat(root, filepath.ToSlash(name))
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("of %d files: %v", files, err)
	}
}

// What is easily missed of this machine's packages, or comes along unwanted.
func TestDebian(t *testing.T) {
	records, err := installed(t.Context())
	if err != nil {
		t.Skipf("this machine has no packages of Debian's: %v", err)
	}
	packages, err := closure(records, Packages(), leftOut)
	if err != nil {
		t.Skip(err)
	}
	entries, err := debianEntries(t.Context(), packages)
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]layer.Entry{}
	for _, e := range entries {
		byPath[e.Path] = e
		if strings.HasPrefix(e.Path, "/usr/share/doc") || strings.HasPrefix(e.Path, "/bin/") {
			t.Errorf("%s is in the image", e.Path)
		}
	}
	const torch = "/usr/lib/python3/dist-packages/torch/"
	for _, path := range []string{
		"/bin", "/lib64", "/usr/bin/sh", "/usr/bin/mpirun", "/usr/bin/torchrun", "/usr/sbin/sshd", "/usr/bin/awk",
		torch + "__init__.py", torch + "__pycache__/__init__.cpython-311.pyc", torch + "bin/torch_shm_manager",
	} {
		if _, ok := byPath[path]; !ok {
			t.Errorf("%s is not in the image", path)
		}
	}
	// Python believes what it has compiled only of a source of the time that it has written down.
	if compiled, ok := byPath[torch+"__pycache__/__init__.cpython-311.pyc"]; ok {
		stamp := int64(binary.LittleEndian.Uint32(read(t, compiled.Source)[8:]))
		if source := byPath[torch+"__init__.py"].Time.Unix(); source != stamp {
			t.Errorf("torch was compiled at %d from a source of %d: it will be compiled at every start", stamp, source)
		}
	}
	blas := "/usr/lib/" + map[string]string{
		"amd64": "x86_64",
		"arm64": "aarch64",
	}[runtime.GOARCH] + "-linux-gnu/libblas.so.3"
	if byPath[blas].Link == "" {
		t.Errorf("%s, which torch is linked to, leads nowhere", blas)
	}
}

func TestPackages(t *testing.T) {
	packages := Packages()
	if !slices.IsSorted(packages) || len(slices.Compact(slices.Clone(packages))) != len(packages) {
		t.Errorf("packages.txt is not sorted, or names one twice: %v", packages)
	}
	for _, name := range packages {
		if leftOut[name] {
			t.Errorf("%s is both wanted and left out", name)
		}
	}
}
