/* What a program tells for what nobody can see: its own loads and stores, those of host functions
 * and kernels. */
#include "access.h"
#include "guard.h"
#include "tutti.h"

#include "device/host/host.h"

#include <stdlib.h>

/* ---- host functions ---- */

struct annotated_call {
    void (*fn)(void *);
    void *arg;
    struct check_op *op; /* owned */
};

/* While it runs, what precedes it is over, and it may tell the host so by ways that nobody sees. */
static void run_annotated(void *arg)
{
    struct annotated_call *call = arg;
    struct host_check *check = host_check_lock();
    if (check && call->op) {
        struct check_clock **host = &check->tasks[CHECK_HOST].now;
        check_clock_merge(host, call->op->before);
        check_clock_raise(host, call->op->task, call->op->epoch - 1);
        check_guard_except(check, call->op);
    }
    host_check_unlock(check);
    struct check_op *outer = host_thread.checked;
    host_thread.checked = call->op;
    call->fn(call->arg);
    host_thread.checked = outer;
    check = host_check_lock();
    if (check && call->op) check_guard_again(check, call->op);
    if (check) check_op_drop(call->op);
    host_check_unlock(check);
    free(call);
}

void host_check_runs(void (*fn)(void *), bool begins)
{
    if (fn == run_annotated) return; /* which knows what is behind it */
    struct host_check *check = host_check_lock();
    if (check && begins) check_guard_except(check, NULL);
    if (check && !begins) check_guard_again(check, NULL);
    host_check_unlock(check);
}

void host_check_kernel(const struct check_words *words, bool begins)
{
    struct host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (begins && words->count) pthread_mutex_lock(&check->kernels);
    host_check_lock();
    check_guard_running(check, words, begins ? 1 : -1);
    host_check_unlock(check);
    if (!begins && words->count) pthread_mutex_unlock(&check->kernels);
}

void host_check_call(struct CUstream_st *stream, void (**fn)(void *), void **arg)
{
    struct annotated_call *call = check_is_captured(stream) ? NULL : calloc(1, sizeof(*call));
    if (!call) return;
    *call = (struct annotated_call){*fn, *arg, NULL};
    struct host_check *check = host_check_lock();
    if (check) {
        check_note_opaque(check, stream);
        call->op = check_op_begin(check, stream, "host function"); /* it has arrived */
    }
    host_check_unlock(check);
    *fn = run_annotated;
    *arg = call;
}

/* ---- what programs tell ---- */

static void annotated_access(const void *ptr, size_t bytes, bool write)
{
    if (!host_checks()) return;
    if (host_thread.touches) {
        check_touches_bytes(host_thread.touches, ptr, bytes, write);
        return;
    }
    struct host_check *check = host_check_lock();
    struct check_op *op = check ? host_thread.checked : NULL;
    if (op) op->refs++;
    if (check && !op && !host_thread.in_host_fn && !host_thread.in_kernel)
        op = check_op_begin(check, NULL, "the host");
    check_touch(check, op, ptr, bytes, write);
    if (check) check_op_drop(op);
    host_check_unlock(check);
}

void tuttiCheckRead(const void *ptr, size_t bytes)
{
    annotated_access(ptr, bytes, false);
}

void tuttiCheckWrite(const void *ptr, size_t bytes)
{
    annotated_access(ptr, bytes, true);
}
