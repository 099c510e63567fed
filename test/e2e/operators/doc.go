// Package operators holds what tegen renders against the programs that it is for: the controllers of custom resources,
// and the schedulers of gangs. It tries every one that it finds in the cluster of KUBECONFIG, as make e2e-operators
// does, and says of the others how they are installed.
package operators
