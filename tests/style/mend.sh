#!/bin/sh
# Do the mechanical part of the style on source files: missing braces (clang-tidy) and the format (clang-format).
# usage: tests/style/mend.sh FILE...
set -eu
cd "$(dirname "$0")/../.."
for file in "$@"; do
    case $file in
    *.c)
        clang-tidy --quiet --checks='-*,readability-braces-around-statements,readability-else-after-return' \
            --warnings-as-errors= --fix "$file" -- -std=gnu17 -D_GNU_SOURCE -Iinclude -Iinclude/hostcuda -Isrc "-I$(dirname "$file")" \
            >/dev/null 2>&1 || echo "$file: clang-tidy could not read it"
        ;;
    esac
    clang-format -i "$file"
done
