/* What the checker says: a sentence, then both sides, the memory, and the wait that is missing. It
 * goes to stderr whatever NCCL_DEBUG says. The same two calls are named once. */
#include "site.h"

#include "device/host/check/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 256, TEXT_BYTES = 2048 };

/* ---- parts of a report ---- */

struct text {
    char bytes[TEXT_BYTES];
    size_t len;
};

static void add(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text->bytes + text->len, sizeof(text->bytes) - text->len, fmt, args);
    va_end(args);
    if (len > 0) text->len += (size_t)len;
    if (text->len >= sizeof(text->bytes)) text->len = sizeof(text->bytes) - 1;
}

static void add_stream(struct text *text, const struct tt_check_op *op)
{
    if (op->task == TT_CHECK_HOST) {
        add(text, "the host");
    } else if (op->task == CHECK_GRAPH) {
        add(text, "a branch of its own");
    } else if (op->legacy) {
        add(text, "the default stream of device %d", op->device);
    } else {
        add(text, "stream %llu of device %d%s", (unsigned long long)op->stream_id, op->device,
            op->blocking ? "" : " (non-blocking)");
    }
}

static void add_side(struct text *text, const char *which, const struct tt_check_op *op,
                     const char *does)
{
    char site[LINE_BYTES];
    tt_check_site_write(op->site, site, sizeof(site));
    add(text, "  %s %s, on ", which, op->name);
    add_stream(text, op);
    add(text, ", %s%s%s\n", does, !*site ? "" : op->plain ? ", at " : ", called at ", site);
}

/* `freed`: the memory may have been freed before. */
static void add_memory(struct text *text, const struct tt_host_check *check, const void *ptr,
                       size_t bytes, const struct tt_check_mark *freed)
{
    static const char *const kinds[] = {"memory of the program", "device memory", "pinned memory",
                                        "managed memory", "control memory"};
    const struct tt_check_mark *block = tt_check_block_of(check, ptr);
    char site[LINE_BYTES] = "";
    add(text, "  memory  %zu byte%s at %p", bytes, bytes == 1 ? "" : "s", ptr);
    if (!block) block = freed;
    if (!block) {
        add(text, "\n");
        return;
    }
    tt_check_site_write(block->site, site, sizeof(site));
    add(text, ", byte %zu of %s of %zu bytes of %s",
        (size_t)((const char *)ptr - (const char *)block->key),
        block == freed ? "what was an allocation" : "an allocation",
        block == freed ? block->gone.bytes : block->bytes, kinds[block->kind]);
    if (block->kind == TT_MEMORY_DEVICE) add(text, " of device %d", block->device);
    add(text, "%s%s\n", *site ? ", allocated at " : "", site);
}

/* Memory that a library of ours took for itself: what the program forgot is to end it. */
static bool is_private(const struct tt_host_check *check, const void *ptr)
{
    for (size_t i = 0; i < check->nprivate; i++) {
        if (check->private[i].ptr == ptr) return true;
    }
    return false;
}

void tt_check_report_leaks(struct tt_host_check *check)
{
    size_t reported = 0;
    for (size_t i = 0; i < check->blocks.room; i++) {
        const struct tt_check_mark *block = &check->blocks.at[i];
        struct text text = {.len = 0};
        if (!block->key || !block->bytes || is_private(check, block->key)) continue;
        atomic_fetch_add(&check->findings, 1);
        if (reported++ >= TT_CHECK_REPORTS_MOST) continue;
        add(&text, "tutti check: leak: nobody freed what was allocated\n");
        add_memory(&text, check, block->key, block->bytes, NULL);
        if (write(STDERR_FILENO, text.bytes, text.len) < 0) return; /* standard error is closed */
    }
}

static void add_missing(struct text *text, const struct tt_check_op *first,
                        const struct tt_check_op *second)
{
    add(text, "  missing ");
    if (first->task == TT_CHECK_HOST) {
        add(text, "a wait of the host between the two");
    } else if (second->task == TT_CHECK_HOST) {
        add(text, "cudaStreamSynchronize or cudaEventSynchronize for ");
        add_stream(text, first);
        add(text, " between the two");
    } else {
        add(text, "cudaEventRecord behind the first on ");
        add_stream(text, first);
        add(text, ", cudaStreamWaitEvent before the second on ");
        add_stream(text, second);
    }
    bool one_default = (first->legacy && second->task && !second->blocking) ||
                       (second->legacy && first->task && !first->blocking);
    if (one_default) add(text, "; the default stream is not ordered with non-blocking streams");
    add(text, "\n");
}

