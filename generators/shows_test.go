package generators

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
)

// shows are what a feature must add to what is rendered, or after "-" take away, on every target that carries it, so that
// none gets half of it. Each is a regular expression of a path with its value, as pathsIn has them.
var shows = map[string][]string{
	"launcher":                            {`\.env\[RDZV_ENDPOINT\]|command\[\]=train$`},
	"launcher=tegen":                      {`tegen-rendezvous`, `\[install-launcher\]`},
	"workingDir":                          {`\.workingDir=/workspace$`},
	"env":                                 {`\.env\[X\]\.value=x$`},
	"workers.min":                         {`.`},
	"workers.firstIndex":                  {`^Pod\.metadata\.name=j-worker-0$`, `\.env\[PET_RDZV_ENDPOINT\]\.value=j-worker-0`},
	"workers.master":                      {`\.Master\.`},
	"resources":                           {`\.requests\.cpu=500m$`},
	"rendezvous":                          {`^StatefulSet\.metadata\.name=e$`, `^Service\.metadata\.name=e$`, `=e:2379$|\.rdzvHost=e$`},
	"rendezvous.maxRestarts":              {`(\[PET_MAX_RESTARTS\]\.value|max[-_A-Za-z]*[rR]estarts)=7$`},
	"servers":                             {`=3$`, `^PodDisruptionBudget\.spec\.minAvailable=3$`},
	"ssh":                                 {`\.ports\[ssh\]\.containerPort=2222$`, `\.env\[TEGEN_SSH_PORT\]\.value=2222$`},
	"ssh.secret":                          {`\.volumes\[ssh-keys\]\.secret\.secretName=mine$`, `expects=Secret/mine$`},
	"mxnet":                               {`.`},
	"horovod":                             {`\.env\[TEGEN_START_SECONDS\]\.value=420$`},
	"bytescheduler":                       {`\.env\[BYTESCHEDULER_PARTITION\]\.value=7$`},
	"dlrover":                             {`\.args\[\]=--network-check$`},
	"suspend":                             {`(?i)suspend=true$|\.schedulingGates\[`},
	"storage":                             {`\.volumeMounts\[data\]\.mountPath=/data$`, `\.volumes\[data\]\.persistentVolumeClaim\.claimName=c$`},
	"storage.dataset":                     {`^Job\.metadata\.name=j-prefetch`, `\.initContainers\[wait-for-dataset\]`},
	"checkpoint":                          {`\.env\[CHECKPOINT_DIR\]\.value=/data/ckpt$`, `\.volumeMounts\[data\]\.mountPath=/data$`},
	"script.image":                        {`=/main\.py$`},
	"script.s3":                           {`=/tegen/script/main\.py$`, `\.initContainers\[fetch-script\]`, `\.volumes\[script\]\.emptyDir`},
	"script.configMap":                    {`=/tegen/script/main\.py$`, `\.volumes\[script\]\.configMap\.name=code$`, `\.volumeMounts\[script\]\.mountPath=`},
	"identity":                            {`\.serviceAccountName=trainer$`},
	"network.host":                        {`\.hostNetwork=true$`, `\.dnsPolicy=ClusterFirstWithHostNet$`},
	"network.interface":                   {`\.env\[NCCL_SOCKET_IFNAME\]\.value=eth1$`, `\.env\[GLOO_SOCKET_IFNAME\]\.value=eth1$`},
	"network.collective":                  {`\.env\[DIST_BACKEND\]\.value=gloo$`},
	"placement.scheduler":                 {`\.schedulerName=mine$`},
	"placement.priorityClass":             {`\.priorityClassName=batch$`},
	"placement.preemptionPolicy":          {`\.preemptionPolicy=Never$`},
	"placement.runtimeClass":              {`\.runtimeClassName=nvidia$`},
	"placement.nodeSelector":              {`\.nodeSelector\.a=b$`},
	"placement.tolerations":               {`\.tolerations\[\]\.key=a$`, `\.tolerations\[\]\.operator=Exists$`},
	"security.runAsGroup":                 {`\.securityContext\.runAsGroup=7$`},
	"failure.restarts":                    {`(backoffLimit|maxRestarts)=9$|\.maxRetry=10$`},
	"failure.restarts=none":               {`-(backoffLimit|maxRestarts)=`},
	"gang.scheduler=kubernetes":           {`\.schedulingGroup\.podGroupName=j$`, `^PodGroup\.metadata\.name=j$`},
	"failure.restartsPerWorker":           {`(backoffLimitPerIndex|restartCount)=9$`},
	"failure.fatalExitCodes":              {`.`},
	"failure.ignoreDisruptions":           {`-=DisruptionTarget$`},
	"failure.deadline":                    {`(?i)activeDeadlineSeconds=32400$`},
	"gracePeriod":                         {`\.terminationGracePeriodSeconds=420$`},
	"ttlAfterFinished":                    {`(?i)ttlSecondsAfterFinished=32400$`},
	"cleanPods":                           {`(?i)cleanPodPolicy=All$`},
	"hashedNames":                         {`\.metadata\.name=j.*-[0-9a-f]{8}$`},
	"roles.server":                        {`\.workingDir=/ps$`},
	"roles.scheduler":                     {`.`},
	"roles.launcher":                      {`\.image=y:1$`, `\.hostIPC=true$`},
	"roles.etcd":                          {`^StatefulSet\..*\.nodeSelector\.a=b$`},
	"roles.companion":                     {`^StatefulSet\..*\.nodeSelector\.a=b$`},
	"roles.helper":                        {`^Job\..*\.nodeSelector\.a=b$`},
	"torchelastic/trainjob/launcher":      {`-\.command\[\]=torchrun$`},
	"mxnet/job/failure.ignoreDisruptions": {`^Job\.spec\.backoffLimit=6$`}, // its example is of mode local
	"podTemplate":                         {`\.dnsPolicy=Default$`},
}

// shownBy is what a feature shows on a target. A gang shows its scheduler, or a key or object of it.
func shownBy(target schema.Target, feature string) []string {
	for _, key := range []string{target.Framework + "/" + target.Name + "/" + feature, target.Framework + "/" + feature, feature} {
		if patterns, ok := shows[key]; ok {
			return patterns
		}
	}
	scheduler, _ := strings.CutPrefix(feature, "gang.scheduler=")
	i := slices.IndexFunc(schema.Dialects, func(d schema.Dialect) bool { return d.Name == scheduler })
	if i < 0 {
		return nil
	}
	d := schema.Dialects[i]
	spec := schema.Spec{Target: target.Name, Gang: &schema.Gang{Scheduler: d.Name}}
	patterns := []string{}
	if d.Scheduler != "" {
		patterns = append(patterns, `\.schedulerName=`+d.Scheduler+`$`)
	}
	if len(d.Keys) > 0 && !spec.MakesPodGroup() {
		var keys []string
		for _, key := range d.Keys {
			keys = append(keys, regexp.QuoteMeta(key))
		}
		patterns = append(patterns, `(`+strings.Join(keys, "|")+`)=`)
	}
	return patterns
}
