/* Kernels by their host stub or name, and their host implementations. A kernel lives until its
 * module closes, and what was registered for its function with it. */
#include "device/host/calls/kernel.h"

#include "base/mem.h"
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/memory/variable.h"
#include "device/host/process/state.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHARED_UNASKED = 49152,
    ALIGNED_UNASKED = 8,
    ALIGNED_MOST = 256,
};

struct tt_host_module {
    struct tt_host_module *next;
    const void *code; /* borrowed: lives as long as the module; NULL: none */
};

/* ---- modules ---- */

void *tuttiHostModuleOpen(const void *code)
{
    struct tt_host_module *module = calloc(1, sizeof(*module));
    if (!module) return NULL;
    module->code = code;
    pthread_mutex_lock(&tt_host.kernels.lock);
    module->next = tt_host.kernels.modules;
    tt_host.kernels.modules = module;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    return module;
}

/* Lock held. The link to it, or the one at the end. */
static struct tt_host_module **find_module(const void *handle)
{
    struct tt_host_module **link = &tt_host.kernels.modules;
    while (*link && *link != handle) {
        link = &(*link)->next;
    }
    return link;
}

void tuttiHostModuleReady(void *handle)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    const struct tt_host_module *module = *find_module(handle);
    const void *code = module ? module->code : NULL;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    if (module) tt_host_variables_start(module, code);
}

static void free_implementation(struct tt_host_implementation *one)
{
    if (!one) return;
    free(one->name);
    free(one->args);
    free(one);
}

/* Code that goes with the module must not be called for what is loaded in its place. */
static void drop_implementations(const void *function)
{
    struct tt_host_implementation **link = &tt_host.kernels.implementations;
    while (*link) {
        struct tt_host_implementation *one = *link;
        if (!one->function || one->function != function) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        free_implementation(one);
    }
}

static void drop_kernels(const void *module)
{
    struct tt_kernel **link = &tt_host.kernels.kernels;
    while (*link) {
        struct tt_kernel *kernel = *link;
        if (kernel->module != module) {
            link = &kernel->next;
            continue;
        }
        *link = kernel->next;
        drop_implementations(kernel->function);
        free(kernel->name);
        free(kernel);
    }
}

void tuttiHostModuleClose(void *handle)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    struct tt_host_module **link = find_module(handle), *module = *link;
    if (module) {
        *link = module->next;
        drop_kernels(module);
        tt_host_variables_drop(module);
        free(module);
    }
    pthread_mutex_unlock(&tt_host.kernels.lock);
}

void tuttiHostKernelAdd(void *module, const void *function, const char *name)
{
    struct tt_kernel *kernel = calloc(1, sizeof(*kernel));
    if (!kernel) return;
    kernel->module = module;
    kernel->function = function;
    kernel->name = strdup(name ? name : "?");
    atomic_store(&kernel->shared_most, SHARED_UNASKED);
    pthread_mutex_lock(&tt_host.kernels.lock);
    kernel->next = tt_host.kernels.kernels;
    tt_host.kernels.kernels = kernel;
    pthread_mutex_unlock(&tt_host.kernels.lock);
}

/* ---- look-up ---- */

/* Lock held. */
static struct tt_kernel *find_kernel(const void *function)
{
    struct tt_kernel *kernel = tt_host.kernels.kernels;
    while (kernel && kernel->function != function && kernel != function) {
        kernel = kernel->next;
    }
    return kernel;
}

const struct tt_kernel *tuttiHostKernelFind(const void *function)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    const struct tt_kernel *kernel = function ? find_kernel(function) : NULL;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    return kernel;
}

const char *tuttiHostKernelName(const struct tt_kernel *kernel)
{
    return kernel->name;
}

size_t tuttiHostKernelShared(const struct tt_kernel *kernel)
{
    return atomic_load_explicit(&kernel->shared_most, memory_order_relaxed);
}

int tuttiHostKernelSharedSet(const void *function, size_t bytes)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    struct tt_kernel *kernel = function ? find_kernel(function) : NULL;
    if (kernel && bytes <= TT_KERNEL_SHARED_MOST) atomic_store(&kernel->shared_most, bytes);
    pthread_mutex_unlock(&tt_host.kernels.lock);
    if (!kernel) return TT_HOST_INVALID_FUNCTION;
    return bytes <= TT_KERNEL_SHARED_MOST ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

const void *tuttiHostKernelFunction(const struct tt_kernel *kernel)
{
    return kernel->function;
}

const void *tuttiHostKernelModule(const struct tt_kernel *kernel)
{
    return kernel->module;
}

