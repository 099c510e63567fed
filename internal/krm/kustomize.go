package krm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// kustomize builds a variant of the overlay's kustomization, with files that exist in memory only. One that is empty,
// since the overlay lists tegen alone, builds nothing; kustomize would refuse it.
func (k *kustomization) kustomize(variant types.Kustomization, files map[string][]byte) ([]*yaml.Node, error) {
	if variant.CheckEmpty() != nil {
		return nil, nil
	}
	text, err := sigsyaml.Marshal(variant)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", k.dir, err)
	}
	disk := overlaidFS{
		FileSystem: filesys.MakeFsOnDisk(), files: map[string][]byte{filepath.Join(k.dir, k.file): text},
		seen: k.behind, from: k.dir,
	}
	for name, data := range files {
		disk.files[filepath.Join(k.dir, name)] = data
	}
	result, err := run(disk, k.dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", k.dir, err)
	}
	nodes := make([]*yaml.Node, result.Size())
	for i, n := range result.ToRNodeSlice() {
		nodes[i] = n.YNode()
		writeOut(nodes[i])
	}
	return nodes, nil
}

// run runs kustomize. Of some mistakes it panics with a text, such as that patches give two objects one name.
func run(files filesys.FileSystem, dir string) (result resmap.ResMap, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string:
			err = errors.New(r)
		case runtime.Error:
			panic(r) // a fault of the program
		case error:
			err = r
		default:
			panic(r)
		}
	}()
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
}

// writeOut writes whole numbers in digits again, as kustomize does when it prints. A JSON patch makes floating point of
// all numbers of what it changes, so that 1000650000 is 1.00065e+09 there, which no API server takes for a user.
func writeOut(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Style == 0 && strings.Contains(n.Value, "e+") &&
		n.ShortTag() == yaml.NodeTagFloat {
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1e21 {
			n.Value, n.Tag = strconv.FormatFloat(f, 'f', -1, 64), yaml.NodeTagInt
		}
	}
	for _, below := range n.Content {
		writeOut(below)
	}
}

// stream prints nodes as kustomize does: all but what is marked local.
func stream(nodes []*yaml.Node) ([]byte, error) {
	var applied []*yaml.RNode
	for _, n := range nodes {
		if !isLocal(n) {
			applied = append(applied, yaml.NewRNode(n))
		}
	}
	if len(applied) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	w := kio.ByteWriter{Writer: &out, ClearAnnotations: []string{pathAnnotation, indexAnnotation}}
	if err := w.Write(applied); err != nil {
		return nil, fmt.Errorf("printing what the overlay holds: %w", err)
	}
	return out.Bytes(), nil
}
