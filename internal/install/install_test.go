package install_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tegen-dev/tegen/internal/install"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

var options = install.Options{
	Place: install.Place{
		Namespace: "ml", Image: "registry.example/tegen-scheduler:1.0.0", CreateNamespace: true,
	},
	Replicas: 2,
}

// TestFlags: the error lists every mistake, with what would be right.
func TestFlags(t *testing.T) {
	if err := options.Check(); err != nil {
		t.Errorf("good flags: %v", err)
	}
	err := install.Options{Place: install.Place{Namespace: "ML", Image: "scheduler:latest"}, Replicas: 11}.Check()
	want := `--namespace: must be a name of lower case letters, digits and '-', of 63 characters at most, not "ML"
--image: must be an image with a tag other than latest, or a digest: registry/name:tag, not "scheduler:latest"
--replicas: must be from 1 to 10, not 11: one schedules, a second takes over, more only wait`
	if err == nil {
		t.Fatal("they are accepted")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSystemNamespace: a namespace that belongs to others is not rendered, since its pods might not be admitted then.
func TestSystemNamespace(t *testing.T) {
	for namespace, refused := range map[string]bool{
		"kube-system": false, "default": false, "argocd": true, "kube-flannel": true,
		"scheduling": false, install.Namespace: false,
	} {
		o := options
		o.Namespace = namespace
		if err := o.Check(); (err != nil) != refused {
			t.Errorf("%s: %v", namespace, err)
		}
		if o.CreateNamespace = false; o.Check() != nil {
			t.Errorf("%s, which exists: %v", namespace, o.Check())
		}
	}
}

// TestDefaultImage: a release has its own image as the default; any other build has none.
func TestDefaultImage(t *testing.T) {
	const released = "registry.example/tegen-scheduler:v1.2.3@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, want := range []string{"", released} {
		names.ReleasedScheduler = want
		o := install.Defaults()
		if o.Image != want {
			t.Errorf("image %q, want %q", o.Image, want)
		}
		if err := o.Check(); (err == nil) != (want != "") {
			t.Errorf("image %q: %v", want, err)
		}
	}
	names.ReleasedScheduler = ""
}

// TestDefaultConfig: what schema calls the scheduler of tegen's gangs is a profile of the default configuration.
func TestDefaultConfig(t *testing.T) {
	objects, err := install.Scheduler(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, object := range objects {
		if m, ok := object.(*corev1.ConfigMap); ok {
			text = m.Data["config.yaml"]
		}
	}
	if !strings.Contains(text, "\n- schedulerName: "+names.Scheduler+"\n") ||
		!strings.Contains(text, "\n  resourceNamespace: "+options.Namespace+"\n") {
		t.Errorf("no profile %s with its Lease in %s:\n%s", names.Scheduler, options.Namespace, text)
	}
	g := &job.Gang{Scheduler: job.GangTegen}
	if g.SchedulerName() != names.Scheduler {
		t.Errorf("gangs of tegen ask for %s", g.SchedulerName())
	}
}

const good = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: gangs, resourceNamespace: ml}
profiles:
- schedulerName: batch
  pluginConfig:
  - name: TegenRandom
    args: {seed: 7}
`

// TestConfig: a configuration is rendered byte for byte, and the role is for its Lease.
func TestConfig(t *testing.T) {
	objs, err := install.Scheduler(options, &schema.Source{Name: "s.yaml", Data: []byte(good)})
	if err != nil {
		t.Fatal(err)
	}
	leases, text := []string(nil), ""
	for _, obj := range objs {
		switch o := obj.(type) {
		case *rbacv1.Role:
			leases = o.Rules[1].ResourceNames
		case *corev1.ConfigMap:
			text = o.Data["config.yaml"]
		}
	}
	if diff := cmp.Diff([]string{"gangs"}, leases); diff != "" {
		t.Errorf("the Leases of the role (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(good, text); diff != "" {
		t.Errorf("the configuration (-want +got):\n%s", diff)
	}
}

const election = "leaderElection: {resourceName: gangs, resourceNamespace: ml}"

// configMistakes replace old by new in a good configuration.
var configMistakes = []struct{ name, old, new, want string }{
	{
		"another kind", "kind: KubeSchedulerConfiguration", "kind: ConfigMap",
		`s.yaml:2:7: kind: must be KubeSchedulerConfiguration, not "ConfigMap": --config takes what ` +
			`kube-scheduler's --config does`,
	},
	{
		"another version", "config.k8s.io/v1\n", "config.k8s.io/v1beta3\n",
		`s.yaml:1:13: apiVersion: must be kubescheduler.config.k8s.io/v1, not ` +
			`"kubescheduler.config.k8s.io/v1beta3": ` +
			`--config takes what kube-scheduler's --config does`,
	},
	{"empty", good, "# nothing\n", `s.yaml:1:1: must be a KubeSchedulerConfiguration: begin with 'apiVersion: ` +
		`kubescheduler.config.k8s.io/v1' and 'kind: KubeSchedulerConfiguration'`},
	{"no mapping", good, "- a\n", `s.yaml:1:1: must be a KubeSchedulerConfiguration: begin with 'apiVersion: ` +
		`kubescheduler.config.k8s.io/v1' and 'kind: KubeSchedulerConfiguration'`},
	{
		"no YAML", "kind: Kube", "kind: [Kube",
		`s.yaml:2:1: cannot be read as YAML: did not find expected ',' or ']'`,
	},
	{"two documents", "profiles:", "---\nprofiles:", `s.yaml:1:1: must be one document: the scheduler reads no ` +
		`further than '---'`},
	{"a key twice", "kind: KubeSchedulerConfiguration", "kind: KubeSchedulerConfiguration\n" +
		"kind: KubeSchedulerConfiguration", `s.yaml:3:1: cannot be read as YAML: key "kind" already set in map`},
	{
		"unknown field", "schedulerName: batch", "schedulerName: batch\n  percentOfNodes: 3",
		"s.yaml:6:19: profiles[0].percentOfNodes: is not a field of KubeSchedulerConfiguration of " +
			"kubescheduler.config.k8s.io/v1: correct its name or remove it",
	},
	{
		"wrong type", "{resourceName: gangs,", "{leaderElect: 'yes', resourceName: gangs,",
		"s.yaml:3:31: leaderElection.leaderElect: must be true or false, not a string",
	},
	{
		"wrong duration", "{resourceName: gangs,", "{leaseDuration: long, resourceName: gangs,",
		`s.yaml:1:1: cannot be read as a KubeSchedulerConfiguration: time: invalid duration "long"`,
	},
	{"no election", election + "\n", "", "s.yaml:1:1: leaderElection: is missing, and with it the Lease by which " +
		"one of the replicas leads: write {leaderElect: true, resourceName: tegen-scheduler, resourceNamespace: " +
		"ml}"},
	{
		"election off", "{resourceName: gangs,", "{leaderElect: false, resourceName: gangs,",
		"s.yaml:3:31: leaderElection.leaderElect: must be true: two replicas that both schedule give one place " +
			"to " +
			"two pods; write true, or leave it out",
	},
	{
		"another lock", "{resourceName: gangs,", "{resourceLock: endpoints, resourceName: gangs,",
		`s.yaml:3:32: leaderElection.resourceLock: must be leases, not "endpoints": kube-scheduler has no other; ` +
			`leave it out`,
	},
	{"no name", "{resourceName: gangs,", "{", "s.yaml:3:17: leaderElection.resourceName: is missing: " +
		"kube-scheduler would take kube-scheduler, the name of the cluster's own Lease; write resourceName: " +
		"tegen-scheduler"},
	{
		"wrong name", "resourceName: gangs", "resourceName: Gangs",
		`s.yaml:3:32: leaderElection.resourceName: must be the name of a Lease, of lower case letters, digits, ` +
			`'-' ` +
			`and '.', not "Gangs"`,
	},
	{"no namespace", ", resourceNamespace: ml}", "}", "s.yaml:3:17: leaderElection.resourceNamespace: is " +
		"missing: kube-scheduler would take kube-system, where the rendered Role does not reach; write " +
		"resourceNamespace: ml"},
	{
		"another namespace", "resourceNamespace: ml", "resourceNamespace: nlp",
		`s.yaml:3:58: leaderElection.resourceNamespace: must be the namespace of the installation, "ml", not ` +
			`"nlp": ` +
			`the rendered Role is for a Lease there; change it, or give --namespace nlp`,
	},
	{
		"a kubeconfig", "profiles:", "clientConnection: {kubeconfig: ~/.kube/config}\nprofiles:",
		`s.yaml:4:32: clientConnection.kubeconfig: must be left out, not "~/.kube/config": the pod has no such ` +
			`file ` +
			`and uses its ServiceAccount`,
	},
	{
		"no profile", good[strings.Index(good, "profiles:"):], "",
		"s.yaml:1:1: profiles: is missing: kube-scheduler would take one profile for the pods of " +
			"default-scheduler, " +
			"which the cluster's own scheduler places too; write one with another schedulerName",
	},
	{
		"no name of a profile", "- schedulerName: batch\n  pluginConfig", "- pluginConfig",
		"s.yaml:5:3: profiles[0].schedulerName: is missing: write the name that pods give in spec.schedulerName, " +
			"such as tegen-scheduler",
	},
	{
		"the cluster's profile", "batch", "default-scheduler",
		"s.yaml:5:18: profiles[0].schedulerName: must not be default-scheduler: the cluster's own scheduler " +
			"places " +
			"the same pods; give it another name, such as tegen-scheduler",
	},
	{
		"a profile twice", "profiles:", "profiles:\n- schedulerName: batch",
		`s.yaml:6:18: profiles[1].schedulerName: must differ from profiles[0].schedulerName, "batch": a pod ` +
			`names ` +
			`one profile; rename or remove one`,
	},
	{
		"several",
		"{resourceName: gangs, resourceNamespace: ml}\nprofiles:\n- schedulerName: batch",
		"{}\nprofiles:\n- schedulerName: ''",
		"s.yaml:3:17: leaderElection.resourceName: is missing: kube-scheduler would take kube-scheduler, the " +
			"name of the cluster's own Lease; write resourceName: tegen-scheduler\n" +
			"s.yaml:3:17: leaderElection.resourceNamespace: is missing: kube-scheduler would take kube-system, " +
			"where the rendered Role does not reach; write resourceNamespace: ml\n" +
			"s.yaml:5:18: profiles[0].schedulerName: is missing: write the name that pods give in " +
			"spec.schedulerName, such as tegen-scheduler",
	},
}

