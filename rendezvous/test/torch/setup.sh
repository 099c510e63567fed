#!/usr/bin/env bash
# Makes this machine ready for the tests with real PyTorch: installs Debian's packages of etcd 3.4 and torch 1.13, and
# makes a root folder for each newer torch that TEGEN_TORCH_VERSIONS names (all by default). Root folders are kept.
# Progress goes to standard error, the name of the folder that holds the root folders to standard output.
set -euo pipefail

say() { printf 'torch: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

packages=(etcd-server etcd-client python3-torch python3-etcd)
suites=()
case ",${TEGEN_TORCH_VERSIONS:-2.6}," in *,2.6,*) suites+=(trixie) ;; esac
case ",${TEGEN_TORCH_VERSIONS:-2.14}," in *,2.14,*) suites+=(sid) ;; esac

missing() { # of the packages in its arguments
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
	done
}

install_packages() {
	mapfile -t lack < <(missing "$@")
	[ ${#lack[@]} -gt 0 ] || return 0
	say "installing ${lack[*]} (about a minute)"
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=600 \
		--no-install-recommends "${lack[@]}" >&2
}

# Made under another name and renamed, so that one that was given up half-way is never taken for whole. Mirrors that
# stand still, as those of a build farm may, hold an old list of sid: how old is of no matter here.
make_root() {
	local suite=$1 root=$2
	local partial=$root.$$
	say "making a root folder of $suite: about 200 s and 1 GB, once"
	trap "rm -rf '$partial'" EXIT
	mmdebstrap --quiet --variant=apt --include=python3-torch,python3-etcd,procps \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$partial" >&2
	rm -rf "$root"
	mv "$partial" "$root"
	trap - EXIT
	say "made $root after ${SECONDS} s"
}

[ "$(uname -s)" = Linux ] || die "this needs Linux, with apt"
[ "$(id -u)" = 0 ] || die "this needs root: it installs packages, and enters root folders by chroot"
command -v apt-get >/dev/null || die "this needs apt: the torch versions are those of Debian's suites"

install_packages "${packages[@]}"
torch=$(dpkg-query -W -f '${Version}' python3-torch)
case $torch in 1.13.*) ;; *) die "torch here is $torch; the tests want the 1.13 of Debian 12" ;; esac

roots=${TEGEN_TORCH_ROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/tegen/torch}
mkdir -p "$roots"
roots=$(cd "$roots" && pwd) # tests run in another folder
for suite in "${suites[@]}"; do
	if [ -x "$roots/$suite/usr/bin/python3" ]; then
		say "using $roots/$suite"
		continue
	fi
	install_packages mmdebstrap
	make_root "$suite" "$roots/$suite"
done
printf '%s\n' "$roots"
