package gitops

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/cluster"
)

// unsuspended and scaled: both change the Job in place.
func unsuspended(p *place) {
	p.job("resnet", "suspend: true")
	p.commit("Queue resnet")
	p.followed()
	p.running(0)
	before := p.theJob()
	p.health(map[string]string{"Argo CD": "Suspended", "Flux": "ReconciliationSucceeded"})
	p.job("resnet")
	p.commit("Train resnet")
	p.synced()
	p.running(2)
	if after := p.theJob(); after.UID != before.UID {
		p.Errorf("%s was made anew to be resumed", after.Name)
	}
}

func scaled(p *place) {
	p.job("resnet", "workers: {min: 1, max: 4, replicas: 2}")
	p.commit("Train resnet on two nodes")
	p.followed()
	p.running(2)
	before := p.theJob()
	p.job("resnet", "workers: {min: 1, max: 4, replicas: 4}")
	p.commit("Train resnet on four nodes")
	p.synced()
	p.running(4)
	if after := p.theJob(); after.UID != before.UID {
		p.Errorf("%s was made anew to be scaled", after.Name)
	}
}

// newImageHashed: a new Job takes the place of the old one.
func newImageHashed(p *place) {
	p.job("resnet", volume)
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	before, saved := p.theJob(), p.checkpoint("resnet-data")
	p.job("resnet", volume, "image: registry.example/resnet:2.0")
	p.commit("Train resnet 2.0")
	p.synced()
	p.running(2)
	after := p.theJob()
	if after.Name == before.Name {
		p.Errorf("the new image has no new Job: both are %s", after.Name)
	}
	if image := after.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":2.0") {
		p.Errorf("the new Job has image %s", image)
	}
	p.kept(saved)
}

// newImagePlain: the API server refuses the new template, and the old Job runs on.
func newImagePlain(p *place) {
	p.job("resnet", "hashedNames: false")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	before := p.theJob()
	p.job("resnet", "hashedNames: false", "image: registry.example/resnet:2.0")
	p.commit("Train resnet 2.0")
	p.refused("field is immutable")
	p.running(2)
	if after := p.theJob(); after.UID != before.UID {
		p.Errorf("%s was made anew, against what is said of it", after.Name)
	}
	p.job("resnet", "hashedNames: false")
	p.commit("Go back to resnet 1.0")
	p.eventually("the commit that takes the change back", func() error {
		if status := p.sync(); !status.Synced {
			return fmt.Errorf("%s", status)
		}
		return nil
	})
}

// renamed: a job of a new name begins anew; the data of the old one stays.
func renamed(p *place) {
	p.job("resnet", volume)
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	saved := p.checkpoint("resnet-data")
	delete(p.jobs, "resnet")
	p.job("resnet-50", volume)
	p.commit("Call resnet resnet-50")
	p.synced()
	p.running(2)
	p.kept(saved)
	if job := p.theJob(); !strings.HasPrefix(job.Name, "resnet-50") {
		p.Errorf("the Job is %s", job.Name)
	}
}

// newPort: the Service's port changes in place, and the Job, whose arguments name it, is another.
func newPort(p *place) {
	p.job("resnet", "rendezvous: {store: worker, port: 29400}")
	p.commit("Train resnet")
	p.followed()
	p.running(2)
	p.job("resnet", "rendezvous: {store: worker, port: 29500}")
	p.commit("Meet at another port")
	p.synced()
	p.running(2)
	services, err := p.client.CoreV1().Services(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	for _, service := range services.Items {
		for _, port := range service.Spec.Ports {
			if port.Port == 29400 {
				p.Errorf("Service %s still has the old port: %v", service.Name, service.Spec.Ports)
			}
		}
	}
}

// newTemplate: a StatefulSet's volumes cannot change.
func newTemplate(p *place) {
	p.job("resnet", etcd("4Gi"))
	p.commit("Train resnet with an etcd")
	p.followed()
	p.running(3)
	p.job("resnet", etcd("8Gi"))
	p.commit("Give etcd more room")
	p.refused("Forbidden")
	p.job("resnet", etcd("4Gi"))
	p.commit("Go back to the old size")
	p.eventually("the commit that takes the change back", func() error {
		if status := p.sync(); !status.Synced {
			return fmt.Errorf("%s", status)
		}
		return nil
	})
	p.running(3)
}

// etcd is a StatefulSet with a volume.
func etcd(size string) string {
	return fmt.Sprintf("rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: %s, storageClass: %s}}}", size,
		cluster.StorageClass)
}

// theJob is the one Job of the namespace.
func (p *place) theJob() *batchv1.Job {
	p.Helper()
	var job *batchv1.Job
	p.eventually("one Job", func() error {
		jobs, err := p.client.BatchV1().Jobs(p.namespace).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(jobs.Items) != 1 {
			return fmt.Errorf("there are %d", len(jobs.Items))
		}
		job = &jobs.Items[0]
		return nil
	})
	return job
}

// refused is sync, and the API server refuses the commit with these words.
func (p *place) refused(words string) {
	p.Helper()
	if status := p.sync(); status.Synced || !strings.Contains(status.Message, words) {
		p.Errorf("%s does not say that it was refused (%s): %s", p.Name(), words, status)
	}
}
