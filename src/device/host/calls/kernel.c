/* Kernels by their host stub or name, and launches as work items: the host implementation is called
 * once per block of the grid, in stream order, some blocks per slice. An entry lives until its
 * module closes; an item keeps what it needs of it. */
#include "tutti.h"

#include "base/arch/arch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "device/host/check/check.h"
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/memory/state.h"
#include "device/host/memory/variable.h"
#include "device/host/stream/stream.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    TT_HOST_INVALID_CONFIGURATION = 9,
    TT_HOST_INVALID_FUNCTION = 98,
    SLICE_TICKS = 150000, /* about 50 us */
    WATCHED_NSEC = 2000000000,
    SHARED_UNASKED = 49152,
    SHARED_MOST = 101376,
    ALIGNED_UNASKED = 8,
    ALIGNED_MOST = 256,
};

struct tt_host_argument {
    size_t bytes;
    size_t at; /* where it lies in a buffer that holds all of them */
};

struct tt_host_implementation { /* what tuttiRegisterKernel() was given */
    struct tt_host_implementation *next;
    const void *function;        /* NULL: by name alone */
    char *name;                  /* owned; NULL: by function alone */
    tuttiKernelRun run, touches; /* touches: NULL when nobody knows */
    void *context;
    size_t nargs, arg_bytes_all, packed_bytes;
    struct tt_host_argument *args; /* owned */
};

