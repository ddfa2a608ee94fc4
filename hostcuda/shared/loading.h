/* Device code that a program loads, for the runtime's libraries and the driver's. */
#pragma once

#include "device/host/host_kernel.h"

/* Results are CUDA's numbers: 1 for NULL, 100 without devices, 200 for what cannot be read. */
int tt_face_load(const void *code, struct tt_host_library **library_out);
/* The same from a file: 301 when there is none. */
int tt_face_load_file(const char *path, struct tt_host_library **library_out);
/* What is done with the bytes of a file; 301 when there is none, 200 when it is empty. */
typedef int tt_face_use_code(const void *code, size_t bytes, void *arg);
int tt_face_with_file(const char *path, tt_face_use_code *use, void *arg);

/* What a device can do for a kernel; the numbers are the same for all of them. */
enum {
    TT_FACE_THREADS_PER_BLOCK = 1024,
    TT_FACE_BLOCKS_PER_SM = 32,
    TT_FACE_THREADS_PER_SM = 2048,
    TT_FACE_SHARED_OPTIN = 101376,
    TT_FACE_REGISTERS = 32,
    TT_FACE_CODE_VERSION = 90,
};
/* Set a number of a kernel's (enum cudaFuncAttribute, which is CUfunction_attribute): 1 for a
 * number or value that cannot be set, 98 for what is no kernel. */
int tt_face_kernel_set(const void *function, int attr, int value);
/* Arguments of a launch: their addresses, or packed ones as `extra` names them. 1 when it is both
 * or cannot be understood. */
int tt_face_arguments(struct tt_launch *launch, void **args, void **extra);
/* 720 when the current device cannot hold all blocks of a launch at a time. */
int tt_face_cooperative(const struct tt_launch *launch);