const struct tt_kernel *tuttiHostModuleKernel(const void *module, const char *name)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    const struct tt_kernel *one = tt_host.kernels.kernels;
    while (one && (one->module != module || !one->name || strcmp(one->name, name) != 0)) {
        one = one->next;
    }
    pthread_mutex_unlock(&tt_host.kernels.lock);
    return one;
}

size_t tuttiHostModuleKernels(const void *module, const struct tt_kernel **kernels, size_t room)
{
    size_t count = 0;
    pthread_mutex_lock(&tt_host.kernels.lock);
    for (const struct tt_kernel *one = tt_host.kernels.kernels; one; one = one->next) {
        if (one->module != module) continue;
        if (count < room) kernels[count] = one;
        count++;
    }
    pthread_mutex_unlock(&tt_host.kernels.lock);
    return count;
}

/* Lock held. The latest registration wins. */
static const struct tt_host_implementation *find_implementation(const struct tt_kernel *kernel,
                                                                const void *function)
{
    const void *stub = kernel ? kernel->function : function;
    bool loaded = kernel && !kernel->function; /* it may be compiled in as well */
    for (const struct tt_host_implementation *one = tt_host.kernels.implementations; one;
         one = one->next) {
        if (one->function && one->function == stub) return one;
        const struct tt_kernel *twin = loaded && one->function ? find_kernel(one->function) : NULL;
        const char *name = twin ? twin->name : one->name;
        if (name && kernel && kernel->name && !strcmp(name, kernel->name)) return one;
    }
    return NULL;
}

/* Of an argument of a kernel whose fields are good. */
static size_t alignment_of(const struct tuttiKernel *kernel, size_t i)
{
    if (kernel->size >= sizeof(*kernel) && kernel->arg_aligns) return kernel->arg_aligns[i];
    size_t lowest = kernel->arg_bytes[i] & -kernel->arg_bytes[i];
    return lowest && lowest < ALIGNED_UNASKED ? lowest : ALIGNED_UNASKED;
}

static bool are_aligns_good(const struct tuttiKernel *kernel)
{
    bool good = true;
    for (size_t i = 0; i < kernel->nargs; i++) {
        size_t align = alignment_of(kernel, i);
        good = good && align && (align & (align - 1)) == 0 && align <= ALIGNED_MOST;
    }
    return good;
}

static struct tt_host_implementation *copy_implementation(const struct tuttiKernel *kernel)
{
    struct tt_host_implementation *one = calloc(1, sizeof(*one));
    if (!one) return NULL;
    one->function = kernel->function;
    one->run = kernel->run;
    one->context = kernel->context;
    one->touches = kernel->size < offsetof(struct tuttiKernel, arg_aligns) ? NULL : kernel->touches;
    one->nargs = kernel->nargs;
    one->name = kernel->name ? strdup(kernel->name) : NULL;
    one->args = calloc(kernel->nargs + 1, sizeof(*one->args));
    if (!one->args || (kernel->name && !one->name)) {
        free_implementation(one);
        return NULL;
    }
    for (size_t i = 0; i < kernel->nargs; i++) {
        size_t at = tt_round_up(one->packed_bytes, alignment_of(kernel, i));
        one->args[i] = (struct tt_host_argument){kernel->arg_bytes[i], at};
        one->packed_bytes = at + kernel->arg_bytes[i];
        one->arg_bytes_all += tt_round_up(kernel->arg_bytes[i], TT_KERNEL_ARG_ALIGN);
    }
    return one;
}

const struct tt_host_implementation *tt_kernel_find(const void *function,
                                                    struct tt_kernel **kernel_out)
{
    pthread_mutex_lock(&tt_host.kernels.lock);
    struct tt_kernel *kernel = function ? find_kernel(function) : NULL;
    const struct tt_host_implementation *one =
        function ? find_implementation(kernel, function) : NULL;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    *kernel_out = kernel;
    return one;
}

int tuttiRegisterKernel(const struct tuttiKernel *kernel)
{
    if (!kernel || kernel->size < offsetof(struct tuttiKernel, touches) || !kernel->run)
        return TT_HOST_INVALID_VALUE;
    if ((!kernel->function && !kernel->name) || (kernel->nargs && !kernel->arg_bytes))
        return TT_HOST_INVALID_VALUE;
    if (kernel->nargs > 4096 || !are_aligns_good(kernel)) return TT_HOST_INVALID_VALUE;
    struct tt_host_implementation *one = copy_implementation(kernel);
    if (!one) return TT_HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.kernels.lock);
    one->next =
        tt_host.kernels.implementations; /* an older one stays: items in flight may use it */
    tt_host.kernels.implementations = one;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    return TT_HOST_OK;
}
