/* DIAGNOSTICS in the words and order of NCCL's report. Checks of what is not here (error counters
 * of a device's memory, NVLink) are left out, as NCCL leaves out what a machine does not have. */
#include "watch/ras/diagnose.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/device.h"
#include "nccl.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTED_RANKS = 16, VALUE_BYTES = 1024, PRINT_MSEC = 1000 };

/* ---- of this process ---- */

char *tt_diagnose_settings(void)
{
    char *text = NULL;
    size_t bytes = 0;
    struct tt_device_info info = {.name = "no device"};
    int devices = tuttiHostDeviceCount();
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    if (devices > 0) tuttiHostDeviceInfo(0, &info);
    fprintf(out, "gpus=%dx %s\ndriver=%d\n", devices, info.name, CUDART_VERSION);
    for (char **variable = environ; variable && *variable; variable++) {
        if (strncmp(*variable, "NCCL_", 5) != 0 || !strchr(*variable, '=')) continue;
        for (const char *c = *variable; *c; c++)
            fputc(*c == '\n' ? ' ' : *c, out);
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

/* ---- the report ---- */

struct diagnosis {
    FILE *out;
    const struct tt_inquiry *inquiry;
    const struct tt_inquiry_comm *comm;
    const char **texts; /* by rank; NULL: it has not answered */
};

static void line(const struct diagnosis *on, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void line(const struct diagnosis *on, const char *fmt, ...)
{
    va_list args;
    fprintf(on->out, "%s:%d NCCL DIAG ", on->inquiry->self.host, on->inquiry->self.pid);
    va_start(args, fmt);
    vfprintf(on->out, fmt, args);
    va_end(args);
    fputc('\n', on->out);
}

/* The value of a name in a text of settings; false: it is not there. */
static bool value_of(const char *text, const char *name, size_t name_bytes, char value[VALUE_BYTES])
{
    for (; text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
        if (strncmp(text, name, name_bytes) != 0 || text[name_bytes] != '=') continue;
        const char *from = text + name_bytes + 1;
        snprintf(value, VALUE_BYTES, "%.*s", (int)strcspn(from, "\n"), from);
        return true;
    }
    snprintf(value, VALUE_BYTES, "(unset)");
    return false;
}

/* What one rank has of a name. */
struct held {
    int rank;
    int first;   /* rank that has the same */
    char *value; /* owned */
};

/* "{0,1,2}" of these ranks, with an end where there are too many. */
static void rank_list(const struct held *of, int count, char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "{");
    for (int i = 0; i < count && i < LISTED_RANKS; i++) {
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%d", i ? "," : "", of[i].rank);
    }
    if (count > LISTED_RANKS) {
        snprintf(text + used, text_bytes - used, ",...} (%d in all)", count);
    } else {
        snprintf(text + used, text_bytes - used, "}");
    }
}

/* One line for each value that ranks have of a name. True: there are several. */
static bool differs(const struct diagnosis *on, const char *name, size_t name_bytes)
{
    char first[VALUE_BYTES] = "", value[VALUE_BYTES] = "";
    const char *before = NULL;
    for (int rank = 0; rank < on->comm->nranks; rank++) {
        const char *text = on->texts[rank];
        if (!text || text == before) continue; /* ranks of a process lie side by side */
        value_of(text, name, name_bytes, before ? value : first);
        if (before && strcmp(value, first) != 0) return true;
        before = text;
    }
    return false;
}

static int by_value(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    int order = strcmp(a->value, b->value);
    return order ? order : a->rank - b->rank;
}

static int by_first(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    return a->first != b->first ? a->first - b->first : a->rank - b->rank;
}

/* Bring ranks with the same value together, the lowest first. */
static void sort_held(struct held *held, int count)
{
    qsort(held, (size_t)count, sizeof(*held), by_value);
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && !strcmp(held[i].value, held[i - 1].value);
        held[i].first = same ? held[i - 1].first : held[i].rank;
    }
    qsort(held, (size_t)count, sizeof(*held), by_first);
}

/* Returns how many are known. */
static int take_held(const struct diagnosis *on, const char *name, size_t name_bytes,
                     struct held *held)
{
    char value[VALUE_BYTES];
    int count = 0;
    for (int rank = 0; rank < on->comm->nranks; rank++) {
        if (!on->texts[rank]) continue;
        value_of(on->texts[rank], name, name_bytes, value);
        held[count] = (struct held){.rank = rank, .value = strdup(value)};
        if (held[count].value) count++;
    }
    return count;
}

static void print_values(const struct diagnosis *on, const char *check, const char *name,
                         size_t name_bytes)
{
    char list[LISTED_RANKS * 12 + 40];
    const bool variable = !strncmp(name, "NCCL_", 5);
    struct held *held = tt_calloc((size_t)on->comm->nranks, sizeof(*held));
    if (!held) return;
    const int count = take_held(on, name, name_bytes, held);
    sort_held(held, count);
    for (int i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && held[next].first == held[i].first;)
            next++;
        rank_list(&held[i], next - i, list, sizeof(list));
        line(on, "[INFO] %s: %.*s%s%s on rank(s) %s", check, variable ? (int)name_bytes : 0, name,
             variable ? "=" : "", held[i].value, list);
    }
    for (int i = 0; i < count; i++)
        free(held[i].value);
    free(held);
}

