#!/usr/bin/env bash
# Runs the scenarios of test/e2e/node in a lab, with what is missing installed and built first. The arguments go to the
# tests, such as -test.run TestSuspend. TEGEN_NODE_TABLE may name a file for the table of times, in Markdown;
# TEGEN_NODE_OPERATORS a folder with the program mpi-operator, without which MPIJobs are skipped; TEGEN_NODE_HOROVOD a
# tar.gz of the real Horovod, as test/e2e/node/mpijob_test.go says.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { printf 'skipped: %s\n' "$*"; exit 0; }
[ "$(uname -s)" = Linux ] || skip "real nodes need Linux"
[ "$(id -u)" = 0 ] || skip "real nodes need root, for namespaces, mounts and containers"
release=$(. /etc/os-release 2>/dev/null && printf '%s %s' "${ID-}" "${VERSION_ID-}") || true
[ "$release" = "debian 12" ] ||
	skip "real nodes need Debian 12: its packages are the runtime, and the image that trains"

# selected ARGUMENT...: prints the tests that run with these arguments.
selected() {
	local pattern=.
	while [ $# -gt 0 ]; do
		case $1 in
			-test.run | --test.run) pattern=${2-.} && shift ;;
			-test.run=* | --test.run=*) pattern=${1#*=} ;;
		esac
		shift
	done
	bin/e2e-node.test -test.list "${pattern%%/*}"
}

test/node/setup.sh
mkdir -p bin
# The lab has no network except its own, so everything is built before it starts.
make images IMAGES=tegen,tegen-rendezvous,tegen-scheduler ARCHITECTURES="$(go env GOARCH)" REGISTRY= TAG=
go build -o bin/lab ./test/node/cmd/lab
go build -o bin/tegen ./cmd/tegen
go test -vet=off -c -o bin/e2e-node.test ./test/e2e/node
# Controllers take minutes to compile; build those of the scenarios that will run.
controllers=()
while read -r scenario; do
	case $scenario in
		TestStart | TestRunbook) controllers+=(source-controller kustomize-controller) ;;
		TestJobSet) controllers+=(jobset) ;;
		TestTrainJob) controllers+=(jobset trainer) ;;
		TestPyTorchJob) controllers+=(training-operator) ;;
	esac
done < <(selected "$@")
[ ${#controllers[@]} = 0 ] || go run ./test/cluster/cmd/up --build "${controllers[@]}"
case "${TEGEN_NODE_TABLE-}" in "" | /*) ;; *) export TEGEN_NODE_TABLE=$PWD/$TEGEN_NODE_TABLE ;; esac
root=$PWD

loaded=
if [ ! -e /proc/sys/net/bridge ]; then
	modprobe br_netfilter # pods reach each other through Services by it; without it the lab says what it lacks
	loaded=1
fi

# What a lab may change of the machine, and must put back: addresses, mounts and rules that name it, files, groups.
host() {
	ip -o address | grep -E ' lab0 |10\.244\.' || true
	grep -E 'tegen-(lab|template)|/var/lib/kubelet' /proc/mounts || true
	nft --stateless list ruleset 2>/dev/null | grep -iE 'kube|cni' || true
	if command -v iptables-legacy-save >/dev/null; then
		iptables-legacy-save 2>/dev/null | grep -iE 'kube|cni' || true
	fi
	for path in /opt/containerd /usr/libexec/kubernetes /var/lib/kubelet /var/lib/cni /etc/cni/net.d /var/log/pods; do
		[ ! -e "$path" ] || echo "$path"
	done
	ls -d /sys/fs/cgroup/tegen-lab-"$1" /sys/fs/cgroup/*/tegen-lab-"$1" \
		"${TMPDIR:-/var/tmp}"/tegen-template-* 2>/dev/null || true
}
values() {
	(cd /proc/sys && tail -n +1 vm/overcommit_memory vm/panic_on_oom kernel/panic{,_on_oops} kernel/keys/root_max*)
}
# Where another lab runs, its end puts these back.
others=
[ ! -e /run/tegen-lab ] || others=1
before=$(host none)
values_before=$(values)
status=0
lab=
trap '[ -z "$lab" ] || kill -TERM "$lab" 2>/dev/null' HUP INT TERM
(cd test/e2e/node && exec "$root/bin/lab" --images="$root/dist/images" -- \
	"$root/bin/e2e-node.test" -test.v -test.timeout=40m "$@") &
lab=$!
wait "$lab" || status=$?
# A signal ends the waiting, not yet the lab.
while kill -0 "$lab" 2>/dev/null; do
	status=0
	wait "$lab" || status=$?
done
[ ! -e /run/tegen-lab ] || others=1
[ -z "$others" ] || values_before=$(values)
if ! diff <(printf '%s\n' "$before" "$values_before") <(printf '%s\n' "$(host "$lab")" "$(values)") >&2; then
	echo "the machine is not as it was" >&2
	status=1
fi
[ -z "$loaded" ] || modprobe -r br_netfilter || true
if [ "$status" = 0 ] && ran=$(git rev-parse --short=8 HEAD 2>/dev/null); then
	if [ -z "$(git status --porcelain)" ]; then
		echo "docs/proof.md: last run of the scenarios that passed: $ran, $(date -u +%F)"
	else
		echo "docs/proof.md: do not record this run: files differ from the commit $ran"
	fi
fi
exit "$status"
