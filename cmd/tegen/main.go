// Command tegen renders training jobs into Kubernetes manifests: as a CLI, and as a KRM function of kustomize and kpt.
package main

import "github.com/tegen-dev/tegen"

func main() { tegen.Main() }
