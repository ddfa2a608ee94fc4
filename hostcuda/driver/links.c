/* The driver interface: device code that is linked from pieces. What comes out is for
 * cuModuleLoadData of this library alone. */
#include "../shared/loading.h"
#include "driver.h"

#include "device/host/host_face.h"

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are CUDA's */
static struct tt_host_link *link_of(CUlinkState state)
{
    return (struct tt_host_link *)state;
}

/* Logs of the compiler are empty: nothing is compiled. */
static int clear_logs(unsigned count, const CUjit_option *options, void **values)
{
    if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        bool log = options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER;
        size_t bytes = 0;
        for (unsigned k = 0; log && k < count; k++) {
            if ((int)options[k] == (int)options[i] + 1) bytes = (size_t)(uintptr_t)values[k];
        }
        if (bytes && values[i]) *(char *)values[i] = 0;
    }
    for (unsigned i = 0; i < count; i++) { /* how much of them was filled: nothing */
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
            options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            values[i] = NULL;
    }
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = state ? clear_logs(count, options, values) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tt_driver_device(tuttiHostGetDevice());
    return tt_driver_done(rc ? rc : tuttiHostLinkCreate((struct tt_host_link **)state));
}

/* Host objects and archives hold device code in ways of their own, which nothing here reads. */
static int check_type(CUjitInputType type)
{
    switch (type) {
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY: return CUDA_SUCCESS;
    case CU_JIT_INPUT_OBJECT: return tuttiHostUnsupported("linking of device code in host objects");
    case CU_JIT_INPUT_LIBRARY: return tuttiHostUnsupported("linking of device code in archives");
    case CU_JIT_INPUT_NVVM:
        return tuttiHostUnsupported("linking of code for link-time optimisation");
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static int add(const void *code, size_t bytes, void *link)
{
    return tuttiHostLinkAdd(link, code, bytes);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *code, size_t bytes,
                       const char *name, unsigned int count, CUjit_option *options, void **values)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)name;
    int rc = code && bytes ? clear_logs(count, options, values) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = check_type(type);
    return tt_driver_done(rc ? rc : add(code, bytes, link_of(state)));
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                       CUjit_option *options, void **values)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = path ? clear_logs(count, options, values) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = check_type(type);
    return tt_driver_done(rc ? rc : tt_face_with_file(path, add, link_of(state)));
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *bytes)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const void *linked = NULL;
    size_t len = 0;
    int rc =
        code ? tuttiHostLinkComplete(link_of(state), &linked, &len) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *code = (void *)(uintptr_t)linked;
    if (!rc && bytes) *bytes = len;
    return tt_driver_done(rc);
}

CUresult cuLinkDestroy(CUlinkState state)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostLinkDestroy(link_of(state)));
}

/* NOLINTEND(readability-non-const-parameter): as above */