struct tt_kernel {
    struct tt_kernel *next;
    const void *module, *function;
    char *name; /* owned */
    _Atomic bool reported;
    _Atomic size_t shared_most; /* dynamic bytes of a launch; the program may raise it */
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
    if (kernel && bytes <= SHARED_MOST) atomic_store(&kernel->shared_most, bytes);
    pthread_mutex_unlock(&tt_host.kernels.lock);
    if (!kernel) return TT_HOST_INVALID_FUNCTION;
    return bytes <= SHARED_MOST ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
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

static size_t arg_room(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
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
        one->arg_bytes_all += arg_room(kernel->arg_bytes[i]);
    }
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

/* ---- launches ---- */

struct kernel_item {
    struct tt_item item;
    const struct tt_host_implementation *one; /* borrowed; lives as long as the process */
    struct tt_launch launch;                  /* args: inside `bytes` */
    struct tuttiBlock block;
    uint64_t next, count;        /* blocks */
    struct tt_check_op *checked; /* owned; what the checker knows it as, */
    size_t steps;                /* ... and how much of it was seen step by step */
    char *shared;                /* owned */
    char bytes[];                /* arguments, then their addresses */
};

static void run_block(struct kernel_item *kernel)
{
    uint64_t index = kernel->next++;
    kernel->block.index.x = (unsigned)(index % kernel->launch.grid[0]);
    index /= kernel->launch.grid[0];
    kernel->block.index.y = (unsigned)(index % kernel->launch.grid[1]);
    kernel->block.index.z = (unsigned)(index / kernel->launch.grid[1]);
    kernel->one->run(&kernel->block, kernel->launch.args, kernel->one->context);
}

/* What may be a pointer; only where that says something. */
static void tell_pointers(const struct kernel_item *kernel,
                          void (*tell)(void *into, const void *ptr), void *into)
{
    for (size_t i = 0; i < kernel->one->nargs; i++) {
        const char *bytes = kernel->launch.args[i];
        const void *ptr;
        for (size_t at = 0; at + sizeof(ptr) <= kernel->one->args[i].bytes; at += sizeof(ptr)) {
            memcpy(&ptr, bytes + at, sizeof(ptr));
            tell(into, ptr);
        }
    }
}

static void tell_argument(void *unused, const void *ptr)
{
    (void)unused;
    tt_host_check_argument(ptr);
}

static void add_word(void *words, const void *ptr)
{
    tt_host_check_word(words, ptr);
}

static struct tt_check_words words_of(const struct kernel_item *kernel)
{
    struct tt_check_words words = {0};
    if (!kernel->one->touches) tell_pointers(kernel, add_word, &words);
    return words;
}

static void run_slice(struct kernel_item *kernel)
{
    tt_host_thread.in_kernel++;
    uint64_t start = tt_cpu_ticks();
    while (kernel->next < kernel->count) {
        run_block(kernel);
        if (tt_cpu_ticks() - start > SLICE_TICKS) break;
    }
    tt_host_thread.in_kernel--;
}

static __attribute__((noinline)) void run_seen(struct kernel_item *kernel)
{
    const struct tt_check_words words = words_of(kernel);
    tt_host_check_kernel(&words, true);
    tt_host_thread.steps = kernel->steps;
    run_slice(kernel);
    kernel->steps = tt_host_thread.steps;
    tt_host_check_kernel(&words, false);
}

static enum tt_step kernel_step(struct tt_item *item, enum tt_item_call call)
{
    struct kernel_item *kernel = (struct kernel_item *)item;
    if (call == TT_ITEM_RELEASE) {
        if (kernel->checked) tt_host_check_end(kernel->checked);
        free(kernel->shared);
        free(kernel);
        return TT_STEP_DONE;
    }
    if (call == TT_ITEM_TOUCH) {
        tt_host_check_keep(&kernel->checked);
        tuttiHostTouchName("kernel");
        if (tt_host_check_counts()) {
            tell_pointers(kernel, tell_argument, NULL);
            return TT_STEP_DONE;
        }
        if (!kernel->one->touches) {
            const struct tt_check_words words = words_of(kernel);
            tt_host_check_opaque(&words, item);
            return TT_STEP_DONE;
        }
        kernel->one->touches(&kernel->block, kernel->launch.args, kernel->one->context);
        return TT_STEP_DONE;
    }
    struct tt_check_op *outer = tt_host_thread.checked;
    const struct tt_host_share share = tt_host_thread.share;
    tt_host_thread.checked = kernel->checked;
    bool launched = !kernel->checked && tt_host_thread.launches;
    if (launched) tt_host_thread.checked = tt_host_check_launched(item);
    tt_host_thread.share =
        (struct tt_host_share){0, 0}; /* what it calls by mistake must not wait */
    if (tt_host_checks()) {
        run_seen(kernel);
    } else {
        run_slice(kernel);
    }
    tt_host_thread.checked = outer;
    tt_host_thread.share = share;
    if (kernel->next < kernel->count) return TT_STEP_PROGRESS;
    if (launched) tt_host_check_landed(item);
    kernel->steps = 0;
    kernel->next = 0; /* a graph may run it again */
    return TT_STEP_DONE;
}

bool tuttiHostKernelOf(const struct tt_item *item, struct tt_launch *launch_out)
{
    if (!item || item->step != kernel_step) return false;
    *launch_out = ((const struct kernel_item *)item)->launch;
    return true;
}

static bool fits(const struct tt_launch *launch)
{
    const unsigned *grid = launch->grid, *block = launch->block;
    bool some = grid[0] && grid[1] && grid[2] && block[0] && block[1] && block[2];
    return some && grid[0] <= 2147483647U && grid[1] <= 65535 && grid[2] <= 65535 &&
           block[0] <= 1024 && block[1] <= 1024 && block[2] <= 64 &&
           (uint64_t)block[0] * block[1] * block[2] <= 1024;
}

/* Name what cannot run, once. Lock not held. */
static int refuse(const void *function, struct tt_kernel *kernel)
{
    Dl_info info;
    if (kernel) {
        if (atomic_exchange(&kernel->reported, true)) return TT_HOST_INVALID_FUNCTION;
        tuttiHostTell("tutti: kernel %s has no host implementation: give it one with "
                      "tuttiRegisterKernel() (docs/hostcuda.md)",
                      kernel->name);
        return TT_HOST_INVALID_FUNCTION;
    }
    bool named = function && dladdr(function, &info) && info.dli_sname;
    tuttiHostTell("tutti: launch of %s (%p), which no module registered as a kernel",
                  named ? info.dli_sname : "a function", function);
    return TT_HOST_INVALID_FUNCTION;
}

static struct kernel_item *make_item(const struct tt_host_implementation *one,
                                     const struct tt_launch *launch)
{
    size_t table = (one->nargs + 1) * sizeof(void *);
    struct kernel_item *kernel = calloc(1, sizeof(*kernel) + one->arg_bytes_all + 16 + table);
    if (!kernel) return NULL;
    kernel->item.step = kernel_step;
    kernel->item.tells_touches = true;
    kernel->one = one;
    kernel->launch = *launch;
    kernel->count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    kernel->block.grid = (struct tuttiDim){launch->grid[0], launch->grid[1], launch->grid[2]};
    kernel->block.block = (struct tuttiDim){launch->block[0], launch->block[1], launch->block[2]};
    kernel->block.shared_bytes = launch->shared_bytes;
    if (launch->shared_bytes) {
        kernel->shared = aligned_alloc(128, (launch->shared_bytes + 127) / 128 * 128);
        if (!kernel->shared) {
            free(kernel);
            return NULL;
        }
    }
    kernel->block.shared = kernel->shared;
    char *next = (char *)(((uintptr_t)kernel->bytes + 15) / 16 * 16);
    void **args = (void **)(void *)(next + one->arg_bytes_all);
    for (size_t i = 0; i < one->nargs; i++) {
        const struct tt_host_argument *arg = &one->args[i];
        memcpy(next, launch->args ? launch->args[i] : (const char *)launch->packed + arg->at,
               arg->bytes);
        args[i] = next;
        next += arg_room(arg->bytes);
    }
    kernel->launch.args = args;
    kernel->launch.packed = NULL;
    return kernel;
}

int tuttiHostKernelItem(const struct tt_launch *launch, struct tt_item **item_out)
{
    if (!fits(launch)) return TT_HOST_INVALID_CONFIGURATION;
    pthread_mutex_lock(&tt_host.kernels.lock);
    struct tt_kernel *kernel = launch->function ? find_kernel(launch->function) : NULL;
    const struct tt_host_implementation *one =
        launch->function ? find_implementation(kernel, launch->function) : NULL;
    pthread_mutex_unlock(&tt_host.kernels.lock);
    if (!one) return refuse(launch->function, kernel);
    size_t shared_most = kernel ? tuttiHostKernelShared(kernel) : SHARED_MOST;
    if (launch->shared_bytes > shared_most) return TT_HOST_INVALID_VALUE;
    bool packed = launch->packed && launch->packed_bytes >= one->packed_bytes;
    if (one->nargs && !launch->args && !packed) return TT_HOST_INVALID_VALUE;
    struct kernel_item *item = make_item(one, launch);
    if (!item) return TT_HOST_OUT_OF_MEMORY;
    if (kernel && kernel->function) item->launch.function = kernel->function;
    *item_out = &item->item;
    return TT_HOST_OK;
}

/* Nothing is before it. While it is watched the program does not touch its memory unseen: an access
 * of the kernel's opens a page for a moment. */
static void see_it_run(struct CUstream_st *stream)
{
    const struct tt_host_position position = {
        stream, atomic_load_explicit(&stream->line.tail, memory_order_acquire)};
    uint64_t until = tt_now_nsec() + WATCHED_NSEC;
    while (!tt_host_ask_position(&position) && tt_now_nsec() < until)
        sched_yield();
}

int tuttiHostLaunch(struct CUstream_st *stream, const struct tt_launch *launch)
{
    struct tt_item *item = NULL;
    struct CUstream_st *found = tt_host_stream_find(stream);
    if (!found || found->device != tt_host_thread.device) return tt_host_bad_handle();
    int rc = tuttiHostKernelItem(launch, &item);
    if (rc) return rc;
    bool alone = tt_host_checks() && tt_host_stream_idle(found) && !tt_host_thread.in_host_fn &&
                 !atomic_load_explicit(&found->capture, memory_order_relaxed);
    rc = tuttiHostSubmit(stream, item, true);
    if (rc) item->step(item, TT_ITEM_RELEASE);
    if (alone && !rc) see_it_run(found);
    return rc;
}
