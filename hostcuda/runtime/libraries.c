/* The runtime's libraries: device code that a program loads while it runs. */
#include "../shared/face.h"
#include "../shared/loading.h"

static struct tt_host_library *library_of(cudaLibrary_t handle)
{
    return (struct tt_host_library *)(uintptr_t)handle;
}

struct loader_options { /* of the loader: taken and left alone, as nothing is compiled */
    const void *options, *values;
    unsigned count;
};

static bool are_good(const struct loader_options *given)
{
    return given->count == 0 || (given->options && given->values);
}

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are CUDA's */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count)
{
    const struct loader_options jit = {jit_options, jit_values, jit_count},
                                own = {options, values, count};
    if (!are_good(&jit) || !are_good(&own)) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tt_face_load(code, (struct tt_host_library **)library));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                    enum cudaJitOption *jit_options, void **jit_values,
                                    unsigned int jit_count, enum cudaLibraryOption *options,
                                    void **values, unsigned int count)
{
    const struct loader_options jit = {jit_options, jit_values, jit_count},
                                own = {options, values, count};
    if (!are_good(&jit) || !are_good(&own)) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tt_face_load_file(path, (struct tt_host_library **)library));
}

/* NOLINTEND(readability-non-const-parameter): as above */

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return tt_face_done(tuttiHostLibraryUnload(library_of(library)));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    const struct tt_kernel *found = NULL;
    if (!kernel || !name) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostLibraryKernel(library_of(library), name, &found);
    if (!rc) *kernel = (cudaKernel_t)(uintptr_t)found;
    return tt_face_done(rc);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    size_t found = 0;
    if (!count) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostLibraryKernels(library_of(library), NULL, 0, &found);
    if (!rc) *count = (unsigned)found;
    return tt_face_done(rc);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                        cudaLibrary_t library)
{
    size_t found;
    if (!kernels || !count) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostLibraryKernels(library_of(library),
                                                (const struct tt_kernel **)kernels, count, &found));
}

static int find_variable(cudaLibrary_t library, const char *name, bool managed,
                         struct tt_span *span)
{
    return name ? tuttiHostLibraryVariable(library_of(library), name, managed, span)
                : (int)cudaErrorInvalidValue;
}

cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *len, cudaLibrary_t library, const char *name)
{
    struct tt_span span;
    int rc = ptr || len ? find_variable(library, name, false, &span) : (int)cudaErrorInvalidValue;
    if (!rc && ptr) *ptr = span.ptr;
    if (!rc && len) *len = span.bytes;
    return tt_face_done(rc);
}

cudaError_t cudaLibraryGetManaged(void **ptr, size_t *len, cudaLibrary_t library, const char *name)
{
    struct tt_span span;
    int rc = ptr || len ? find_variable(library, name, true, &span) : (int)cudaErrorInvalidValue;
    if (!rc && ptr) *ptr = span.ptr;
    if (!rc && len) *len = span.bytes;
    return tt_face_done(rc);
}

/* Functions that are on host and device alike have no addresses here. */
cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library,
                                          const char *symbol)
{
    size_t unused;
    int rc = function && symbol ? tuttiHostLibraryKernels(library_of(library), NULL, 0, &unused)
                                : (int)cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : (int)cudaErrorSymbolNotFound);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                            int value, int device)
{
    int rc = tt_face_device(device);
    return tt_face_done(rc ? rc : tt_face_kernel_set(kernel, (int)attr, value));
}
