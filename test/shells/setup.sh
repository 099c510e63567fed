#!/usr/bin/env bash
# Installs the shells whose completion is tried by the tests of internal/command, and what reads manual pages, where
# they are missing and root may. Where it cannot, it says so and fails. Progress goes to standard error.
set -euo pipefail

packages=()
command -v zsh >/dev/null || packages+=(zsh)
command -v fish >/dev/null || packages+=(fish)
command -v mandoc >/dev/null || packages+=(mandoc)
[ -e /usr/share/bash-completion/bash_completion ] || packages+=(bash-completion)
[ "${#packages[@]}" != 0 ] || exit 0

say() { printf 'shells: %s\n' "$*" >&2; }
die() { say "there is no ${packages[*]}, and $*"; exit 1; }
command -v apt-get >/dev/null || die "no apt to install it by"
[ "$(id -u)" = 0 ] || die "only root may install it: sudo apt-get install ${packages[*]}"
say "installing ${packages[*]} (some seconds)"
apt-get update -q >&2 || say "the lists of packages cannot be renewed; trying those of before"
DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=600 --no-install-recommends \
	"${packages[@]}" >&2 || die "apt cannot install it"
