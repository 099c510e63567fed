package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// MaxConfig is the longest configuration, in bytes: a ConfigMap holds 1 MiB with all that belongs to it.
const MaxConfig = 512 << 10

const (
	configKind      = "KubeSchedulerConfiguration"
	clusterLease    = "kube-scheduler" // also kube-scheduler's default
	clusterProfile  = "default-scheduler"
	systemNamespace = "kube-system" // also kube-scheduler's default
)

// document is a configuration with the positions of its fields.
type document struct {
	name   string
	root   *yaml.Node
	config configv1.KubeSchedulerConfiguration
	errs   schema.Errors
}

// check reads a configuration as the scheduler will, and returns the name of the Lease that it elects a leader by in
// the namespace. Its errors are schema.Errors.
func check(file *schema.Source, namespace string) (lease string, err error) {
	d := &document{name: file.Name}
	if d.read(file.Data) {
		d.leaderElection(namespace)
		d.client()
		d.profiles()
	}
	if len(d.errs) > 0 {
		return "", sorted(d.errs)
	}
	return d.config.LeaderElection.ResourceName, nil
}

// fail reports a mistake at a field, or where the nearest mapping around it begins.
func (d *document) fail(path, rule, format string, args ...any) {
	e := schema.Error{File: d.name, Line: 1, Col: 1, Path: path, Rule: rule, Msg: fmt.Sprintf(format, args...)}
	if n := d.at(path); n != nil {
		e.Line, e.Col = n.Line, n.Column
	}
	d.errs = append(d.errs, e)
}

// at is the value of a field, or of the nearest that is there around it.
func (d *document) at(path string) *yaml.Node {
	if d.root == nil {
		return nil
	}
	return yamldoc.Nearest(d.root, yamldoc.ParsePath(path))
}

// syntax reports what a YAML parser says.
func (d *document) syntax(err error) {
	e := schema.Error{File: d.name, Line: 1, Col: 1, Rule: "yaml", Msg: "cannot be read as YAML: " + err.Error()}
	var at *yamldoc.Error
	if errors.As(err, &at) {
		e.Line, e.Msg = at.Line, "cannot be read as YAML: "+at.Msg
	}
	d.errs = append(d.errs, e)
}

// read decodes the text strictly, and says whether what it holds can be asked for more.
func (d *document) read(text []byte) bool {
	if len(text) > MaxConfig {
		d.fail("", "size", "is longer than the %d KiB that a ConfigMap has room for", MaxConfig>>10)
		return false
	}
	docs := slices.DeleteFunc(yamldoc.Split(d.name, text), yamldoc.Document.IsBlank)
	if len(docs) == 0 {
		docs = []yamldoc.Document{{}}
	}
	asJSON, err := docs[0].StrictJSON()
	if err != nil {
		d.syntax(err)
		return false
	}
	if d.root, err = docs[0].Parse(); err != nil {
		d.syntax(err)
		return false
	}
	if d.root == nil || d.root.Kind != yaml.MappingNode {
		d.fail("", "type", "must be a %s: begin with 'apiVersion: %s' and 'kind: %s'",
			configKind, configv1.SchemeGroupVersion, configKind)
		return false
	}
	if len(docs) > 1 {
		d.fail("", "documents", "must be one document: the scheduler reads no further than '---'")
		return false
	}
	return d.ofKind() && d.decode(asJSON)
}

// ofKind says whether the text is a configuration of the version that the scheduler reads.
func (d *document) ofKind() bool {
	for _, f := range []struct{ name, want string }{
		{"apiVersion", configv1.SchemeGroupVersion.String()},
		{"kind", configKind},
	} {
		got := ""
		if n := yamldoc.Field(d.root, f.name); n != nil {
			got = n.Value
		}
		if got != f.want {
			d.fail(f.name, "kind", "must be %s, not %q: --config takes what kube-scheduler's --config does", f.want,
				got)
		}
	}
	return len(d.errs) == 0
}

