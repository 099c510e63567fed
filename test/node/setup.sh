#!/usr/bin/env bash
# Makes this machine ready for tests on a real node: installs Debian's container runtime and what the image of workers
# is made of, where they are missing. Nothing is started that was not running. Progress goes to standard error.
set -euo pipefail

say() { printf 'node: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The second list is Go's too, which reads from it what goes into the image.
mapfile -t packages < <(
	printf '%s\n' containerd containernetworking-plugins iproute2 iptables mount nftables procps runc util-linux
	cat "$here/image/packages.txt"
)

missing() { # of the packages in its arguments
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
	done
}

# A service that comes with its package is not wanted here: tests run runtimes of their own, and nobody needs to reach
# this machine by ssh who did not before.
keep_services() {
	local policy=/usr/sbin/policy-rc.d
	[ ! -e "$policy" ] || return 0 # the administrator's
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 0755 "$policy"
	trap "rm -f '$policy'" EXIT
	trap 'exit 1' HUP INT TERM
}

[ "$(uname -s)" = Linux ] || die "this needs Linux: containers are its own"
[ "$(id -u)" = 0 ] || die "this needs root: it installs packages"
command -v apt-get >/dev/null || die "this needs apt: the runtime and the image of workers are Debian's"
unshare --mount --net --pid --fork mount -t tmpfs tegen /mnt 2>/dev/null ||
	die "this needs namespaces and mounts, which this container does not allow; use a privileged one"
release=$(. /etc/os-release && printf '%s %s' "${ID-}" "${VERSION_ID-}")
[ "$release" = "debian 12" ] ||
	die "this is ${release:-an unknown system}; the image of workers is made of Debian 12's packages"

mapfile -t lack < <(missing "${packages[@]}" | sort -u)
if [ ${#lack[@]} -gt 0 ]; then
	say "installing ${lack[*]} (about two minutes)"
	keep_services
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=600 \
		--no-install-recommends "${lack[@]}" >&2
	for package in "${lack[@]}"; do # nor after the next boot
		case $package in
			containerd) systemctl --quiet disable containerd || true ;;
			openssh-server) systemctl --quiet disable ssh || true ;;
		esac
	done
fi
