/* Device code that a program loads while it runs: its kernels by name, which run what
 * tuttiRegisterKernel() was given under that name, and its variables in memory of the device that
 * was current. A library lives until it is unloaded; launches in flight keep what they need. */
#include "reset.h"
#include "tutti.h"

#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/image/image.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>
#include <string.h>

enum { TT_HOST_INVALID_IMAGE = 200, TT_HOST_SYMBOL_NOT_FOUND = 500 };

struct loaded_variable {
    char *name; /* owned; NULL: a kernel's place in the image's list */
    char *ptr;  /* owned; NULL after a reset of its device */
    size_t bytes;
    bool managed;
};

struct tt_host_library {
    struct tt_host_library *next;
    void *module; /* owned: its kernels */
    size_t nvariables;
    struct loaded_variable *variables; /* owned */
};

static int load_variable(struct loaded_variable *variable,
                         const struct tt_host_image_symbol *symbol)
{
    void *ptr = NULL;
    variable->name = strdup(symbol->name);
    if (!variable->name) return TT_HOST_OUT_OF_MEMORY;
    int rc = symbol->is_managed ? tuttiHostMallocHost(symbol->bytes, 1, true, &ptr)
                                : tuttiHostMalloc(tuttiHostGetDevice(), symbol->bytes, &ptr);
    if (rc) return rc;
    variable->ptr = ptr;
    variable->bytes = symbol->bytes;
    variable->managed = symbol->is_managed;
    tt_host_memory_zero(ptr, symbol->bytes);
    if (symbol->initial_bytes) memcpy(ptr, symbol->initial, symbol->initial_bytes);
    tuttiCheckWrite(ptr, symbol->bytes);
    if (!symbol->is_unread) return TT_HOST_OK;
    tuttiHostWarn("tutti: device variable %s starts as zeros: it has the address of something that "
                  "is not on the host; copy the value there first (cuModuleGetGlobal)",
                  symbol->name);
    return TT_HOST_OK;
}

static void free_library(struct tt_host_library *library)
{
    tuttiHostModuleClose(library->module);
    for (size_t i = 0; i < library->nvariables; i++) {
        if (library->variables[i].ptr) tuttiHostFreeUsed(library->variables[i].ptr);
        free(library->variables[i].name);
    }
    free(library->variables);
    free(library);
}

/* A variable for each symbol of the image, so that pointers find theirs; kernels leave theirs
 * empty. */
static int fill_library(struct tt_host_library *library, const struct tt_host_image *image)
{
    library->module = tuttiHostModuleOpen(NULL);
    library->variables = calloc(image->nsymbols + 1, sizeof(*library->variables));
    if (!library->module || !library->variables) return TT_HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < image->nsymbols; i++) {
        const struct tt_host_image_symbol *symbol = &image->symbols[i];
        library->nvariables++;
        if (symbol->is_kernel) tuttiHostKernelAdd(library->module, NULL, symbol->name);
        if (symbol->is_kernel || symbol->bytes == 0) continue;
        int rc = load_variable(&library->variables[i], symbol);
        if (rc) return rc;
    }
    for (size_t i = 0; i < image->npointers; i++) {
        const struct tt_host_image_pointer *pointer = &image->pointers[i];
        const struct loaded_variable *in = &library->variables[pointer->in];
        const char *address = library->variables[pointer->to].ptr + pointer->addend;
        if (!in->ptr || pointer->offset + sizeof(address) > in->bytes) continue;
        memcpy(in->ptr + pointer->offset, &address, sizeof(address));
    }
    return TT_HOST_OK;
}

int tuttiHostLibraryLoad(const void *code, size_t limit, struct tt_host_library **library_out)
{
    const char *why = NULL;
    struct tt_host_image *image = tt_host_image_open(code, limit, &why);
    if (!image) {
        tuttiHostWarn("tutti: device code cannot be read: %s", why);
        return TT_HOST_INVALID_IMAGE;
    }
    struct tt_host_library *library = calloc(1, sizeof(*library));
    int rc = library ? fill_library(library, image) : TT_HOST_OUT_OF_MEMORY;
    tt_host_image_close(image);
    if (rc && library) free_library(library);
    if (rc) return rc;
    pthread_mutex_lock(&tt_host.libraries.lock);
    library->next = tt_host.libraries.first;
    tt_host.libraries.first = library;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    *library_out = library;
    return TT_HOST_OK;
}

/* Lock held. The link to it, or the one at the end. */
static struct tt_host_library **find_library(const struct tt_host_library *library)
{
    struct tt_host_library **link = &tt_host.libraries.first;
    while (*link && *link != library) {
        link = &(*link)->next;
    }
    return link;
}

int tuttiHostLibraryUnload(struct tt_host_library *library)
{
    pthread_mutex_lock(&tt_host.libraries.lock);
    struct tt_host_library **link = find_library(library);
    bool found = *link;
    if (found) *link = library->next;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    free_library(library); /* work in flight keeps its memory */
    return TT_HOST_OK;
}

void tt_host_libraries_reset(int device)
{
    struct tt_pointer found;
    pthread_mutex_lock(&tt_host.libraries.lock);
    for (struct tt_host_library *one = tt_host.libraries.first; one; one = one->next) {
        for (size_t i = 0; i < one->nvariables; i++) {
            struct loaded_variable *variable = &one->variables[i];
            if (!variable->ptr || tuttiHostPointer(variable->ptr, &found)) continue;
            if (found.device == device) variable->ptr = NULL;
        }
    }
    pthread_mutex_unlock(&tt_host.libraries.lock);
}

int tuttiHostLibraryKernels(struct tt_host_library *library, const struct tt_kernel **kernels,
                            size_t room, size_t *count_out)
{
    pthread_mutex_lock(&tt_host.libraries.lock);
    bool found = *find_library(library);
    size_t count = found ? tuttiHostModuleKernels(library->module, kernels, room) : 0;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    *count_out = count;
    return TT_HOST_OK;
}

int tuttiHostLibraryKernel(struct tt_host_library *library, const char *name,
                           const struct tt_kernel **kernel_out)
{
    pthread_mutex_lock(&tt_host.libraries.lock);
    bool found = *find_library(library);
    const struct tt_kernel *kernel = found ? tuttiHostModuleKernel(library->module, name) : NULL;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    if (kernel) *kernel_out = kernel;
    return kernel ? TT_HOST_OK : TT_HOST_SYMBOL_NOT_FOUND;
}

int tuttiHostLibraryVariable(struct tt_host_library *library, const char *name, bool managed,
                             struct tt_span *span_out)
{
    const struct loaded_variable *variable = NULL;
    pthread_mutex_lock(&tt_host.libraries.lock);
    bool found = *find_library(library);
    for (size_t i = 0; found && i < library->nvariables && !variable; i++) {
        const struct loaded_variable *one = &library->variables[i];
        if (one->name && one->ptr && !strcmp(one->name, name) && (one->managed || !managed))
            variable = one;
    }
    if (variable) *span_out = (struct tt_span){variable->ptr, variable->bytes};
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    return variable ? TT_HOST_OK : TT_HOST_SYMBOL_NOT_FOUND;
}

struct tt_host_library *tuttiHostLibraryOf(const struct tt_kernel *kernel)
{
    const void *module = tuttiHostKernelModule(kernel);
    pthread_mutex_lock(&tt_host.libraries.lock);
    struct tt_host_library *library = tt_host.libraries.first;
    while (library && library->module != module) {
        library = library->next;
    }
    pthread_mutex_unlock(&tt_host.libraries.lock);
    return library;
}
