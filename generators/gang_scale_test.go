package generators

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

var workersLine = regexp.MustCompile(`(?m)^  workers: .*$`)

// TestScaledGang: what an elastic gang's pods and PodGroup are made of does not depend on how many workers there are at
// the moment, or a change of that number would replace the pods that run. It found a gang's total in the annotations of
// pods, and it would find a minimum in a PodGroup, which is immutable in Kubernetes 1.36.
func TestScaledGang(t *testing.T) {
	for _, target := range target.All {
		for _, d := range job.Dialects {
			feature := "gang.scheduler=" + d.Name
			if !target.Carries(feature) || !target.Carries("workers.min") {
				continue
			}
			t.Run(target.Framework+"/"+target.Name+"/"+d.Name, func(t *testing.T) {
				four, six, three := scaled(t, target, feature, 4), scaled(t, target, feature, 6), scaled(t, target,
					feature, 3)
				if diff := cmp.Diff(four, six); diff != "" {
					t.Errorf("four workers become six (-four +six):\n%s", diff)
				}
				if diff := cmp.Diff(six, three); diff != "" {
					t.Errorf("six workers become three (-six +three):\n%s", diff)
				}
			})
		}
	}
}

// TestResizable: the key that lets Kueue resize is on a Job whose workers may become more or fewer: Kueue refuses it on
// other kinds, and on a Job of a fixed size it does harm only.
func TestResizable(t *testing.T) {
	for _, target := range target.All {
		if !target.Carries("gang.scheduler=" + job.GangKueue) {
			continue
		}
		for _, workers := range []string{"replicas: 4", "replicas: 4, min: 3, max: 8"} {
			if elastic := strings.Contains(workers, "min"); elastic && !target.Carries("workers.min") {
				continue
			}
			text := workersLine.ReplaceAllString(example(target, "gang.scheduler="+job.GangKueue), "  workers: {"+
				workers+"}")
			text = strings.ReplaceAll(text, "  gang: {", "  gang: {minAvailable: 4, ")
			for _, o := range rendered(t, text) {
				metadata, _ := o["metadata"].(map[string]any)
				annotations, _ := metadata["annotations"].(map[string]any)
				labels, _ := metadata["labels"].(map[string]any)
				want := target.Name == job.TargetJob && strings.Contains(workers, "min") &&
					o["kind"] == "Job" && labels["app.kubernetes.io/component"] == componentWorker
				if got := annotations[kueueElasticKey] == "true"; got != want {
					t.Errorf("%s/%s, workers {%s}, %v %v: resizable %v, want %v", target.Framework, target.Name,
						workers, o["kind"], metadata["name"], got, want)
				}
			}
		}
	}
}

// TestResizablePartly: Kueue's webhook refuses a Job that it may both start with fewer workers and resize.
func TestResizablePartly(t *testing.T) {
	for _, o := range rendered(t, `
apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec:
  image: x:1
  command: [python, train.py]
  workers: {replicas: 4, min: 2, max: 8}
  gang: {scheduler: kueue, queue: q, minAvailable: 4}
  workload: {annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}}
`) {
		metadata, _ := o["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if _, ok := annotations[kueueElasticKey]; ok {
			t.Errorf("%v %v has %v", o["kind"], metadata["name"], annotations)
		}
	}
}

// scaled are the pods of roles and the PodGroup of a job with so many workers of 3 to 8.
func scaled(t *testing.T, target target.Target, feature string, workers int) map[string]any {
	t.Helper()
	line := fmt.Sprintf("  workers: {replicas: %d, min: 3, max: 8}", workers)
	if target.Framework == job.FrameworkDLRover { // whose maximum is what it starts
		line = strings.Replace(line, ", max: 8", "", 1)
	}
	text := workersLine.ReplaceAllString(example(target, feature), line)
	if wholeGang(target, feature) {
		text = strings.ReplaceAll(text, "  gang: {", fmt.Sprintf("  gang: {minAvailable: %d, ", workers))
	}
	objects := rendered(t, text)
	found := map[string]any{}
	for i, p := range podsIn(objects...) {
		if i > 0 && target.Name == job.TargetPods { // the first stands for all, which differ by their index
			break
		}
		if p.annotations[kueueCountKey] != "" { // Kueue's own count of the pods that it admits together
			delete(p.annotations, kueueCountKey)
		}
		found[p.role] = []any{p.annotations, p.spec}
	}
	for _, o := range objects {
		if o["kind"] == "PodGroup" && !wholeGang(target, feature) {
			found["PodGroup"] = o["spec"]
		}
	}
	return found
}

// wholeGang says whether the gang is all workers, however many there are: Kueue admits a whole job, and a PodGroup
// whose one number counts several roles could else take a worker for a launcher.
func wholeGang(target target.Target, feature string) bool {
	return strings.HasSuffix(feature, job.GangKueue) || target.Name == job.TargetMPIJob &&
		(strings.HasSuffix(feature, job.GangCoscheduling) || strings.HasSuffix(feature, job.GangVolcano))
}

// rendered are all objects of the one job in a text.
func rendered(t *testing.T, text string) []map[string]any {
	t.Helper()
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out, err := textOf(jobs[0].WithoutInput())
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, out)
}
