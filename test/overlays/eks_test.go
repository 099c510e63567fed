// Package overlays holds what overlays/eks says of a cluster against what is known of the programs that read it, and
// its files against each other.
package overlays

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

const eks = "../../overlays/eks/"

// association lets a ServiceAccount have policies of AWS.
type association struct {
	Namespace          string   `json:"namespace"`
	ServiceAccountName string   `json:"serviceAccountName"`
	Policies           []string `json:"permissionPolicyARNs"`
	Policy             struct {
		Statement []struct {
			Action, Resource []string
		}
	} `json:"permissionPolicy"`
}

// cluster is what the tests look at in cluster.yaml.
type cluster struct {
	Addons []struct {
		Name          string        `json:"name"`
		Configuration string        `json:"configurationValues"`
		Associations  []association `json:"podIdentityAssociations"`
	} `json:"addons"`
	IAM struct {
		Associations []association `json:"podIdentityAssociations"`
	} `json:"iam"`
	Groups []group `json:"managedNodeGroups"`
}

type group struct {
	Name         string `json:"name"`
	InstanceType string `json:"instanceType"`
	Min          int    `json:"minSize"`
	Desired      int    `json:"desiredCapacity"`
	Max          int    `json:"maxSize"`
	SSH          *struct {
		Allow         bool
		PublicKeyPath string
	} `json:"ssh"`
	IAM struct {
		Policies []string `json:"attachPolicyARNs"`
	} `json:"iam"`
	Taints []corev1.Taint `json:"taints"`
}

// environment is what the tests look at in environment.yaml.
type environment struct {
	Spec struct {
		Defaults struct {
			Identity struct {
				ServiceAccount string `json:"serviceAccount"`
			} `json:"identity"`
		} `json:"defaults"`
		Accelerator struct {
			NodeSelector map[string]string   `json:"nodeSelector"`
			Tolerations  []corev1.Toleration `json:"tolerations"`
			Each         struct {
				CPU    resource.Quantity `json:"cpu"`
				Memory resource.Quantity `json:"memory"`
			} `json:"each"`
		} `json:"accelerator"`
		Storage struct {
			EFS struct {
				Provision map[string]string `json:"provision"`
			} `json:"efs"`
		} `json:"storage"`
	} `json:"spec"`
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(eks, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCluster: the file is one that eksctl takes, and makes what the overlay's jobs rely on.
func TestCluster(t *testing.T) {
	for _, problem := range problems(t, read(t, "cluster.yaml"), read(t, "environment.yaml")) {
		t.Error(problem)
	}
}

// TestClusterMutants: each of these was once left out, or is a likely slip, and has to be noticed.
func TestClusterMutants(t *testing.T) {
	for name, c := range map[string]struct{ old, mutant, want string }{
		"a field of another version": {"minSize:", "minNodes:", `no field "minNodes" of ManagedNodeGroup`},
		"a number for a version":     {`version: "1.34"`, "version: 1.34", "metadata.version: must be a string"},
		"a version that is gone":     {`version: "1.34"`, `version: "1.14"`, "version must be one of"},
		"a driver without rights":    {"AmazonEFSCSIDriverPolicy", "ReadOnlyAccess", "has no AmazonEFSCSIDriverPolicy"},
		"another account's name":     {"efs-csi-controller-sa", "efs-csi", "has no AmazonEFSCSIDriverPolicy"},
		"no agent": {
			"- name: eks-pod-identity-agent", "- name: coredns",
			"need the addon eks-pod-identity-agent",
		},
		"no class for one pod": {`"enabled": true`, `"enabled": false`, "no default StorageClass"},
		"no reading of S3":     {"    - arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess\n", "", "cannot read S3"},
		"no policy of eksctl's": {
			"    - arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy\n", "",
			"AmazonEKS_CNI_Policy",
		},
		"no ssh":                  {"allow: true", "allow: false", "ssh"},
		"an untolerated taint":    {"key: nvidia.com/gpu", "key: gpu", "does not tolerate"},
		"a group of another name": {"name: gpu ", "name: accelerated ", "no group of the name"},
		"sizes that contradict":   {"maxSize: 3", "maxSize: 1", "sizes are not in order"},
		"another account for pods": {
			"serviceAccountName: training", "serviceAccountName: trainer",
			"no association for training",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := read(t, "cluster.yaml")
			if !strings.Contains(text, c.old) {
				t.Fatalf("nothing to change: %q is not in the file", c.old)
			}
			found := problems(t, strings.Replace(text, c.old, c.mutant, 1), read(t, "environment.yaml"))
			if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("got %q, want one with %q", found, c.want)
			}
		})
	}
}

