package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// RendezvousOptions are the flags of a shared tegen-rendezvous. What is empty was not given.
type RendezvousOptions struct {
	Place
	Clients      []string // a namespace
	MetricsFrom  []string // namespaces
	Backend      string
	Etcd         []string // URLs
	EtcdTLS      string   // a Secret
	EtcdUser     string
	EtcdPassword string // a Secret with the key password
	Storage      string
	StorageClass string
	Replicas     int32
}

// RendezvousDefaults are the flags' default values.
func RendezvousDefaults() RendezvousOptions {
	return RendezvousOptions{
		Place:   Place{names.Rendezvous, names.ReleasedRendezvous, true, false},
		Backend: job.BackendEtcd,
	}
}

// Rendezvous returns the objects of a shared tegen-rendezvous. It is the companion of a job that has nothing else: what
// holds for the fields of a companion holds for the flags. Its error lists every mistake in the flags, a line each.
func Rendezvous(o RendezvousOptions) ([]runtime.Object, error) {
	errs := o.check()
	errs = append(errs, o.checkAccess()...)
	if !slices.Contains([]string{job.BackendC10d, job.BackendEtcd}, o.Backend) {
		errs = append(errs, fmt.Errorf("--backend: must be etcd, which also serves etcd-v2, or c10d, not %q",
			o.Backend))
	}
	if o.StorageClass != "" && o.Storage == "" {
		errs = append(errs, errors.New("--storage-class: needs --storage, the size of the volume"))
	}
	if len(o.Etcd) == 0 && o.EtcdTLS+o.EtcdUser+o.EtcdPassword != "" {
		errs = append(errs, errors.New("--etcd: is missing: other flags say how to log in to it"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	j, err := o.job()
	if err != nil {
		return nil, err
	}
	objects := generators.InstallRendezvous(&generators.SharedRendezvous{
		Job: j, Clients: unique(o.Clients), MetricsFrom: unique(o.MetricsFrom),
		NamespaceExists: !o.CreateNamespace, PodMonitor: o.PodMonitor,
	})
	return objects, render.Judge(names.Rendezvous, objects, nil)
}

// checkAccess checks who may reach it. Clients of several namespaces could run code in each other's workers, because no
// client has to authenticate.
func (o *RendezvousOptions) checkAccess() (errs []error) {
	clients := unique(o.Clients)
	for i, namespace := range slices.Concat(clients, o.MetricsFrom) {
		flag := "--clients"
		if i >= len(clients) {
			flag = "--metrics-from"
		}
		if err := checkNamespace(flag, namespace); err != nil {
			errs = append(errs, err)
		}
	}
	var each []string
	for _, c := range clients {
		each = append(each, fmt.Sprintf("--namespace %s-%s --clients %[2]s", names.Rendezvous, c))
	}
	switch {
	case len(clients) == 0:
		errs = append(errs, errors.New("--clients: is missing: name the namespace whose jobs may reach it"))
	case len(clients) > 1:
		errs = append(errs, fmt.Errorf("--clients: %s are %d namespaces. Access to a rendezvous is code execution in "+
			"the workers of all its jobs. Install one for each: %s", strings.Join(clients, ", "), len(clients),
			strings.Join(each, ", ")))
	}
	if o.PodMonitor && len(o.MetricsFrom) == 0 {
		errs = append(errs, errors.New("--metrics-from: is missing: name the namespace of the Prometheus that "+
			"--pod-monitor is for"))
	}
	return errs
}

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// job is one whose companion is what the flags describe.
func (o *RendezvousOptions) job() (*job.Job, error) {
	companion := map[string]any{"name": names.Rendezvous}
	set := func(in map[string]any, key, value string) {
		if value != "" {
			in[key] = value
		}
	}
	if o.Replicas != 0 {
		companion["replicas"] = o.Replicas
	}
	if o.Storage != "" {
		storage := map[string]any{"size": o.Storage}
		set(storage, "storageClass", o.StorageClass)
		companion["storage"] = storage
	}
	if len(o.Etcd) > 0 {
		etcd := map[string]any{"endpoints": o.Etcd}
		set(etcd, "user", o.EtcdUser)
		if o.EtcdTLS != "" {
			etcd["tls"] = map[string]any{"secret": o.EtcdTLS}
		}
		if o.EtcdPassword != "" {
			etcd["password"] = map[string]any{"name": o.EtcdPassword, "key": "password"}
		}
		companion["etcd"] = etcd
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": names.APIVersion, "kind": names.KindTrainingJob,
		"metadata": map[string]any{"name": names.Rendezvous, "namespace": o.Namespace},
		"spec": map[string]any{
			"images": map[string]any{"rendezvous": o.Image},
			"rendezvous": map[string]any{
				"backend": o.Backend, "store": job.StoreCompanion, "companion": companion,
			},
			// Of workers nothing is rendered.
			"image": "none:none", "command": []string{"none"}, "workers": map[string]any{"replicas": 2},
			"resources": map[string]any{"cpu": 1, "memory": "1Gi"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("describing the companion: %w", err)
	}
	jobs, err := schema.Load([]schema.Source{{Name: "flags", Data: text}})
	if err != nil {
		return nil, asFlags(err)
	}
	j := jobs[0]
	j.Metadata.Labels = map[string]string{
		"app.kubernetes.io/name":    names.Rendezvous, // and no framework: it serves all of them
		"app.kubernetes.io/part-of": names.ManagedBy,
	}
	return j, nil
}

// flagOf is the flag that sets a field; a field within comes before the one around it.
var flagOf = []struct{ path, flag string }{
	{"spec.images.rendezvous", "--image"},
	{"spec.rendezvous.companion.etcd.tls", "--etcd-tls-secret"},
	{"spec.rendezvous.companion.etcd.user", "--etcd-user"},
	{"spec.rendezvous.companion.etcd.password", "--etcd-password-secret"},
	{"spec.rendezvous.companion.etcd", "--etcd"},
	{"spec.rendezvous.companion.storage.storageClass", "--storage-class"},
	{"spec.rendezvous.companion.storage", "--storage"},
	{"spec.rendezvous.companion.replicas", "--replicas"},
}

// asFlags says of flags what the schema says of the fields that they set.
func asFlags(err error) error {
	var found schema.Errors
	if !errors.As(err, &found) {
		return err
	}
	var replace []string
	for _, f := range flagOf {
		replace = append(replace, strings.TrimPrefix(f.path, "spec.rendezvous."), f.flag)
	}
	words := strings.NewReplacer(replace...)
	var errs []error
	for _, e := range found {
		at := e.Path
		for _, f := range flagOf {
			if strings.HasPrefix(at, f.path) {
				at = f.flag
			}
		}
		errs = append(errs, fmt.Errorf("%s: %s", at, words.Replace(e.Msg)))
	}
	return errors.Join(errs...)
}
