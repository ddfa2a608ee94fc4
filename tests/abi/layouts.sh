#!/bin/sh
# Compile an assert file (layouts, values, signatures of an interface) against our header, as C and as C++.
# usage: layouts.sh ROOT HEADER ASSERT_FILE
# The file is looked for in this folder, then in $TUTTI_SHARED/abi. Skipped (77) where header or file is absent.
set -u
root=$1 header=$2 name=$3
file=$root/tests/abi/$name
[ -f "$file" ] || file=${TUTTI_SHARED:-$root/../shared}/abi/$name
[ -f "$file" ] || { echo "skipped: no $name here and TUTTI_SHARED does not lead to one"; exit 77; }
for folder in include include/hostcuda; do
    [ -f "$root/$folder/$header" ] && found=$root/$folder/$header
done
[ -n "${found:-}" ] || { echo "skipped: there is no header $header"; exit 77; }
flags="-fsyntax-only -I$root/include -I$root/include/hostcuda -Wall -Werror"
${CC:-cc} -std=gnu11 $flags "-DABI_HEADER=\"$header\"" "$file" || exit 1
${CXX:-c++} -std=c++17 $flags -Wno-invalid-offsetof -x c++ "-DABI_HEADER=\"$header\"" "$file" || exit 1
echo "$name agrees with $header"