// TestConfigMistakes: each has its file, position, rule and remedy.
func TestConfigMistakes(t *testing.T) {
	for _, tc := range configMistakes {
		t.Run(tc.name, func(t *testing.T) {
			if strings.Count(good, tc.old) != 1 {
				t.Fatalf("%q is not in the text once", tc.old)
			}
			objs, err := install.Scheduler(options, &schema.Source{
				Name: "s.yaml",
				Data: []byte(strings.Replace(good, tc.old, tc.new, 1)),
			})
			var mistakes schema.Errors
			if !errors.As(err, &mistakes) || objs != nil {
				t.Fatalf("%d objects and %v, want mistakes alone", len(objs), err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestClusterLease: in kube-system the Lease of the cluster's own scheduler is taken.
func TestClusterLease(t *testing.T) {
	text := strings.NewReplacer("name: gangs", "name: kube-scheduler", "resourceName: gangs",
		"resourceName: kube-scheduler", "Namespace: ml", "Namespace: kube-system").Replace(good)
	o := options
	o.Namespace = "kube-system"
	_, err := install.Scheduler(o, &schema.Source{Name: "s.yaml", Data: []byte(text)})
	want := "s.yaml:3:32: leaderElection.resourceName: must not be kube-scheduler in kube-system, the Lease of the " +
		"cluster's own scheduler, which would then stand by for this one; write tegen-scheduler"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestConfigSize: what no ConfigMap could hold is refused here and not by a reconciler.
func TestConfigSize(t *testing.T) {
	_, err := install.Scheduler(options, &schema.Source{
		Name: "s.yaml",
		Data: []byte(good + "#" + strings.Repeat("a", install.MaxConfig)),
	})
	if err == nil || err.Error() != "s.yaml:1:1: is longer than the 512 KiB that a ConfigMap has room for" {
		t.Errorf("got %v", err)
	}
}
