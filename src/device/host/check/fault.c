/* The handler behind guard.c: an access to a page that is closed. It is the program's own, made
 * where it may hold any lock but ours, as a rule not that of malloc: the access is to memory that
 * malloc does not know. What is no page of ours goes to the handler that was there before. */
#include "base/arch/fault.h"

#include "state.h"

#include "device/host/memory/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, TRIES_MOST = 1000 };

/* The same address again and again with nothing for us to open: the page is none that we closed. */
static bool is_stuck(const void *ptr)
{
    bool again = host_thread.fault_ptr == ptr;
    host_thread.fault_ptr = ptr;
    host_thread.faults = again ? host_thread.faults + 1 : 0;
    return host_thread.faults > TRIES_MOST;
}

static void open_page(const void *ptr)
{
    char *page = (char *)((uintptr_t)ptr / PAGE * PAGE);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* The program's own access of a byte. */
static void judge(struct host_check *check, const void *ptr, const ucontext_t *context)
{
    bool write = tt_cpu_fault_writes(context, check_guard_of(check, ptr) == PROT_READ);
    struct check_op *op =
        check_op_begin(check, NULL, write ? "a store of the host" : "a load of the host");
    if (!op) return;
    check_touch(check, op, ptr, 1, write);
    check_op_drop(op);
}

static bool answer(const siginfo_t *info, const ucontext_t *context)
{
    const struct host_memory *memory = &tt_host.memory;
    const char *ptr = info->si_addr;
    if (info->si_code != SEGV_ACCERR || (size_t)(ptr - memory->host.base) >= memory->host.bytes)
        return false;
    if (host_forked() || host_thread.is_checking) { /* nobody to tell; our own look at it */
        open_page(ptr);
        return host_thread.is_checking || !is_stuck(ptr);
    }
    host_thread.site = check_fault_site(tt_cpu_fault_site(context));
    struct host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    pthread_mutex_lock(&check->lock);
    host_thread.is_checking = true;
    bool closed = check_guard_of(check, ptr) != (PROT_READ | PROT_WRITE);
    bool ours = host_thread.is_worker || host_thread.in_host_fn || host_thread.in_kernel;
    if (closed && !ours) judge(check, ptr, context);
    if (closed) check_guard_open(check, ptr);
    bool opened = closed && check_guard_of(check, ptr) == (PROT_READ | PROT_WRITE);
    check->guards_stale = true; /* closed again at the next call, or when what runs returns */
    host_thread.is_checking = false;
    pthread_mutex_unlock(&check->lock); /* and nothing is closed: the access is yet to come */
    if (opened) host_thread.faults = 0;
    return opened || !is_stuck(ptr);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    const struct host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    bool answered = answer(info, context);
    errno = kept;
    if (answered) return;
    const struct sigaction *outer = &check->outer;
    if (outer->sa_flags & SA_SIGINFO) {
        outer->sa_sigaction(number, info, context);
    } else if (outer->sa_handler != SIG_DFL && outer->sa_handler != SIG_IGN) {
        outer->sa_handler(number);
    } else if (info->si_code > 0) {
        signal(number, SIG_DFL); /* the access comes again, and ends the process */
    } else if (outer->sa_handler == SIG_DFL) {
        signal(number, SIG_DFL); /* it was sent: what ends the process is this one, */
        raise(number);           /* when the handler returns */
    }
}

void check_fault_arm(struct host_check *check)
{
    struct sigaction now, ours = {.sa_sigaction = on_fault};
    if (sigaction(SIGSEGV, NULL, &now)) return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
    check->outer = now;
    ours.sa_mask = now.sa_mask;
    /* on the stack that the program's handler wants; where it has none, the thread's is deeper */
    ours.sa_flags = SA_SIGINFO | (now.sa_flags & SA_ONSTACK);
    sigaction(SIGSEGV, &ours, NULL);
}

void check_fault_unblock(void)
{
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}
