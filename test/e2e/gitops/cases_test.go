package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/cluster"
)

// testCase is a row of docs/gitops.md.
type testCase struct {
	row   string
	run   func(*place)
	alone bool   // nothing else runs meanwhile, since it measures
	only  string // the reconciler that it is for; "" for both
}

var cases = slices.Concat(treeCases, jobCases)

var jobCases = []testCase{
	{row: "first sync", run: firstSync},
	{row: "nothing changed", run: unchanged},
	{row: "suspend: false", run: unsuspended},
	{row: "other replicas", run: scaled},
	{row: "new image, hashed names", run: newImageHashed},
	{row: "new image, plain names", run: newImagePlain},
	{row: "renamed", run: renamed},
	{row: "removed", run: removal},
	{row: "order of removal", run: ordered},
	{row: "two runs, one checkpoint", run: overlapped},
	{row: "another port", run: newPort},
	{row: "another volume of a StatefulSet", run: newTemplate},
	{row: "completed", run: completed},
	{row: "failed", run: failed},
	{row: "a hand's edit", run: edited},
	{row: "variables in a script", run: substituted},
	{row: "Kueue's writes", run: kueue},
	{row: "JobSet's writes", run: jobSet},
	{row: "the training operator's writes", run: pyTorchJob},
	{row: "a CRD that comes later", run: laterCRD},
	{row: "a namespace that comes later", run: laterNamespace},
	{row: "createNamespace", run: ownNamespace},
	{row: "200 jobs in one", run: many, alone: true},
}

const volume = "storage: [{mountPath: /data, dynamic: {size: 1Gi, storageClass: " + cluster.StorageClass + "}}]"

func firstSync(p *place) {
	p.job("resnet", volume)
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	p.health(map[string]string{"Argo CD": "Healthy", "Flux": "ReconciliationSucceeded"})
}

// removal: the data of a job outlives its folder in git, and the Application or Kustomization.
func removal(p *place) {
	p.job("resnet", volume)
	p.job("bert", volume)
	p.commit("Train resnet and bert")
	p.followed()
	p.running(4)
	resnet, bert := p.checkpoint("resnet-data"), p.checkpoint("bert-data")

	delete(p.jobs, "resnet")
	p.commit("Remove resnet")
	p.synced() // the claim that is left is no difference
	p.running(2)
	p.kept(resnet)

	if err := p.Remove(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.running(0)
	p.kept(resnet)
	p.kept(bert)
}

// running waits until as many pods of the namespace run, and no others are there.
func (p *place) running(want int) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d pods to run", want), func() error {
		pods, err := p.client.CoreV1().Pods(p.namespace).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d run", running, len(pods.Items))
		}
		return nil
	})
}

// data is what a training wrote into a claim.
type data struct{ claim, volume, file string }

// checkpoint writes a file into the folder that a claim was given.
func (p *place) checkpoint(claim string) data {
	p.Helper()
	var d data
	p.eventually("the volume of "+claim, func() error {
		c, err := p.client.CoreV1().PersistentVolumeClaims(p.namespace).Get(p.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c.Status.Phase != corev1.ClaimBound {
			return errors.New("it is not bound")
		}
		volume, err := p.client.CoreV1().PersistentVolumes().Get(p.Context(), c.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		d = data{claim, volume.Name, filepath.Join(volume.Spec.HostPath.Path, "checkpoint.pt")}
		return os.WriteFile(d.file, []byte("a week of training"), 0o600)
	})
	return d
}

// kept checks that claim, volume and file are there, and still are a moment later: a volume goes after its claim.
func (p *place) kept(d data) {
	p.Helper()
	time.Sleep(3 * time.Second)
	claim, err := p.client.CoreV1().PersistentVolumeClaims(p.namespace).Get(p.Context(), d.claim, metav1.GetOptions{})
	switch {
	case err != nil:
		p.Errorf("the claim of a removed job: %v", err)
	case claim.DeletionTimestamp != nil:
		p.Errorf("the claim %s of a removed job is being deleted", d.claim)
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Get(p.Context(), d.volume, metav1.GetOptions{}); err != nil {
		p.Errorf("the volume of a removed job: %v", err)
	}
	if _, err := os.Stat(d.file); err != nil {
		p.Errorf("the checkpoint of a removed job: %v", err)
	}
}

func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}
