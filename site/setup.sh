#!/usr/bin/env bash
# Makes this machine ready to build and test the site, and prints the Chromium that looks at it: that of TEGEN_BROWSER,
# one that is installed, or Debian's, which root gets installed. Where something cannot be had, it says so and fails.
# Progress goes to standard error.
set -euo pipefail

say() { printf 'site: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

command -v node >/dev/null || die "this needs Node.js 20 or newer: there is none"
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || die "this needs Node.js 20 or newer: here is $(node --version)"
command -v npm >/dev/null || die "this needs npm, which comes with Node.js"

if [ -n "${TEGEN_BROWSER-}" ]; then
	command -v "$TEGEN_BROWSER" || die "TEGEN_BROWSER is $TEGEN_BROWSER, which is no program"
	exit 0
fi
for name in chromium chromium-browser google-chrome google-chrome-stable \
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
	! command -v "$name" || exit 0
done
missing="there is no Chromium, and"
command -v apt-get >/dev/null || die "$missing no apt to install it by: install one, or name it in TEGEN_BROWSER"
[ "$(id -u)" = 0 ] || die "$missing only root may install it: sudo apt-get install chromium"
say "installing chromium (half a minute)"
apt-get update -q >&2 || say "the lists of packages cannot be renewed; trying those of before"
DEBIAN_FRONTEND=noninteractive apt-get install -qy -o DPkg::Lock::Timeout=600 --no-install-recommends chromium >&2 ||
	die "$missing apt cannot install it"
command -v chromium || die "$missing the package chromium brought none"
