/* What a program reports because it cannot be observed: its own loads and stores, those of host
 * functions and kernels. */
#include "tutti.h"

#include "device/host/check/access.h"
#include "device/host/check/shadow/guard.h"
#include "device/host/check/shadow/shadow.h"
#include "device/host/host.h"

#include <stdlib.h>

/* ---- host functions ---- */

struct annotated_call {
    void (*fn)(void *);
    void *arg;
    struct tt_check_op *op; /* owned */
};

/* Host functions that are on streams and not over. */
static void add_call(struct tt_host_check *check, const struct tt_check_op *op)
{
    if (check->ncalls == check->call_room) {
        size_t room = check->call_room ? 2 * check->call_room : 16;
        const struct tt_check_op **wider = realloc(check->calls, room * sizeof(const void *));
        if (!wider) return;
        check->calls = wider;
        check->call_room = room;
    }
    check->calls[check->ncalls++] = op;
}

static void drop_call(struct tt_host_check *check, const struct tt_check_op *op)
{
    size_t i = 0;
    while (i < check->ncalls && check->calls[i] != op)
        i++;
    if (i < check->ncalls) check->calls[i] = check->calls[--check->ncalls];
}

/* While it runs, what precedes it is over, and the host may learn so in ways that are not observed.
 */
static void run_annotated(void *arg)
{
    struct annotated_call *call = arg;
    struct tt_host_check *check = tt_host_check_lock();
    if (check && call->op) {
        struct tt_check_clock **host = &check->tasks[TT_CHECK_HOST].now;
        tt_check_clock_merge(host, call->op->before);
        tt_check_clock_raise(host, call->op->task, call->op->epoch - 1);
        tt_check_guard_except(check, call->op);
    }
    tt_host_check_unlock(check);
    struct tt_check_op *outer = tt_host_thread.check.op;
    tt_host_thread.check.op = call->op;
    call->fn(call->arg);
    tt_host_thread.check.op = outer;
    check = tt_host_check_lock();
    if (check && call->op) {
        tt_check_guard_again(check, call->op);
        drop_call(check, call->op);
    }
    if (check) tt_check_op_drop(call->op);
    tt_host_check_unlock(check);
    free(call);
}

void tt_host_check_runs(void (*fn)(void *), bool begins)
{
    if (fn == run_annotated) return; /* which knows what is behind it */
    struct tt_host_check *check = tt_host_check_lock();
    if (check && begins) tt_check_guard_except(check, NULL);
    if (check && !begins) tt_check_guard_again(check, NULL);
    tt_host_check_unlock(check);
}

void tt_host_check_kernel(const struct tt_check_words *words, bool begins)
{
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (begins && words->count) pthread_mutex_lock(&check->kernels);
    tt_host_check_lock();
    tt_check_guard_running(check, words, begins ? 1 : -1);
    tt_host_check_unlock(check);
    if (!begins && words->count) pthread_mutex_unlock(&check->kernels);
}

void tt_host_check_call(struct CUstream_st *stream, void (**fn)(void *), void **arg)
{
    struct annotated_call *call = tt_check_is_captured(stream) ? NULL : calloc(1, sizeof(*call));
    if (!call) return;
    *call = (struct annotated_call){*fn, *arg, NULL};
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        tt_check_note_opaque(check, stream);
        call->op = tt_check_op_begin(check, stream, "host function"); /* it has arrived */
        if (call->op) add_call(check, call->op);
    }
    tt_host_check_unlock(check);
    *fn = run_annotated;
    *arg = call;
}

/* ---- what programs report ---- */

static void annotated_access(const void *ptr, size_t bytes, bool write)
{
    if (!tt_host_checks()) return;
    if (tt_host_thread.check.touches) {
        tt_check_touches_bytes(tt_host_thread.check.touches, ptr, bytes, write);
        return;
    }
    struct tt_host_check *check = tt_host_check_lock();
    struct tt_check_op *op = check ? tt_host_thread.check.op : NULL;
    if (op) op->refs++;
    if (check && !op && !tt_host_thread.in_host_fn && !tt_host_thread.in_kernel)
        op = tt_check_op_begin(check, NULL, "the host");
    tt_check_touch(check, op, ptr, bytes, write);
    if (check) tt_check_op_drop(op);
    tt_host_check_unlock(check);
}

void tuttiCheckRead(const void *ptr, size_t bytes)
{
    annotated_access(ptr, bytes, false);
}

void tuttiCheckWrite(const void *ptr, size_t bytes)
{
    annotated_access(ptr, bytes, true);
}
