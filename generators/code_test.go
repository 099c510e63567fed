package generators_test

import (
	"testing"
)

// TestCodeKey: git-sync runs as the user of its image, whom ssh finds in passwd, whoever the workers are; the key is
// readable for it also where the pod has no group of its own.
func TestCodeKey(t *testing.T) {
	for security, mode := range map[string]int32{
		"": 0o440, "security: {runAsUser: 1000}": 0o440, "security: {runAsUser: 0}": 0o440,
		"security: {runAsUser: image}": 0o444, "security: {fsGroup: none}": 0o444,
	} {
		git := "code: {mountPath: /w, git: {repository: 'ssh://git@host/a.git', secret: s}}"
		job := load(t, jobText("workers: {replicas: 1}", git, security))
		found := 0
		for _, p := range pods(objects(job)) {
			for _, c := range p.spec.InitContainers {
				if rights := c.SecurityContext; c.Name == "fetch-code" {
					found++
					if *rights.RunAsUser != 65533 || !*rights.RunAsNonRoot {
						t.Errorf("%q: git-sync runs as %d", security, *rights.RunAsUser)
					}
				}
			}
			for _, v := range p.spec.Volumes {
				if v.Name == "code-key" && *v.Secret.DefaultMode != mode {
					t.Errorf("%q: the key has mode %o, not %o", security, *v.Secret.DefaultMode, mode)
				}
			}
		}
		if found == 0 {
			t.Errorf("%q: nothing fetches the code", security)
		}
	}
}
