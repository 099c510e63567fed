package krm_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tegen-dev/tegen/internal/krm"
)

const local = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n" +
	"spec: {image: 'x:1', command: [x], workers: {replicas: 1}}\n"

// TestNothingIsFetched names a server in every field that kustomize would fetch: no request must reach it, and the
// error must name the field's value.
func TestNothingIsFetched(t *testing.T) {
	var heard atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			heard.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	url := server.URL + "/x.yaml"
	for what, fields := range map[string]string{
		"a resource":        "resources: [job.yaml, " + url + "]",
		"a base":            "resources: [job.yaml]\nbases: [" + url + "]",
		"a repository":      "resources: [job.yaml, github.com/example/repository]",
		"a component":       "resources: [job.yaml]\ncomponents: [" + url + "]",
		"a patch":           "resources: [job.yaml]\npatches: [{path: " + url + "}]",
		"a strategic merge": "resources: [job.yaml]\npatchesStrategicMerge: [" + url + "]",
		"a JSON patch": "resources: [job.yaml]\n" +
			"patchesJson6902: [{target: {version: v1, kind: Service, name: a}, path: " + url + "}]",
		"a generated file": "resources: [job.yaml]\nconfigMapGenerator: [{name: a, files: ['k=" + url +
			"']}]",
		"a generated environment":    "resources: [job.yaml]\nsecretGenerator: [{name: a, envs: [" + url + "]}]",
		"a generator's file":         "resources: [job.yaml]\ngenerators: [plugin.yaml]",
		"a schema":                   "resources: [job.yaml]\nopenapi: {path: " + url + "}",
		"a replacement":              "resources: [job.yaml]\nreplacements: [{path: " + url + "}]",
		"a chart":                    "resources: [job.yaml]\nhelmCharts: [{name: a, repo: " + server.URL + "}]",
		"a resource of a nested one": "resources: [job.yaml, below]",
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, map[string]string{
				"job.yaml":   local,
				"tegen.yaml": generator,
				"plugin.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: p}\n" +
					"name: p\nfiles:\n- k=" + url + "\n",
				"below/kustomization.yaml": "resources: [" + url + "]\n",
				"kustomization.yaml":       fields + "\ntransformers: [tegen.yaml]\n",
			})
			if _, err := krm.Overlay(dir, nil); err == nil || !strings.Contains(err.Error(), "fetche") {
				t.Errorf("got %v", err)
			}
			if n := heard.Load(); n > 0 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestAddressesInTextsAreNotFetched(t *testing.T) {
	dir := folder(t, map[string]string{
		"job.yaml":   local,
		"tegen.yaml": generator,
		"kustomization.yaml": "resources: [job.yaml]\ncommonAnnotations: {docs: 'https://docs.example/a'}\n" +
			"configMapGenerator: [{name: c, literals: ['url=https://a.example/b']}]\ntransformers: [tegen.yaml]\n",
	})
	out, err := krm.Overlay(dir, nil)
	if err != nil || len(out.Bundles) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestCycle(t *testing.T) {
	dir := folder(t, map[string]string{
		"one/kustomization.yaml": "resources: [../two]\n",
		"two/kustomization.yaml": "resources: [../one]\n",
		"own/kustomization.yaml": "resources: [../own]\n",
	})
	for _, name := range []string{"one", "own"} {
		if _, err := krm.Overlay(filepath.Join(dir, name), nil); err == nil ||
			!strings.Contains(err.Error(), "it contains itself") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPositionsBelow: a mistake in a base has the base's file and line.
func TestPositionsBelow(t *testing.T) {
	dir := folder(t, map[string]string{
		"base/job.yaml":              strings.Replace(local, "x:1", "x:latest", 1),
		"base/kustomization.yaml":    "resources: [job.yaml]\n",
		"overlay/kustomization.yaml": "resources: [../base]\ntransformers: [tegen.yaml]\n",
		"overlay/tegen.yaml":         generator,
	})
	_, err := krm.Overlay(filepath.Join(dir, "overlay"), nil)
	if err == nil || !strings.Contains(err.Error(), filepath.Join("base", "job.yaml")+":4:15: spec.image: ") {
		t.Errorf("got %v", err)
	}
}
