package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// MaxConfig is the longest configuration, in bytes: a ConfigMap holds 1 MiB with all that belongs to it.
const MaxConfig = 512 << 10

const (
	configKind      = "KubeSchedulerConfiguration"
	clusterLease    = "kube-scheduler" // and what kube-scheduler takes where no name is given
	clusterProfile  = "default-scheduler"
	systemNamespace = "kube-system" // and what kube-scheduler takes where no namespace is given
)

// document is a configuration with the positions of its fields.
type document struct {
	name   string
	root   *yamlv3.Node
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
func (d *document) at(path string) *yamlv3.Node {
	n := d.root
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		next := child(n, step)
		if next == nil {
			break
		}
		n = next
	}
	return n
}

func child(n *yamlv3.Node, step string) *yamlv3.Node {
	if n == nil {
		return nil
	}
	if index, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n.Kind != yamlv3.SequenceNode || i >= len(n.Content) {
			return nil
		}
		return n.Content[i]
	}
	for i := 0; n.Kind == yamlv3.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return n.Content[i+1]
		}
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+): (?s:(.*))`)

// syntax reports what a YAML parser says, at the line that it names.
func (d *document) syntax(err error) {
	msg := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	e := schema.Error{File: d.name, Line: 1, Col: 1, Rule: "yaml"}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			e.Line, msg = line, m[2]
		}
	}
	e.Msg = "cannot be read as YAML: " + strings.ReplaceAll(strings.TrimSpace(msg), "\n", "; ")
	d.errs = append(d.errs, e)
}

// read decodes the text strictly, and says whether what it holds can be asked for more.
func (d *document) read(text []byte) bool {
	if len(text) > MaxConfig {
		d.fail("", "size", "is longer than the %d KiB that a ConfigMap has room for", MaxConfig>>10)
		return false
	}
	asJSON, err := yaml.YAMLToJSONStrict(text) // first: the other parser's lines are off by one, and it takes a key twice
	if err != nil {
		d.syntax(err)
		return false
	}
	var root, more yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		d.syntax(err)
		return false
	}
	if len(root.Content) > 0 {
		d.root = root.Content[0]
	}
	if d.root == nil || d.root.Kind != yamlv3.MappingNode {
		d.fail("", "type", "must be a %s: begin with 'apiVersion: %s' and 'kind: %s'", configKind, configv1.SchemeGroupVersion, configKind)
		return false
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		d.fail("", "documents", "must be one document: the scheduler reads no further than '---'")
		return false
	}
	return d.ofKind() && d.decode(asJSON)
}

// ofKind says whether the text is a configuration of the version that the scheduler reads.
func (d *document) ofKind() bool {
	for _, f := range []struct{ name, want string }{{"apiVersion", configv1.SchemeGroupVersion.String()}, {"kind", configKind}} {
		got := ""
		if n := child(d.root, f.name); n != nil {
			got = n.Value
		}
		if got != f.want {
			d.fail(f.name, "kind", "must be %s, not %q: --config takes what kube-scheduler's --config does", f.want, got)
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
		d.fail(field.FieldPath(), "unknown-field", "is not a field of %s of %s: correct its name or remove it", configKind, configv1.SchemeGroupVersion)
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

// leaderElection holds the election against the Role and the Deployment: a rollout alone has two pods run at a time, and
// two that schedule would give one place to two pods.
func (d *document) leaderElection(namespace string) {
	l := &d.config.LeaderElection
	if child(d.root, "leaderElection") == nil {
		d.fail("leaderElection", "required", "is missing, and with it the Lease by which one of the replicas leads: write {leaderElect: true, resourceName: %s, resourceNamespace: %s}",
			names.Scheduler, namespace)
		return
	}
	if l.LeaderElect != nil && !*l.LeaderElect {
		d.fail("leaderElection.leaderElect", "leader", "must be true: two replicas that both schedule give one place to two pods; write true, or leave it out")
	}
	if l.ResourceLock != "" && l.ResourceLock != "leases" {
		d.fail("leaderElection.resourceLock", "leader", "must be leases, not %q: kube-scheduler has no other; leave it out", l.ResourceLock)
	}
	switch {
	case l.ResourceName == "":
		d.fail("leaderElection.resourceName", "required", "is missing: kube-scheduler would take %s, the name of the cluster's own Lease; write resourceName: %s", clusterLease, names.Scheduler)
	case l.ResourceName == clusterLease && namespace == systemNamespace:
		d.fail("leaderElection.resourceName", "leader", "must not be %s in %s, the Lease of the cluster's own scheduler, which would then stand by for this one; write %s", clusterLease, systemNamespace, names.Scheduler)
	case len(validation.IsDNS1123Subdomain(l.ResourceName)) > 0:
		d.fail("leaderElection.resourceName", "format", "must be the name of a Lease, of lower case letters, digits, '-' and '.', not %q", l.ResourceName)
	}
	switch l.ResourceNamespace {
	case namespace:
	case "":
		d.fail("leaderElection.resourceNamespace", "required", "is missing: kube-scheduler would take %s, where the rendered Role does not reach; write resourceNamespace: %s", systemNamespace, namespace)
	default:
		d.fail("leaderElection.resourceNamespace", "leader", "must be the namespace of the installation, %q, not %q: the rendered Role is for a Lease there; change it, or give --namespace %s",
			namespace, l.ResourceNamespace, l.ResourceNamespace)
	}
}

// client refuses a way to the API server that no pod has.
func (d *document) client() {
	if path := d.config.ClientConnection.Kubeconfig; path != "" {
		d.fail("clientConnection.kubeconfig", "client", "must be left out, not %q: the pod has no such file and uses its ServiceAccount", path)
	}
}

func (d *document) profiles() {
	if len(d.config.Profiles) == 0 {
		d.fail("profiles", "required", "is missing: kube-scheduler would take one profile for the pods of %s, which the cluster's own scheduler places too; write one with another schedulerName",
			clusterProfile)
	}
	seen := map[string]int{}
	for i, p := range d.config.Profiles {
		path := fmt.Sprintf("profiles[%d].schedulerName", i)
		switch name := p.SchedulerName; {
		case name == nil || *name == "":
			d.fail(path, "required", "is missing: write the name that pods give in spec.schedulerName, such as %s", names.Scheduler)
		case *name == clusterProfile:
			d.fail(path, "profile", "must not be %s: the cluster's own scheduler places the same pods; give it another name, such as %s", clusterProfile, names.Scheduler)
		default:
			if first, ok := seen[*name]; ok {
				d.fail(path, "profile", "must differ from profiles[%d].schedulerName, %q: a pod names one profile; rename or remove one", first, *name)
				continue
			}
			seen[*name] = i
		}
	}
}
