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
root=$PWD
cd test/e2e/node
exec "$root/bin/lab" -- "$root/bin/e2e-node.test" -test.v -test.timeout=30m "$@"
