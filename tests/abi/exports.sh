#!/bin/sh
# Compare a library's exported functions (but tutti*) with a checked-in list.
# usage: exports.sh LIBRARY LIST
set -eu
nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | grep -v '^tutti' | LC_ALL=C sort |
    diff -u "$2" - || { echo "exported symbols of $1 differ from $2 (- wanted, + found)"; exit 1; }