// problems is what is wrong with a cluster, by itself or for the environment's jobs.
func problems(t *testing.T, clusterText, environmentText string) []string {
	t.Helper()
	found := against("ClusterConfig", parse[any](t, clusterText), "ClusterConfig")
	if len(found) > 0 {
		return found
	}
	c, env := parse[cluster](t, clusterText), parse[environment](t, environmentText)
	return append(addonProblems(c, env), groupProblems(c, env)...)
}

func addonProblems(c cluster, env environment) (found []string) {
	policies, defaultClass, agent := map[string][]string{}, false, false
	for _, addon := range c.Addons {
		agent = agent || addon.Name == "eks-pod-identity-agent"
		for _, a := range addon.Associations {
			policies[addon.Name+" "+a.Namespace+"/"+a.ServiceAccountName] = a.Policies
		}
		var values struct{ DefaultStorageClass struct{ Enabled bool } }
		if addon.Configuration != "" && json.Unmarshal([]byte(addon.Configuration), &values) != nil {
			found = append(found, addon.Name+": configurationValues is no JSON")
		}
		defaultClass = defaultClass || addon.Name == "aws-ebs-csi-driver" && values.DefaultStorageClass.Enabled
	}
	if !agent {
		found = append(found, "associations need the addon eks-pod-identity-agent")
	}
	// The controllers' ServiceAccounts are named in deploy/kubernetes/base of either driver's repository.
	for driver, policy := range map[string]string{
		"efs": "AmazonEFSCSIDriverPolicy",
		"ebs": "AmazonEBSCSIDriverPolicy",
	} {
		account := "aws-" + driver + "-csi-driver kube-system/" + driver + "-csi-controller-sa"
		if !slices.Contains(policies[account], "arn:aws:iam::aws:policy/service-role/"+policy) {
			found = append(found, account+" has no "+policy+": claims stay Pending")
		}
	}
	if !defaultClass { // what schema/environment.go leaves the volumes of an etcd to, where volumes are on EFS
		found = append(found, "no default StorageClass for the volumes of one pod")
	}
	if env.Spec.Storage.EFS.Provision["directoryPerms"] == "" {
		found = append(found, "environment.yaml: volumes are no access points, and a fresh file system belongs to root")
	}
	account := env.Spec.Defaults.Identity.ServiceAccount
	reads := func(a association) bool {
		s := a.Policy.Statement
		return a.ServiceAccountName == account && len(s) > 0 && slices.Contains(s[0].Action, "s3:GetObject")
	}
	if !slices.ContainsFunc(c.IAM.Associations, reads) {
		found = append(found, "no association for "+account+", as whom the jobs' pods run, that reads S3")
	}
	return found
}

func groupProblems(c cluster, env environment) (found []string) {
	selected := false
	for _, g := range c.Groups {
		if g.Min > g.Desired || g.Desired > g.Max || g.Min < 1 {
			found = append(found, g.Name+": sizes are not in order")
		}
		for _, policy := range nodePolicies {
			if len(g.IAM.Policies) > 0 && !slices.Contains(g.IAM.Policies, policy) {
				found = append(found, g.Name+": names policies, and so loses "+policy)
			}
		}
		if !slices.Contains(g.IAM.Policies, "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess") {
			found = append(found, g.Name+": pods with identity.nodeRole cannot read S3 there")
		}
		if env.Spec.Accelerator.NodeSelector["eks.amazonaws.com/nodegroup"] != g.Name { // a label that EKS sets
			if len(g.Taints) > 0 {
				found = append(found, g.Name+": is tainted, and not for accelerators")
			}
			continue
		}
		selected = true
		if g.SSH == nil || !g.SSH.Allow || g.SSH.PublicKeyPath == "" {
			found = append(found, g.Name+": no ssh to the nodes that train")
		}
		for _, taint := range g.Taints {
			tolerates := func(tol corev1.Toleration) bool {
				return tol.ToleratesTaint(klog.Background(), &taint, false)
			}
			if !slices.ContainsFunc(env.Spec.Accelerator.Tolerations, tolerates) {
				found = append(found, g.Name+": environment.yaml does not tolerate "+taint.Key)
			}
		}
	}
	if !selected {
		found = append(found, "environment.yaml selects no group of the name")
	}
	return found
}

// instances are what AWS's tables of instance types say of those in cluster.yaml.
var instances = map[string]struct {
	cpu, memory string
	gpus        int64
}{
	"m6i.xlarge": {"4", "16Gi", 0},
	"g5.2xlarge": {"8", "32Gi", 1},
	"g5.4xlarge": {"16", "64Gi", 1},
}