// decode finds fields that kube-scheduler does not have or that hold something else than they should.
func (d *document) decode(asJSON []byte) bool {
	unknown, err := kjson.UnmarshalStrict(asJSON, &d.config)
	for _, e := range unknown {
		var field kjson.FieldError
		if !errors.As(e, &field) {
			d.fail("", "decode", "%v", e)
			continue
		}
		d.fail(field.FieldPath(), "unknown-field", "is not a field of %s of %s: correct its name or remove it",
			configKind, configv1.SchemeGroupVersion)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		d.fail(wrong.Field, "type", "must be %s, not a %s", word(wrong.Type), wrong.Value)
	case err != nil:
		d.fail("", "decode", "cannot be read as a %s: %v", configKind, err)
	}
	return len(d.errs) == 0
}

// word is a Go type as YAML calls its values.
func word(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return word(t.Elem())
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	}
	return "a number"
}

// leaderElection holds the election against the Role and the Deployment: a rollout alone has two pods run at a time,
// and two that schedule would give one place to two pods.
func (d *document) leaderElection(namespace string) {
	l := &d.config.LeaderElection
	if yamldoc.Field(d.root, "leaderElection") == nil {
		d.fail("leaderElection", "required", "is missing, and with it the Lease by which one of the replicas leads: "+
			"write {leaderElect: true, resourceName: %s, resourceNamespace: %s}",
			names.Scheduler, namespace)
		return
	}
	if l.LeaderElect != nil && !*l.LeaderElect {
		d.fail("leaderElection.leaderElect", "leader", "must be true: two replicas that both schedule give one place "+
			"to two pods; write true, or leave it out")
	}
	if l.ResourceLock != "" && l.ResourceLock != "leases" {
		d.fail("leaderElection.resourceLock", "leader", "must be leases, not %q: kube-scheduler has no other; leave "+
			"it out", l.ResourceLock)
	}
	switch {
	case l.ResourceName == "":
		d.fail("leaderElection.resourceName", "required", "is missing: kube-scheduler would take %s, the name of the "+
			"cluster's own Lease; write resourceName: %s", clusterLease, names.Scheduler)
	case l.ResourceName == clusterLease && namespace == systemNamespace:
		d.fail("leaderElection.resourceName", "leader", "must not be %s in %s, the Lease of the cluster's own "+
			"scheduler, which would then stand by for this one; write %s", clusterLease, systemNamespace,
			names.Scheduler)
	case len(validation.IsDNS1123Subdomain(l.ResourceName)) > 0:
		d.fail("leaderElection.resourceName", "format", "must be the name of a Lease, of lower case letters, digits, "+
			"'-' and '.', not %q", l.ResourceName)
	}
	switch l.ResourceNamespace {
	case namespace:
	case "":
		d.fail("leaderElection.resourceNamespace", "required",
			"is missing: kube-scheduler would take %s, where the rendered Role does not reach; write "+
				"resourceNamespace: %s", systemNamespace, namespace)
	default:
		d.fail("leaderElection.resourceNamespace", "leader",
			"must be the namespace of the installation, %q, not %q: the rendered Role is for a Lease there; change "+
				"it, or give --namespace %s",
			namespace, l.ResourceNamespace, l.ResourceNamespace)
	}
}

// client refuses a way to the API server that no pod has.
func (d *document) client() {
	if path := d.config.ClientConnection.Kubeconfig; path != "" {
		d.fail("clientConnection.kubeconfig", "client", "must be left out, not %q: the pod has no such file and uses "+
			"its ServiceAccount", path)
	}
}

func (d *document) profiles() {
	if len(d.config.Profiles) == 0 {
		d.fail("profiles", "required", "is missing: kube-scheduler would take one profile for the pods of %s, which "+
			"the cluster's own scheduler places too; write one with another schedulerName",
			clusterProfile)
	}
	seen := map[string]int{}
	for i, p := range d.config.Profiles {
		path := fmt.Sprintf("profiles[%d].schedulerName", i)
		switch name := p.SchedulerName; {
		case name == nil || *name == "":
			d.fail(path, "required", "is missing: write the name that pods give in spec.schedulerName, such as %s",
				names.Scheduler)
		case *name == clusterProfile:
			d.fail(path, "profile", "must not be %s: the cluster's own scheduler places the same pods; give it "+
				"another name, such as %s", clusterProfile, names.Scheduler)
		default:
			if first, ok := seen[*name]; ok {
				d.fail(path, "profile", "must differ from profiles[%d].schedulerName, %q: a pod names one profile; "+
					"rename or remove one", first, *name)
				continue
			}
			seen[*name] = i
		}
	}
}
