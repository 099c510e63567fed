package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreign are objects that nobody rendered, and why each is refused. With an AppProject, a commit can have all objects
// of a kind that the tree has.
var foreign = []struct{ name, object, flux, argo string }{
	{
		"a kind",
		"apiVersion: v1\nkind: LimitRange\nmetadata: {name: foreign, namespace: %s}\nspec: {limits: []}\n",
		`cannot patch resource "limitranges"`, "resource :LimitRange is not permitted in project tegen-fence",
	},
	{
		"a namespace",
		"apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: default}\nspec: {ports: [{port: 80}]}\n",
		`in the namespace "default"`, "namespace default is not permitted in project 'tegen-fence'",
	},
	{
		"permissions",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: foreign, namespace: %s}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n",
		"is attempting to grant RBAC permissions not currently held", "",
	},
	{
		"a cluster-scoped object",
		"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: foreign-%s}\nspec: {accessModes: [ReadWriteOnce], " +
			"capacity: {storage: 1Gi}, hostPath: {path: /tmp}}\n",
		`cannot patch resource "persistentvolumes"`, "",
	},
}

// fenced: what is not of a kind and a namespace of the tree is refused, until the output of 'tegen gitops' is applied
// again. A volume and a Role are among what is permitted.
func fenced(p *place) {
	var flags []string
	if p.Name() == "Flux" {
		flags = []string{"--service-account", "fence"}
	}
	p.job("resnet", fmt.Sprintf("storage: [{mountPath: /data, hostPath: {path: /var/lib/%s, size: 1Gi}}]", p.namespace))
	p.commit("Train resnet")
	t := p.generate("fence", flags...)
	resnet, hvd := t.of("resnet"), t.of("hvd")
	resnet.synced()
	p.running(2)

	p.job("hvd", "framework: horovod")
	p.commit("Train hvd, which has a Role")
	if p.Name() == "Argo CD" {
		t.look()
		hvd.says("is not permitted in project tegen-fence")
	}
	t.again(flags...)
	hvd.mended()

	for _, f := range foreign {
		words := map[string]string{"Flux": f.flux, "Argo CD": f.argo}[p.Name()]
		if words == "" {
			continue
		}
		p.commit("Train both")
		p.add("resnet", fmt.Sprintf(f.object, p.namespace))
		resnet.says(words)
	}
	p.commit("Go back")
	resnet.mended()
	ranges, err := p.client.CoreV1().LimitRanges(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil || len(ranges.Items) > 0 {
		p.Errorf("a LimitRange was applied: %v (%v)", ranges.Items, err)
	}
}

// add commits an object in the folder of a job, until the next commit.
func (p *place) add(job, object string) {
	p.Helper()
	folder := filepath.Join(p.app.Repository.Dir, p.app.Path, job)
	list, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		p.Fatal(err)
	}
	for name, text := range map[string]string{
		"foreign.yaml":       object,
		"kustomization.yaml": strings.Replace(string(list), "\nresources:\n", "\nresources:\n- foreign.yaml\n", 1),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	if err := p.app.Repository.Commit(p.Context(), "Add "+job+"'s own"); err != nil {
		p.Fatal(err)
	}
}
