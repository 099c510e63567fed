#!/usr/bin/env bash
# Makes this machine ready for tests under Flux and Argo CD: installs redis-server, in which Argo CD keeps its cache,
# where it is missing. Where it cannot be had, it says so and fails. Progress goes to standard error.
set -euo pipefail

say() { printf 'gitops: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ "$(uname -s)" = Linux ] || die "this needs Linux: the control plane of the tests runs nowhere else"
command -v git >/dev/null || die "this needs git: Flux and Argo CD pull from a repository that it serves"
! command -v redis-server >/dev/null || exit 0
missing="there is no redis-server, and"
command -v apt-get >/dev/null || die "$missing no apt to install it by: install it as your system does"
[ "$(id -u)" = 0 ] || die "$missing only root may install it: sudo apt-get install redis-server"

# The package starts a server of its own, which nobody asked for: the tests start theirs on a free port.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 0755 "$policy"
	trap "rm -f '$policy'" EXIT
	trap 'exit 1' HUP INT TERM
fi
say "installing redis-server (a few seconds)"
apt-get update -q >&2 || say "the lists of packages cannot be renewed; trying those of before"
DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=600 --no-install-recommends \
	redis-server >&2 || die "$missing apt cannot install it"
if command -v systemctl >/dev/null; then # nor after the next boot
	systemctl --quiet disable redis-server || true
fi
