/* The handler behind guard.c: an access to a page that is closed. It is the program's own, made
 * where it may hold any lock but ours, as a rule not that of malloc: the access is to memory that
 * malloc does not know. What is no page of ours goes to the handler that was there before. */
#include "base/arch/fault.h"

#include "guard.h"
#include "inside.h"
#include "shadow.h"

#include "device/host/check/task/site.h"
#include "device/host/memory/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    OPEN = PROT_READ | PROT_WRITE,
    TRIES_MOST = 1000,
    STEPS_MOST = 4096,     /* accesses of one slice of a kernel that are looked at one by one, */
    STEPS_OF_HOST = 256,   /* ... of the program between two calls, */
    STEPS_OF_ALL = 400000, /* ... and of all kernels */
    RUN_FROM = 64,
    RUN_MOST = 4096, /* pages one behind the other until more are opened at once */
};

/* The same address again and again with nothing for us to open: the page is none that we closed. */
static bool is_stuck(const void *ptr)
{
    struct tt_check_faults *own = &tt_host_thread.check.faults;
    bool again = own->ptr == ptr;
    own->ptr = ptr;
    own->repeats = again ? own->repeats + 1 : 0;
    return own->repeats > TRIES_MOST;
}

static void open_page(const void *ptr)
{
    char *page = (char *)((uintptr_t)ptr / PAGE * PAGE);
    mprotect(page, PAGE, OPEN);
}

/* How many pages to open: a thread that goes through much memory is not stopped at each of them. */
static size_t run_at(const char *ptr)
{
    struct tt_check_faults *own = &tt_host_thread.check.faults;
    const char *page = (const char *)((uintptr_t)ptr / PAGE * PAGE);
    bool next = page == own->run_end;
    bool again = page >= own->run_start && page < own->run_end;
    if (again) return (size_t)(own->run_end - page) / PAGE; /* a store behind a load */
    own->run_pages = next ? own->run_pages + 1 : 0;
    size_t pages = own->run_pages < RUN_FROM ? 1 : 2 * (own->run_pages - RUN_FROM + 1);
    if (pages > RUN_MOST) pages = RUN_MOST;
    own->run_start = page;
    own->run_end = page + pages * PAGE;
    return pages;
}

/* ---- kernels that report nothing ---- */

/* Let one instruction find the page open. False: it has been looked at for long. */
static bool step_over(struct tt_host_check *check, const void *ptr, ucontext_t *context)
{
    struct tt_check_faults *own = &tt_host_thread.check.faults;
    size_t most = sizeof(own->opened) / sizeof(own->opened[0]);
    size_t steps_most = tt_host_thread.in_kernel ? STEPS_MOST : STEPS_OF_HOST;
    if (own->steps >= steps_most || check->steps >= STEPS_OF_ALL || own->nopened == most ||
        !tt_cpu_fault_step(context, true))
        return false;
    open_page(ptr);
    own->opened[own->nopened++] = ptr;
    own->steps++;
    check->steps++;
    return true;
}

/* What a kernel does there: it certainly accesses as many bytes as are reported. */
static void see(struct tt_host_check *check, const void *ptr, ucontext_t *context)
{
    bool polled = tt_check_guard_is_pinned(check, ptr);      /* maybe, by the program */
    size_t bytes = polled ? 0 : tt_cpu_fault_bytes(context); /* 0: an atomic access, or not known */
    bool write = tt_cpu_fault_writes(context, false);
    const struct tt_check_touch touch = {
        .kind = write ? TT_CHECK_TOUCH_WRITE : TT_CHECK_TOUCH_READ, .ptr = ptr, .bytes = bytes};
    if (bytes && tt_host_thread.check.op)
        tt_check_launch_see(check, tt_host_thread.check.op, &touch);
    if (bytes && tt_host_thread.check.op && step_over(check, ptr, context)) return;
    bool reads = bytes && !write && tt_check_guard_of(check, ptr) == PROT_NONE;
    size_t pages = run_at(ptr);
    if (reads) { /* where it stores as well, that is seen once */
        tt_check_guard_let_read(check, ptr, pages);
    } else {
        tt_check_guard_open(check, ptr, pages);
    }
}

static bool end_step(ucontext_t *context)
{
    struct tt_check_faults *own = &tt_host_thread.check.faults;
    if (!own->nopened) return false;
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    pthread_mutex_lock(&check->lock);
    for (size_t i = 0; i < own->nopened; i++)
        tt_check_guard_shut(check, own->opened[i]);
    pthread_mutex_unlock(&check->lock);
    own->nopened = 0;
    tt_cpu_fault_step(context, false);
    return true;
}

/* ---- faults ---- */

/* How many bytes the program's instruction certainly accesses: one, where that is not known. */
static size_t bytes_of(const ucontext_t *context)
{
    const size_t bytes = tt_cpu_fault_bytes(context);
    return bytes ? bytes : 1;
}

/* The program's own access; true: it has been reported. */
static bool judge(struct tt_host_check *check, const void *ptr, const ucontext_t *context)
{
    bool write = tt_cpu_fault_writes(context, tt_check_guard_of(check, ptr) == PROT_READ);
    size_t before = atomic_load_explicit(&check->findings, memory_order_relaxed);
    struct tt_check_op *op =
        tt_check_op_begin(check, NULL, write ? "a store of the host" : "a load of the host");
    if (!op) return true;
    op->plain = true;
    tt_check_touch(check, op, ptr, bytes_of(context), write);
    tt_check_op_drop(op);
    return atomic_load_explicit(&check->findings, memory_order_relaxed) != before;
}