static void add_race(struct text *text, struct tt_host_check *check,
                     const struct tt_check_finding *finding)
{
    const struct tt_check_op *first = finding->first, *second = finding->second;
    const char *one = finding->first_writes ? "writes" : "reads";
    const char *other = finding->second_writes ? "writes" : "reads";
    add(text, "tutti check: race: %s %s what %s %s, and nothing orders the two\n", second->name,
        other, first->name, one);
    add_side(text, "first  ", first, one);
    add_side(text, "second ", second, other);
    add_memory(text, check, finding->ptr, finding->bytes, NULL);
    switch (finding->kind) {
    case TT_CHECK_IN_GRAPH: add(text, "  missing a path of edges between the two nodes\n"); break;
    case TT_CHECK_IN_GROUP: add(text, "  missing a group of its own for one of the two\n"); break;
    default: add_missing(text, first, second); break;
    }
}

static void add_outside(struct text *text, struct tt_host_check *check,
                        const struct tt_check_finding *finding)
{
    const struct tt_check_op *op = finding->second;
    const struct tt_check_mark *block = tt_check_block_of(check, finding->ptr);
    size_t at = block ? (size_t)((const char *)finding->ptr - (const char *)block->key) : 0;
    if (block && at + finding->bytes > block->bytes) {
        add(text, "tutti check: outside: %s of %zu bytes goes %zu bytes past the allocation\n",
            op->name, finding->bytes, at + finding->bytes - block->bytes);
    } else if (finding->freed) {
        add(text, "tutti check: use after free: %s touches memory that is freed\n", op->name);
    } else {
        add(text, "tutti check: outside: %s touches %zu bytes that are not all allocated\n",
            op->name, finding->bytes);
    }
    const char *does = finding->second_writes ? "writes" : "reads";
    const struct tt_check_mark *freed =
        !block && finding->freed ? tt_check_freed_of(check, finding->ptr) : NULL;
    add_side(text, "call   ", op, finding->refused ? "refused" : does);
    add_memory(text, check, finding->ptr, finding->bytes, freed);
    if (!freed) return;
    char site[LINE_BYTES];
    tt_check_site_write(freed->gone.site, site, sizeof(site));
    if (*site) add(text, "  freed   at %s\n", site);
}

static void write_text(struct text *text, struct tt_host_check *check,
                       const struct tt_check_finding *finding)
{
    const struct tt_check_op *first = finding->first, *second = finding->second;
    const char *does = finding->second_writes ? "writes" : "reads";
    switch (finding->kind) {
    case TT_CHECK_RACE:
    case TT_CHECK_IN_GRAPH:
    case TT_CHECK_IN_GROUP: add_race(text, check, finding); break;
    case TT_CHECK_USE_AFTER_FREE:
        add(text, "tutti check: use after free: %s %s memory that was freed before\n", second->name,
            does);
        add_side(text, "freed  ", first, "frees");
        add_side(text, "used   ", second, does);
        add_memory(text, check, finding->ptr, finding->bytes,
                   tt_check_freed_of(check, finding->ptr));
        break;
    case TT_CHECK_UNWRITTEN:
        add(text, "tutti check: unwritten: %s reads device memory that nothing wrote\n",
            second->name);
        add_side(text, "read   ", second, does);
        add_memory(text, check, finding->ptr, finding->bytes, NULL);
        break;
    case TT_CHECK_OUTSIDE: add_outside(text, check, finding); break;
    }
}

static bool is_news(struct tt_host_check *check, const struct tt_check_finding *finding)
{
    const struct tt_check_report_key key = {finding->first ? finding->first->site : NULL,
                                            finding->second->site, (int)finding->kind};
    for (size_t i = 0; i < check->nreported; i++) {
        const struct tt_check_report_key *one = &check->reported[i];
        if (one->first == key.first && one->second == key.second && one->kind == key.kind)
            return false;
    }
    if (check->nreported == TT_CHECK_REPORTS_MOST) return false;
    check->reported[check->nreported++] = key;
    return true;
}

void tt_check_report(struct tt_host_check *check, const struct tt_check_finding *finding)
{
    struct text text = {.len = 0};
    atomic_fetch_add(&check->findings, 1);
    if (!is_news(check, finding)) return;
    write_text(&text, check, finding);
    if (write(STDERR_FILENO, text.bytes, text.len) < 0) return; /* standard error is closed */
    if (check->aborts) abort();
}