// TestJobFits: a worker of the overlay's own job, and what comes with each accelerator, have a place on a node of the
// overlay, which keeps some of it for itself: a tenth of the memory is more than a kubelet and the system's pods take
// (EKS reserves 255 MiB and 11 MiB for each of the 234 pods of a g5.4xlarge).
func TestJobFits(t *testing.T) {
	env := parse[environment](t, read(t, "environment.yaml"))
	name, gpus, cpu, memory := acceleratorNode(t, parse[cluster](t, read(t, "cluster.yaml")), env)
	fits := func(what string, wantCPU, wantMemory resource.Quantity) {
		if wantCPU.MilliValue() > cpu.MilliValue()-500 || wantMemory.Value() > memory.Value()*9/10 {
			t.Errorf("%s: cpu %s and memory %s are more than a %s has free", what, &wantCPU, &wantMemory, name)
		}
	}
	each := env.Spec.Accelerator.Each
	if each.CPU.IsZero() || each.Memory.IsZero() {
		t.Fatal("environment.yaml does not say what comes with each accelerator")
	}
	each.CPU.Mul(gpus)
	each.Memory.Mul(gpus)
	fits("environment.yaml", each.CPU, each.Memory)
	if each.Memory.Value() < memory.Value()*3/4 {
		t.Errorf("environment.yaml: memory %s leaves a quarter of a %s idle", &each.Memory, name)
	}
	job := parse[struct {
		Kind string
		Spec struct {
			Resources struct {
				GPU         int64
				CPU, Memory *resource.Quantity
			}
		}
	}](t, read(t, "resnet.yaml"))
	want := job.Spec.Resources
	if job.Kind != "TrainingJob" || want.GPU == 0 {
		t.Fatalf("resnet.yaml is no job with accelerators: %+v", job)
	}
	if want.GPU > gpus {
		t.Errorf("resnet.yaml asks for %d accelerators, and a %s has %d", want.GPU, name, gpus)
	}
	if want.CPU != nil && want.Memory != nil {
		fits("resnet.yaml", *want.CPU, *want.Memory)
	}
}

// TestReadmeCommands: they speak to the cluster's region, and no mount target is made before its file system can have
// one.
func TestReadmeCommands(t *testing.T) {
	text, region := read(t, "README.md"), parse[struct{ Metadata struct{ Region string } }](t, read(t, "cluster.yaml")).
		Metadata.Region
	first := strings.Index(text, "aws eks")
	if at := strings.Index(text, "export AWS_REGION="+region+" "); at < 0 || at > first {
		t.Errorf("no command sets the region %s before the first one", region)
	}
	made, ready, target := strings.Index(text, "create-file-system"), strings.Index(text,
		"= available ]; do"), strings.Index(text, "create-mount-target")
	if made < 0 || ready < made || target < ready {
		t.Error("a mount target is made of a file system that is not available yet")
	}
}

// acceleratorNode is what a node has of the group that the environment selects.
func acceleratorNode(t *testing.T, c cluster, env environment) (name string, gpus int64, cpu,
	memory resource.Quantity,
) {
	t.Helper()
	label := env.Spec.Accelerator.NodeSelector["eks.amazonaws.com/nodegroup"]
	i := slices.IndexFunc(c.Groups, func(g group) bool { return g.Name == label })
	if i < 0 {
		t.Fatalf("environment.yaml selects the group %q, which cluster.yaml has not", label)
	}
	name = c.Groups[i].InstanceType
	node, ok := instances[name]
	if !ok {
		t.Fatalf("what has a %s? Put it into the table", name)
	}
	return name, node.gpus, resource.MustParse(node.cpu), resource.MustParse(node.memory)
}

var (
	row      = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z.]+) \\|")
	invented = regexp.MustCompile(`your|example|<[^>]*>|0123456789|0{8}|~/|[Rr]eplace me|TODO`)
	comment  = regexp.MustCompile(`(?m)(^|\s)#.*$`)
)

// TestPlaceholders: what somebody has to fill in is what README.md says, no more and no less.
func TestPlaceholders(t *testing.T) {
	named := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "README.md"), -1) {
		named[m[2]] = append(named[m[2]], m[1])
	}
	if len(named) == 0 {
		t.Fatal("README.md has no table of placeholders")
	}
	files, err := filepath.Glob(eks + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		text := comment.ReplaceAllString(read(t, file), "")
		for _, value := range named[file] {
			if !strings.Contains(text, value) {
				t.Errorf("README.md names %q, which is not in %s", value, file)
			}
			text = strings.ReplaceAll(text, value, "")
		}
		if m := invented.FindString(text); m != "" {
			t.Errorf("%s holds %q, which README.md does not name", file, m)
		}
	}
}
