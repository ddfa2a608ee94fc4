/* Device code that a program loads, from memory and from files, and settings of its kernels. */
#include "loading.h"

#include "face.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int tt_face_load(const void *code, struct tt_host_library **library_out)
{
    if (!code || !library_out) return cudaErrorInvalidValue;
    int rc = tt_face_device(tuttiHostGetDevice());
    return rc ? rc : tuttiHostLibraryLoad(code, SIZE_MAX, library_out);
}

int tt_face_with_file(const char *path, tt_face_use_code *use, void *arg)
{
    if (!path) return cudaErrorInvalidValue;
    FILE *file = fopen(path, "re");
    if (!file) return cudaErrorFileNotFound;
    long len = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    char *text = len > 0 ? malloc((size_t)len) : NULL;
    rewind(file);
    int rc = text && fread(text, (size_t)len, 1, file) == 1 ? use(text, (size_t)len, arg)
                                                            : (int)cudaErrorInvalidKernelImage;
    free(text);
    fclose(file);
    return rc;
}

static int load(const void *code, size_t bytes, void *arg)
{
    return tuttiHostLibraryLoad(code, bytes, (struct tt_host_library **)arg);
}

int tt_face_load_file(const char *path, struct tt_host_library **library_out)
{
    if (!path || !library_out) return cudaErrorInvalidValue;
    int rc = tt_face_device(tuttiHostGetDevice());
    return rc ? rc : tt_face_with_file(path, load, library_out);
}

int tt_face_kernel_set(const void *function, int attr, int value)
{
    if (!tuttiHostKernelFind(function)) return cudaErrorInvalidDeviceFunction;
    switch (attr) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        return value < 0 || tuttiHostKernelSharedSet(function, (size_t)value)
                   ? cudaErrorInvalidValue
                   : cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        return value < -1 || value > 100 ? cudaErrorInvalidValue : cudaSuccess;
    default:
        return attr > cudaFuncAttributePreferredSharedMemoryCarveout && attr < cudaFuncAttributeMax
                   ? cudaSuccess
                   : cudaErrorInvalidValue;
    }
}

int tt_face_arguments(struct tt_launch *launch, void **args, void **extra)
{
    enum { END, POINTER, SIZE }; /* CU_LAUNCH_PARAM_... */
    launch->args = args;
    if (!extra) return cudaSuccess;
    if (args) return cudaErrorInvalidValue;
    for (; (uintptr_t)extra[0] != END; extra += 2) {
        switch ((uintptr_t)extra[0]) {
        case POINTER: launch->packed = extra[1]; break;
        case SIZE: launch->packed_bytes = extra[1] ? *(size_t *)extra[1] : 0; break;
        default: return cudaErrorInvalidValue;
        }
    }
    return launch->packed || !launch->packed_bytes ? cudaSuccess : cudaErrorInvalidValue;
}

int tt_face_cooperative(const struct tt_launch *launch)
{
    const unsigned *grid = launch->grid;
    const unsigned *block = launch->block;
    uint64_t blocks = 0;
    int sms = 1, per_sm = 1;
    /* what is no block or no grid is refused as such */
    size_t threads = (size_t)block[0] * block[1];
    if (__builtin_mul_overflow(threads, block[2], &threads)) return cudaSuccess;
    if (threads && threads <= TT_FACE_THREADS_PER_BLOCK)
        per_sm = (int)(TT_FACE_THREADS_PER_SM / threads);
    if (per_sm > TT_FACE_BLOCKS_PER_SM) per_sm = TT_FACE_BLOCKS_PER_SM;
    tt_face_attribute(tuttiHostGetDevice(), cudaDevAttrMultiProcessorCount, &sms);
    bool fits = !__builtin_mul_overflow((uint64_t)grid[0] * grid[1], grid[2], &blocks) &&
                blocks <= (uint64_t)sms * (uint64_t)per_sm;
    return fits ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}
