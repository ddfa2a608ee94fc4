/* Launches of kernels as work items: the host implementation is called once per block of the grid,
 * in stream order, some blocks per slice. An item keeps what it needs of the kernel. */
#include "tutti.h"

#include "base/arch/arch.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "device/host/calls/kernel.h"
#include "device/host/check/check.h"
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/process/state.h"
#include "device/host/stream/stream.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    TT_HOST_INVALID_CONFIGURATION = 9,
    SLICE_TICKS = 150000, /* about 50 us */
    WATCHED_NSEC = 2000000000,
};

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
static void report_pointers(const struct kernel_item *kernel,
                            void (*report)(void *into, const void *ptr), void *into)
{
    for (size_t i = 0; i < kernel->one->nargs; i++) {
        const char *bytes = kernel->launch.args[i];
        const void *ptr;
        for (size_t at = 0; at + sizeof(ptr) <= kernel->one->args[i].bytes; at += sizeof(ptr)) {
            memcpy(&ptr, bytes + at, sizeof(ptr));
            report(into, ptr);
        }
    }
}

static void report_argument(void *unused, const void *ptr)
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
    if (!kernel->one->touches) report_pointers(kernel, add_word, &words);
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
    tt_host_thread.check.faults.steps = kernel->steps;
    run_slice(kernel);
    kernel->steps = tt_host_thread.check.faults.steps;
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
            report_pointers(kernel, report_argument, NULL);
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
    struct tt_check_op *outer = tt_host_thread.check.op;
    const struct tt_host_share share = tt_host_thread.share;
    tt_host_thread.check.op = kernel->checked;
    bool launched = !kernel->checked && tt_host_thread.check.launches;
    if (launched) tt_host_thread.check.op = tt_host_check_launched(item);
    tt_host_thread.share =
        (struct tt_host_share){0, 0}; /* what it calls by mistake must not wait */
    if (tt_host_checks()) {
        run_seen(kernel);
    } else {
        run_slice(kernel);
    }
    tt_host_thread.check.op = outer;
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
        tuttiHostWarn("tutti: kernel %s has no host implementation: give it one with "
                      "tuttiRegisterKernel() (docs/hostcuda.md)",
                      kernel->name);
        return TT_HOST_INVALID_FUNCTION;
    }
    bool named = function && dladdr(function, &info) && info.dli_sname;
    tuttiHostWarn("tutti: launch of %s (%p), which no module registered as a kernel",
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
    kernel->item.reports_touches = true;
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
        next += tt_round_up(arg->bytes, TT_KERNEL_ARG_ALIGN);
    }
    kernel->launch.args = args;
    kernel->launch.packed = NULL;
    return kernel;
}

int tuttiHostKernelItem(const struct tt_launch *launch, struct tt_item **item_out)
{
    if (!fits(launch)) return TT_HOST_INVALID_CONFIGURATION;
    struct tt_kernel *kernel;
    const struct tt_host_implementation *one = tt_kernel_find(launch->function, &kernel);
    if (!one) return refuse(launch->function, kernel);
    size_t shared_most = kernel ? tuttiHostKernelShared(kernel) : TT_KERNEL_SHARED_MOST;
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
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    int rc = tuttiHostKernelItem(launch, &item);
    if (rc) return rc;
    bool alone = tt_host_checks() && tt_host_stream_idle(found) && !tt_host_thread.in_host_fn &&
                 !atomic_load_explicit(&found->capture, memory_order_relaxed);
    rc = tuttiHostSubmit(stream, item, true);
    if (rc) item->step(item, TT_ITEM_RELEASE);
    if (alone && !rc) see_it_run(found);
    return rc;
}
