package meaning

import (
	"regexp"
	"slices"
	"strings"
)

// Class says of what kind a difference is.
type Class string

// The classes.
const (
	Real   Class = "real"   // something runs otherwise
	Safer  Class = "safer"  // only the second has it, and it takes rights away
	Silent Class = "silent" // only the second has it, and no program notices
)

var (
	safer = regexp.MustCompile(`(^|: |/)(security/(allowPrivilegeEscalation|capabilities\.drop|seccompProfile\.type|` +
		`runAsNonRoot|readOnlyRootFilesystem|fsGroupChangePolicy)|isolated)$`)
	silent = regexp.MustCompile(`(^|: |/)((job's )?(label/|annotation/|` +
		`runtime's template.metadata.labels.)(app\.kubernetes\.io/|` +
		`tegen\.dev/|trainer\.kubeflow\.org/).*|env/(TEGEN_.*|PYTHONUNBUFFERED|TORCH_DISABLE_SHARE_RDZV_TCP_STORE|` +
		`RDZV_ENDPOINT|JOB_ID|MIN_SIZE|MAX_SIZE|SIZE|(OMPI|PRTE)_MCA_\w+_keep_fqdn_hostnames)|port/.*|indexed|` +
		`plugin/env|plugin/svc --publish-not-ready-addresses|plugin/svc --disable-network-policy=true|` +
		`podReplacementPolicy|order|rendezvous's settings)$`)
)

// unknownOfRole are fields that people write of a role and that its API has not: an API server drops what the schema of
// a kind does not name, and a role there is replicas, restartPolicy and template (spec.versions[v1] of the CRDs
// pytorchjobs and mxjobs of kubeflow.org).
var unknownOfRole = []string{"PyTorchJob: role's imagePullPolicy", "MXJob: role's imagePullPolicy"}

// Class says what a difference is worth.
func (d Difference) Class() Class {
	switch {
	case d.About == suspendedByKueue:
		return Silent
	case d.About == "network.enableDNSHostnames" && d.Before == "false":
		return Silent // one Service more
	case d.After == "" && slices.Contains(unknownOfRole, d.Kind+d.About[max(strings.LastIndex(d.About, ":"), 0):]):
		return Silent // no pod has it, before or after
	case d.After == "" && strings.HasSuffix(d.Path, ".template.spec.imagePullPolicy"):
		return Silent // a pod has none, but its containers (PodSpec of core/v1)
	case d.Before == "" && strings.Contains(d.About, "unmounted/") && strings.HasPrefix(d.After, `{"emptyDir"`):
		return Silent // an empty folder that no container sees
	case d.About == "failurePolicy.restartStrategy" && d.Before == "" && d.After == "BlockingRecreate":
		return Safer // as by default, but no pod of the next attempt runs beside one of the last
	case d.About == "backoffLimit" && d.Before == "" && d.After == "6" && d.Kind == "MPIJob":
		return Silent // what the launcher's Job has by itself
	case d.Before == "" && d.After == "false" && strings.HasSuffix(d.About, "security/readOnlyRootFilesystem"):
		return Silent // as it is where nobody says
	case d.Before == "" && safer.MatchString(d.About):
		return Safer
	case d.Before == "" && silent.MatchString(d.About):
		return Silent
	}
	return Real
}