/* An access of a host function; true: it has been reported. */
static bool judge_call(struct tt_host_check *check, const void *ptr, const ucontext_t *context)
{
    size_t before = atomic_load_explicit(&check->findings, memory_order_relaxed);
    const struct tt_check_op *call = tt_host_thread.check.op;
    struct tt_check_op *op = malloc(sizeof(*op));
    if (!op) return true;
    *op = *call;
    op->refs = 1;
    op->before = tt_check_clock_hold(call->before);
    tt_check_clock_merge(&op->before, check->tasks[TT_CHECK_HOST].now);
    tt_check_touch_in_call(
        check, op, ptr, bytes_of(context),
        tt_cpu_fault_writes(context, tt_check_guard_of(check, ptr) == PROT_READ));
    tt_check_op_drop(op);
    return atomic_load_explicit(&check->findings, memory_order_relaxed) != before;
}

/* True: nothing was reported, and the page is open for one instruction. */
static bool judge_and_step(struct tt_host_check *check, const void *ptr, ucontext_t *context)
{
    bool works = tt_host_thread.is_worker || tt_host_thread.in_host_fn || tt_host_thread.in_kernel;
    bool calls = tt_host_thread.in_host_fn && !tt_host_thread.in_kernel && tt_host_thread.check.op;
    if (works && !calls) return false;
    bool reported = calls ? judge_call(check, ptr, context) : judge(check, ptr, context);
    return !reported && step_over(check, ptr, context);
}

static bool answer(const siginfo_t *info, ucontext_t *context)
{
    struct tt_check_faults *own = &tt_host_thread.check.faults;
    const char *ptr = info->si_addr;
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    bool ours = tt_host_view(ptr) != ptr || atomic_load(&check->nlent);
    if (info->si_code != SEGV_ACCERR || !ours) return false;
    if (tt_host_forked() || tt_host_thread.check.is_locked) { /* no report: our own look at it */
        if (!tt_check_guard_holds(check, ptr)) return false;
        open_page(ptr);
        return tt_host_thread.check.is_locked || !is_stuck(ptr);
    }
    tt_host_thread.check.site = tt_check_fault_site(tt_cpu_fault_site(context));
    pthread_mutex_lock(&check->lock);
    if (!tt_check_guard_holds(check, ptr)) {
        pthread_mutex_unlock(&check->lock);
        return false;
    }
    tt_host_thread.check.is_locked = true;
    bool closed = tt_check_guard_of(check, ptr) != OPEN;
    bool stepped = closed && judge_and_step(check, ptr, context);
    bool seen = closed && tt_host_thread.in_kernel;
    if (seen) see(check, ptr, context);
    if (closed && !seen && !stepped) tt_check_guard_open(check, ptr, run_at(ptr));
    bool opened = closed && (own->nopened || tt_check_guard_of(check, ptr) == OPEN);
    check->guards_stale = true; /* closed again at the next call, or when what runs returns */
    tt_host_thread.check.is_locked = false;
    pthread_mutex_unlock(&check->lock); /* and nothing is closed: the access is yet to come */
    if (opened) own->repeats = 0;
    return opened || !is_stuck(ptr);
}

/* What is none of ours. */
static void pass_on(const struct sigaction *outer, int number, siginfo_t *info, void *context)
{
    if (outer->sa_flags & SA_SIGINFO) {
        outer->sa_sigaction(number, info, context);
    } else if (outer->sa_handler != SIG_DFL && outer->sa_handler != SIG_IGN) {
        outer->sa_handler(number);
    } else if (info->si_code > 0 && number == SIGSEGV) {
        signal(number, SIG_DFL); /* the access comes again, and ends the process */
    } else if (outer->sa_handler == SIG_DFL) {
        signal(number, SIG_DFL); /* it was sent: what ends the process is this one, */
        raise(number);           /* when the handler returns */
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    const struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    bool answered = answer(info, context);
    errno = kept;
    if (!answered) pass_on(&check->outer, number, info, context);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    const struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    bool answered = end_step(context);
    errno = kept;
    if (!answered) pass_on(&check->outer_trap, number, info, context);
}

/* Ours before the program's, *outer. */
static void arm(int number, void (*handler)(int, siginfo_t *, void *), struct sigaction *outer)
{
    struct sigaction now, ours = {.sa_sigaction = handler};
    if (sigaction(number, NULL, &now)) return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler) return;
    *outer = now;
    ours.sa_mask = now.sa_mask;
    /* on the stack that the program's handler wants; where it has none, the thread's is deeper */
    ours.sa_flags = SA_SIGINFO | (now.sa_flags & SA_ONSTACK);
    sigaction(number, &ours, NULL);
}

void tt_check_fault_arm(struct tt_host_check *check)
{
    arm(SIGSEGV, on_fault, &check->outer);
    arm(SIGTRAP, on_trap, &check->outer_trap);
}

void tt_check_fault_unblock(void)
{
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGTRAP);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}
