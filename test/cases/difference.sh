#!/usr/bin/env bash
# Prints in which objects of golden/objects.txt the working tree and a commit differ, each as a unified diff. Both are
# rendered: the commit by its own code, in a copy below the temporary directory. An object whose name has a hash of its
# content is shown as renamed.
set -euo pipefail

base=${1:-HEAD}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/copy" "$tmp/a" "$tmp/b"
git archive "$base" | tar -x -C "$tmp/copy"
echo "rendering the fixtures of $base, which compiles tegen at that commit (about a minute), and of this tree" >&2
(cd "$tmp/copy" && go run -buildvcs=false ./test/cases/cmd/objects "$tmp/a")
go run -buildvcs=false ./test/cases/cmd/objects "$tmp/b"
cd "$tmp"
git --no-pager -c core.attributesFile=/dev/null diff --no-index --no-prefix --find-renames=80% a b || [ $? = 1 ]
