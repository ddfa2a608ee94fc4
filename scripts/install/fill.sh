#!/bin/sh
# A file with the versions filled in, as the headers have them.
# usage: fill.sh TUTTI_VERSION NCCL_H CUDART_VERSION_H INPUT
set -eu
number() { # of a #define; the last one counts
    sed -n "s/^ *# *define $2 *\([0-9]*\).*/\1/p" "$1" | tail -n 1
}
nccl=$(number "$2" NCCL_MAJOR).$(number "$2" NCCL_MINOR).$(number "$2" NCCL_PATCH)
cuda=$(number "$3" CUDART_VERSION)
sed -e "s/@VERSION@/$1/g; s/@NCCL_VERSION@/$nccl/g; s/@CUDA_VERSION@/$((cuda / 1000)).$((cuda % 1000 / 10))/g" "$4"
