#!/bin/sh
# Compare the symbols of a face, with their version node, with its list.
# usage: exports.sh LIBRARY LIST NODE     (NODE "-": symbols have no version)
set -eu
suffix=
[ "$3" = "-" ] || suffix="@@$3"
nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | LC_ALL=C sort > "${TMPDIR:-/tmp}/exports.$$"
trap 'rm -f "${TMPDIR:-/tmp}/exports.$$"' EXIT
grep -v '^#' "$2" | awk -v s="$suffix" '{print $1 s}' | LC_ALL=C sort | diff -u - "${TMPDIR:-/tmp}/exports.$$" ||
    { echo "symbols of $1 differ from $2 (- wanted, + found)"; exit 1; }
