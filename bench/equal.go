package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// objectsPerJob are a ServiceAccount, a Service, a NetworkPolicy, a PodDisruptionBudget and a Job.
const objectsPerJob = 5

// objects are a manifest's, as JSON values by kind, namespace and name; the order of documents and of keys is lost.
type objects map[string]map[string]any

// compare holds every program's output for n jobs against tegen's.
func (b *bench) compare(ctx context.Context, n int) error {
	in, err := b.prepare(ctx, n)
	if err != nil {
		return err
	}
	var want objects
	for i, t := range b.tools {
		output := filepath.Join(b.dir, "output")
		if _, err := b.execute(ctx, t, in, output); err != nil {
			return err
		}
		got, err := readObjects(output)
		if err != nil {
			return fmt.Errorf("reading the output of %s: %w", t.name, err)
		}
		if len(got) != n*objectsPerJob {
			return fmt.Errorf("reading the output of %s: %d jobs have %d objects, not %d", t.name,
				n, len(got), n*objectsPerJob)
		}
		if i == 0 {
			want = got
		} else if t.built != "" { // which may render otherwise
			continue
		} else if err := differ(want, got); err != nil {
			return fmt.Errorf("comparing tegen (-) with %s (+): %w", t.name, err)
		}
	}
	return nil
}

// differ shows the first object that differs and counts them: a fault of a template is in every job.
func differ(want, got objects) error {
	keys := slices.Collect(maps.Keys(want))
	for key := range got {
		if want[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	first, count := "", 0
	for _, key := range keys {
		if diff := cmp.Diff(want[key], got[key]); diff != "" {
			if count++; count == 1 {
				first = key + "\n" + diff
			}
		}
	}
	if count > 0 {
		return fmt.Errorf("%d objects differ, the first is %s", count, first)
	}
	return nil
}

// readObjects reads a manifest with the parser that kubectl reads it with.
func readObjects(path string) (objects, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := objects{}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var obj map[string]any
		if err := yaml.UnmarshalStrict(text, &obj); err != nil {
			return nil, err
		}
		if obj == nil {
			continue // comments only
		}
		key := keyOf(obj)
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", key)
		}
		withoutOrigin(obj)
		out[key] = obj
	}
}

// withoutOrigin removes two annotations that only tegen can write: its version, and the digest of its input.
func withoutOrigin(obj map[string]any) {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, "tegen.dev/input")
	delete(annotations, "tegen.dev/version")
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

func keyOf(obj map[string]any) string {
	meta, _ := obj["metadata"].(map[string]any)
	return fmt.Sprintf("%v %v/%v", obj["kind"], meta["namespace"], meta["name"])
}

// countObjects counts the documents of a manifest by their kind at the left edge: all that is asked of outputs too
// large to compare between timed runs.
func countObjects(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("kind: ")) {
			n++
		}
	}
	return n, nil
}
