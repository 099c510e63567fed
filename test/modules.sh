#!/usr/bin/env bash
# test/modules.sh MODULES ARGUMENT...: runs "go test -json ARGUMENT..." in each of some modules, for gotestsum. With
# BESIDE=1 all modules are tested at the same time, since many tests wait more than they compute; output of the first
# is printed while it runs, that of the others when all have ended.
set -uo pipefail

# The tests of internal/command, for example, spend two fifths of their CPU time on garbage collection with 100, the
# default.
export GOGC="${GOGC-400}"

run() (cd "$1" && shift && exec go test -json -vet=off -timeout 60m "$@")

read -ra modules <<<"$1"
shift
status=0
if [ -z "${BESIDE-}" ]; then
	for module in "${modules[@]}"; do
		run "$module" "$@" || status=1
	done
	exit "$status"
fi
outputs=$(mktemp -d) || exit 1
trap 'rm -rf "$outputs"' EXIT
jobs=()
for i in "${!modules[@]}"; do
	[ "$i" = 0 ] || { run "${modules[i]}" "$@" >"$outputs/$i" & jobs+=($!); }
done
run "${modules[0]}" "$@" || status=1
for job in "${jobs[@]}"; do
	wait "$job" || status=1
done
cat "$outputs"/* 2>/dev/null
exit "$status"
