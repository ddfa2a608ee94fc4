/* The checker's beginning and end: TUTTI_CHECK, and what it does to the program's exit status. */
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/host/check/shadow/guard.h"
#include "device/host/check/shadow/io.h"
#include "device/host/check/task/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FOUND = 66 };

struct tt_host_check *tt_host_check_lock(void)
{
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (!check) return NULL;
    tt_host_thread.check.site =
        tt_check_call_site(); /* which may load a library: not under the lock */
    pthread_mutex_lock(&check->lock);
    tt_host_thread.check.is_locked = true;
    return check;
}

void tt_host_check_unlock(struct tt_host_check *check)
{
    if (!check) return;
    if (tt_check_guard_due(check)) {
        tt_check_fault_arm(check); /* before the first page is closed */
        tt_check_guard_update(check);
    }
    if (check->nguards) tt_check_fault_unblock();
    tt_host_thread.check.faults.steps = 0;
    tt_host_thread.check.is_locked = false;
    pthread_mutex_unlock(&check->lock);
}

static void report_leaks(void)
{
    struct tt_host_check *check = tt_host_forked() ? NULL : tt_host_check_lock();
    if (check) tt_check_report_leaks(check);
    tt_host_check_unlock(check);
}

void tuttiHostFail(const char *why)
{
    atomic_store(&tt_host.fails_as, why);
}

/* In one write, as ranks may share standard error. False: standard error is closed. */
static bool write_end(size_t findings, int own, int status)
{
    char text[256];
    const char *many = findings == 1 ? "" : "s";
    int len = 0;
    if (findings && status != own) {
        len = snprintf(text, sizeof(text),
                       "tutti check: %zu finding%s; the exit status is %d instead of the "
                       "program's %d\n",
                       findings, many, status, own);
    } else if (findings) {
        len = snprintf(text, sizeof(text), "tutti check: %zu finding%s\n", findings, many);
    } else if (status != own) {
        len = snprintf(text, sizeof(text),
                       "tutti check: the exit status is %d instead of the program's %d: %s\n",
                       status, own, atomic_load(&tt_host.fails_as));
    }
    return !len || write(STDERR_FILENO, text, (size_t)len) >= 0;
}

static void end(int own, void *unused)
{
    (void)unused;
    if (tt_host_forked()) return;
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    tt_host_check_lock();
    if (check) tt_check_flush_findings(check, true);
    tt_host_check_unlock(check);
    size_t findings = check ? atomic_load(&check->findings) : 0;
    int status = !own && atomic_load(&tt_host.fails_as) ? EXIT_FAILURE : own;
    if (findings && check->fails) status = EXIT_FOUND;
    if (!write_end(findings, own & 0xff, status & 0xff)) return;
    if (status == own) return;
    fflush(NULL);
    _exit(status);
}

/* At load, and before the libraries that need this one, so that the handler is the last of ours and
 * none of them loses what it says at the exit. */
__attribute__((constructor)) static void watch_exit(void)
{
    on_exit(end, NULL);
}

void tt_host_check_start(void)
{
    const char *text = tt_param_str("TUTTI_CHECK"), *given = tt_param_text("TUTTI_CHECK");
    if (given && !*given) return;
    if (!text && tt_param_bool("TUTTI_STRICT")) text = "race:exit";
    if (!text) return;
    const bool leaks = strstr(text, ",leaks");
    struct tt_host_check *check = tt_calloc(1, sizeof(*check));
    if (!check) return;
    pthread_mutex_init(&check->lock, NULL);
    pthread_mutex_init(&check->kernels, NULL);
    check->aborts = !strncmp(text, "race:abort", strlen("race:abort"));
    check->fails =
        !strncmp(text, "race:exit", strlen("race:exit")) || tt_param_bool("TUTTI_STRICT");
    check->reports_leaks = leaks;
    check->io_instead = tt_check_io_instead;
    if (leaks) atexit(report_leaks);
    atomic_store_explicit(&tt_host.check, check, memory_order_release);
}