/* A value that all ranks should have alike. */
static void check_value(const struct diagnosis *on, const char *check, const char *name,
                        const char *after)
{
    char value[VALUE_BYTES] = "";
    unsigned long long id = on->comm->comm_id;
    if (differs(on, name, strlen(name))) {
        line(on, "[INFO] %s: mismatch across %d ranks in comm 0x%llx", check, on->comm->nfound, id);
        print_values(on, check, name, strlen(name));
        return;
    }
    for (int rank = 0; rank < on->comm->nranks && !*value; rank++) {
        if (on->texts[rank]) value_of(on->texts[rank], name, strlen(name), value);
    }
    line(on, "[OK]   %s: %s%s consistent across %d ranks in comm 0x%llx", check, value, after,
         on->comm->nfound, id);
}

/* Some rank before this one has the variable, too, so it was looked at. */
static bool seen_before(const struct diagnosis *on, int rank, const char *name, size_t name_bytes)
{
    char value[VALUE_BYTES];
    for (int r = 0; r < rank; r++) {
        if (on->texts[r] && value_of(on->texts[r], name, name_bytes, value)) return true;
    }
    return false;
}

static void check_variables(const struct diagnosis *on)
{
    const char *check = "NCCL environment", *before = NULL;
    unsigned long long id = on->comm->comm_id;
    int differing = 0;
    for (int rank = 0; rank < on->comm->nranks; rank++) {
        const char *text = on->texts[rank];
        if (!text || text == before) continue;
        before = text;
        for (; text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
            size_t bytes = strcspn(text, "=\n");
            if (strncmp(text, "NCCL_", 5) != 0 || seen_before(on, rank, text, bytes) ||
                !differs(on, text, bytes))
                continue;
            differing++;
            line(on, "[INFO] %s: mismatch across %d ranks in comm 0x%llx for %.*s", check,
                 on->comm->nfound, id, (int)bytes, text);
            print_values(on, check, text, bytes);
        }
    }
    if (differing) {
        line(on, "[INFO] %s: %d NCCL_* env var(s) differ across ranks in comm 0x%llx", check,
             differing, id);
    } else {
        line(on, "[OK]   %s: NCCL_* env vars consistent across %d ranks in comm 0x%llx", check,
             on->comm->nfound, id);
    }
}

static void check_comm(struct diagnosis *on, const struct tt_inquiry_comm *comm)
{
    char list[LISTED_RANKS * 12 + 40];
    int nmissing = 0;
    struct held *missing = tt_calloc((size_t)comm->nranks, sizeof(*missing));
    on->comm = comm;
    on->texts = tt_calloc((size_t)comm->nranks, sizeof(*on->texts));
    for (int rank = 0; missing && on->texts && rank < comm->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(on->inquiry, comm->comm_id, rank);
        if (status) on->texts[rank] = tt_inquiry_settings(on->inquiry, status->process.key);
        if (!on->texts[rank]) missing[nmissing++].rank = rank;
    }
    if (missing && on->texts) {
        check_value(on, "GPU inventory", "gpus", " per node");
        check_value(on, "CUDA driver version", "driver", "");
        check_variables(on);
        if (nmissing) {
            rank_list(missing, nmissing, list, sizeof(list));
            line(on, "[INFO] Ranks: no answer from rank(s) %s in comm 0x%llx", list,
                 (unsigned long long)comm->comm_id);
        }
    }
    free(on->texts);
    free(missing);
}

void tt_diagnose_report(FILE *out, const struct tt_inquiry *inquiry, uint64_t comm_id)
{
    struct diagnosis on = {.out = out, .inquiry = inquiry};
    line(&on, "=== RAS Diagnostics ===");
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        if (!comm_id || inquiry->comms[i].comm_id == comm_id) check_comm(&on, &inquiry->comms[i]);
    }
    line(&on, "RAS diagnostics completed in %.1f ms across %zu RAS peers",
         (double)inquiry->took_nsec * 1e-6, inquiry->nsettings);
}

char *tt_diagnose_text(const struct tt_inquiry *inquiry, uint64_t comm_id)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    tt_diagnose_report(out, inquiry, comm_id);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

void tt_diagnose_print(const char *text)
{
    for (size_t left = strlen(text); left;) {
        struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&out, 1, PRINT_MSEC) == 0) {
            tt_warn("RAS diagnostics: nobody reads standard output; the rest is left out");
            return;
        }
        ssize_t n = write(STDOUT_FILENO, text, left < PIPE_BUF ? left : PIPE_BUF);
        if (n < 0 && errno != EINTR && errno != EAGAIN) return;
        if (n > 0) text += n;
        if (n > 0) left -= (size_t)n;
    }
}
