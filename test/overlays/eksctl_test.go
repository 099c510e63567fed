package overlays

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// definition is one of eksctl's, of which only those fields are here that overlays/eks/cluster.yaml uses. Everywhere
// but in a document of IAM, eksctl refuses a field that its schema does not have.
type definition struct {
	required []string
	fields   map[string]string // the type: string, integer, boolean, document, another definition, or a list of it
	enums    map[string][]string
}

// definitions were read from eksctl's published JSON schema, pkg/apis/eksctl.io/v1alpha5/assets/schema.json of
// github.com/eksctl-io/eksctl at 99984adb6164, 0.231.0-dev of August 2026.
var definitions = map[string]definition{
	"ClusterConfig": {
		required: []string{"apiVersion", "kind", "metadata"},
		fields: map[string]string{
			"apiVersion": "string", "kind": "string", "metadata": "ClusterMeta", "addons": "[]Addon",
			"iam":               "ClusterIAM",
			"managedNodeGroups": "[]ManagedNodeGroup",
		},
		enums: map[string][]string{"apiVersion": {"eksctl.io/v1alpha5"}, "kind": {"ClusterConfig"}},
	},
	"ClusterMeta": {
		required: []string{"name", "region"},
		fields:   map[string]string{"name": "string", "region": "string", "version": "string"},
		// Read from pkg/apis/eksctl.io/v1alpha5/types.go, which the schema does not say.
		enums: map[string][]string{"version": {"1.31", "1.32", "1.33", "1.34", "1.35"}},
	},
	"Addon": {
		required: []string{"name"},
		fields: map[string]string{
			"name": "string", "configurationValues": "string", "podIdentityAssociations": "[]PodIdentityAssociation",
		},
	},
	"ClusterIAM": {fields: map[string]string{"podIdentityAssociations": "[]PodIdentityAssociation"}},
	"PodIdentityAssociation": {
		// Read from validation.go and addon.go beside the schema, which does not say so itself.
		required: []string{"namespace", "serviceAccountName"},
		fields: map[string]string{
			"namespace": "string", "serviceAccountName": "string", "createServiceAccount": "boolean",
			"permissionPolicyARNs": "[]string", "permissionPolicy": "document",
		},
	},
	"ManagedNodeGroup": {
		required: []string{"name"},
		fields: map[string]string{
			"name": "string", "instanceType": "string", "minSize": "integer", "desiredCapacity": "integer",
			"maxSize":           "integer",
			"privateNetworking": "boolean", "volumeSize": "integer", "ssh": "NodeGroupSSH", "iam": "NodeGroupIAM",
			"taints": "[]NodeGroupTaint",
		},
	},
	"NodeGroupSSH": {fields: map[string]string{"allow": "boolean", "publicKeyPath": "string"}},
	"NodeGroupIAM": {fields: map[string]string{"attachPolicyARNs": "[]string"}},
	"NodeGroupTaint": {
		fields: map[string]string{"key": "string", "value": "string", "effect": "string"},
		enums:  map[string][]string{"effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"}},
	},
}

// nodePolicies are what eksctl gives the role of a managed group by itself, and leaves out as soon as the group names
// any policy (makeManagedPolicies in pkg/cfn/builder/iam_helper.go). Without the first three a node never joins.
var nodePolicies = []string{
	"arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
	"arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
	"arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
}

// against says what of a value does not fit a type of the table.
func against(kind string, value any, at string) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	if of, list := strings.CutPrefix(kind, "[]"); list {
		items, ok := value.([]any)
		if !ok {
			fail("must be a list")
		}
		for i, item := range items {
			wrong = append(wrong, against(of, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return wrong
	}
	number, isNumber := value.(float64)
	fields, isMap := value.(map[string]any)
	_, isText := value.(string)
	_, isTruth := value.(bool)
	def, known := definitions[kind]
	switch {
	case known && !isMap, kind == "document" && !isMap:
		fail("must be a mapping")
	case kind == "string" && !isText, kind == "boolean" && !isTruth,
		kind == "integer" && (!isNumber || number != float64(int(number))):
		fail("must be a %s", kind)
	case known:
		for _, name := range def.required {
			if _, ok := fields[name]; !ok {
				fail("%s is missing", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if of, ok := def.fields[name]; ok {
				wrong = append(wrong, against(of, fields[name], at+"."+name)...)
			} else {
				fail("no field %q of %s", name, kind)
			}
			if enum := def.enums[name]; len(enum) > 0 && !slices.Contains(enum, fmt.Sprint(fields[name])) {
				fail("%s must be one of %s", name, strings.Join(enum, ", "))
			}
		}
	}
	return wrong
}
