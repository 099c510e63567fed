#!/usr/bin/env bash
# Runs the scenarios of test/e2e/node on a kind cluster made of overlays/kind/cluster.yaml, with five more nodes for the
# scenarios that ask for some, and deletes it in the end. The arguments go to the tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { printf 'skipped: %s\n' "$*"; exit 0; }
for program in docker kind kubectl; do
	command -v "$program" >/dev/null || skip "$program is not here; make e2e-node needs neither docker nor kind"
done
docker info >/dev/null 2>&1 || skip "docker does not answer"
[ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] || 
	skip "the tests serve a data set on port 80 of docker's network, as root on Linux"

name=tegen-e2e-$$
work=$(mktemp -d)
cleanup() {
	kind delete cluster --name "$name" --kubeconfig "$work/kubeconfig" || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

docker build -t tegen-test-worker:1 test/node/image
architecture=$(go env GOARCH)
make images IMAGES=tegen-scheduler,tegen-rendezvous ARCHITECTURES="$architecture" REGISTRY= TAG=latest
mkdir -p bin
go test -vet=off -c -o bin/e2e-node.test ./test/e2e/node

# The further nodes go into the list of nodes that the file begins. Beside them the first takes no pods, so that two are
# for all scenarios where each has two cores, and three for those that want their own.
# All see one folder of this machine, so that a claim may be used on several nodes, as the fixtures of scenarios 4 and
# 5 ask.
mkdir -m 0777 "$work/shared"
mount="  extraMounts: [{hostPath: $work/shared, containerPath: /shared}]"
awk -v mount="$mount" '{ print }
	/^- role: control-plane/ { print mount; for (i = 0; i < 5; i++) print "- role: worker\n" mount }' \
	overlays/kind/cluster.yaml >"$work/cluster.yaml"
kind create cluster --name "$name" --config "$work/cluster.yaml" --kubeconfig "$work/kubeconfig" --wait 3m
for image in tegen-scheduler tegen-rendezvous; do
	kind load image-archive "dist/images/$image.tar" --name "$name"
done
export KUBECONFIG=$work/kubeconfig TEGEN_NODE_KIND=$name
kubectl wait --for=condition=Ready nodes --all --timeout=3m
kubectl --namespace local-path-storage patch configmap local-path-config \
	--patch '{"data":{"config.json":"{\"sharedFileSystemPath\":\"/shared\"}"}}'
kubectl --namespace local-path-storage rollout restart deployment local-path-provisioner
case "${TEGEN_NODE_TABLE-}" in "" | /*) ;; *) export TEGEN_NODE_TABLE=$PWD/$TEGEN_NODE_TABLE ;; esac
root=$PWD
(cd test/e2e/node && "$root/bin/e2e-node.test" -test.v -test.timeout=60m "$@")
