#!/usr/bin/env bash
# Runs the scenarios of test/e2e/node in a lab, with what is missing installed and built first. The arguments go to the
# tests, such as -test.run TestSuspend. TEGEN_NODE_TABLE may name a file for the table of times, in Markdown.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { printf 'skipped: %s\n' "$*"; exit 0; }
[ "$(uname -s)" = Linux ] || skip "real nodes need Linux"
[ "$(id -u)" = 0 ] || skip "real nodes need root, for namespaces, mounts and containers"
command -v apt-get >/dev/null || skip "real nodes need Debian 12: its packages are the runtime, and the image that trains"

test/node/setup.sh
mkdir -p bin
# Built out here, where there is a network: inside the lab there is none but its own.
go build -o bin/lab ./test/node/cmd/lab
go test -c -o bin/e2e-node.test ./test/e2e/node
case "${TEGEN_NODE_TABLE-}" in "" | /*) ;; *) export TEGEN_NODE_TABLE=$PWD/$TEGEN_NODE_TABLE ;; esac
# What a lab may change of the machine, and must put back.
host() {
	(cd /proc/sys && tail -n +1 vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops net/ipv4/ip_forward)
	ip -o link | cut -d ' ' -f 2
	cut -d ' ' -f 2 /proc/mounts
	nft list ruleset
}
before=$(host)
status=0
root=$PWD
(cd test/e2e/node && exec "$root/bin/lab" -- "$root/bin/e2e-node.test" -test.v -test.timeout=30m "$@") || status=$?
if ! diff <(printf '%s\n' "$before") <(host) >&2; then
	echo "the machine is not as it was" >&2
	status=1
fi
exit "$status"
