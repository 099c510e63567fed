package operators

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tegen-dev/tegen/test/cluster"
)

// dlroverSources names the folder of DLRover's sources in which a master's command finds its modules.
const dlroverSources = "TEGEN_OPERATORS_DLROVER"

// runMaster runs the command of a master's pod in this machine, as the account of the pod: on a node that KWOK plays,
// no command runs. The pod ends as the command does.
func (p *place) runMaster(pod corev1.Pod) {
	p.Helper()
	dir := os.Getenv(dlroverSources)
	if dir == "" {
		p.Skipf("on a node without containers no master runs, which makes the workers: set %s to the folder of "+
			"DLRover's sources to run its pod's command there, with a python on PATH that has its modules",
			dlroverSources)
	}
	log, err := os.Create(filepath.Join(p.TempDir(), pod.Name+".log"))
	if err != nil {
		p.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	cmd := exec.CommandContext(p.T.Context(), c.Command[0], append(c.Command[1:], c.Args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfigOf(pod), "POD_IP="+pod.Status.PodIP)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := cmd.Wait()
		switch {
		case p.T.Context().Err() != nil:
		case err == nil:
			p.end(cluster.OutcomeSucceeded, pod)
		default:
			p.exit(int32(cmd.ProcessState.ExitCode()), pod)
		}
	}()
	p.Cleanup(func() { // the context has ended
		<-ended
		if text, err := os.ReadFile(log.Name()); p.Failed() {
			p.Logf("the master's log ends: %s%v", text[max(0, len(text)-16<<10):], err)
		}
	})
}

// kubeconfigOf writes the credentials that a pod has.
func (p *place) kubeconfigOf(pod corev1.Pod) string {
	p.Helper()
	token, err := p.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(p.Context(), pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	config := p.cluster.Config()
	if config.CAData == nil && config.CAFile != "" {
		if config.CAData, err = os.ReadFile(config.CAFile); err != nil {
			p.Fatal(err)
		}
	}
	file := filepath.Join(p.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{
			"cluster": {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos:      map[string]*api.AuthInfo{"pod": {Token: token.Status.Token}},
		Contexts:       map[string]*api.Context{"pod": {Cluster: "cluster", AuthInfo: "pod"}},
		CurrentContext: "pod",
	}, file)
	if err != nil {
		p.Fatal(err)
	}
	return file
}

// master waits until the controller has made the pod of a job's master, and until it runs.
func (p *place) master(namespace, job string) corev1.Pod {
	p.Helper()
	return p.running(1, namespace, fmt.Sprintf("elasticjob.dlrover/name=%s,%s", job, dlroverMasters))[0]
}

// dlroverMasters selects the masters.
const dlroverMasters = "elasticjob.dlrover/replica-type=dlrover-master"
