/* TUTTI_TRACE_KEEP: the last records of the process instead of all, in memory, until something asks
 * for them. The oldest make room for the newest. A start that has gone takes its states, its end
 * and its place as a parent along: ids of a ring count up, so the oldest that is left shows which
 * are gone. All but the handler is called under the process's lock. */
#include "trace.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_BYTES = 64 << 20, WAIT_NSEC = 1000000, WAITS = 2000, ID_SHIFT = 40 };

/* "64M", "30s", "64M,30s"; false: something else. */
static bool parse(const char *text, size_t *bytes_out, uint64_t *nsec_out)
{
    static const char units[] = "KMG";
    *bytes_out = USUAL_BYTES;
    *nsec_out = UINT64_MAX;
    for (const char *at = text;; at++) {
        char *end;
        double number = strtod(at, &end);
        const char *unit = *end ? strchr(units, *end) : NULL;
        if (end == at || !(number > 0 && number < 1e12)) return false;
        if (*end == 's') {
            *nsec_out = (uint64_t)(number * 1e9);
        } else if (unit) {
            *bytes_out = (size_t)(number * (double)(1ull << (10 * (unit - units + 1))));
        } else {
            return false;
        }
        at = end + 1;
        if (*at != ',') return *at == '\0';
    }
}

bool trace_keep_begin(void)
{
    struct trace_kept *kept = &trace_process.kept;
    const char *text = getenv("TUTTI_TRACE_KEEP");
    size_t bytes;
    if (kept->room || !text || !*text) return true;
    if (!parse(text, &bytes, &kept->span_nsec)) return false;
    size_t room = bytes / sizeof(*kept->records);
    kept->records = room ? calloc(room, sizeof(*kept->records)) : NULL; /* taken as it is used */
    if (kept->records) kept->room = room;
    return kept->records != NULL;
}

/* ---- records ---- */

static void drop_oldest(void)
{
    struct trace_kept *kept = &trace_process.kept;
    const struct trace_record *oldest = &kept->records[kept->first].record;
    uint64_t ring = (oldest->id >> ID_SHIFT) - 1;
    if (oldest->kind == TRACE_START && ring < TRACE_RINGS) kept->least_id[ring] = oldest->id + 1;
    kept->first = (kept->first + 1) % kept->room;
    kept->count--;
    kept->rolled++;
}

void trace_keep(const struct trace_record *record, int tid)
{
    struct trace_kept *kept = &trace_process.kept;
    while (kept->count == kept->room ||
           (kept->count > 0 && record->ts_nsec > kept->records[kept->first].record.ts_nsec &&
            record->ts_nsec - kept->records[kept->first].record.ts_nsec > kept->span_nsec))
        drop_oldest();
    size_t at = (kept->first + kept->count++) % kept->room;
    kept->records[at] = (struct trace_kept_record){*record, tid};
}

/* Whether the event of this process that has the id is still there. */
static bool is_there(uint64_t id)
{
    uint64_t ring = (id >> ID_SHIFT) - 1;
    return ring >= TRACE_RINGS || id >= trace_process.kept.least_id[ring];
}

bool trace_keep_at(size_t k, struct trace_record *record_out, int *tid_out)
{
    const struct trace_kept *kept = &trace_process.kept;
    const struct trace_kept_record *own = &kept->records[(kept->first + k) % kept->room];
    *record_out = own->record;
    *tid_out = own->tid;
    if (record_out->kind != TRACE_START) return is_there(record_out->id);
    bool theirs = record_out->pid != 0 && record_out->pid != trace_process.pid;
    if (!theirs && !is_there(record_out->parent)) record_out->parent = 0;
    if (!is_there(record_out->group)) record_out->group = 0;
    return true;
}

/* Lines that each file needs: communicators and threads. */
void trace_keep_line(const char *line, size_t bytes)
{
    struct trace_kept *kept = &trace_process.kept;
    char *lines = realloc(kept->lines, kept->lines_bytes + bytes);
    if (!lines) return; /* its events have a number without a name */
    memcpy(lines + kept->lines_bytes, line, bytes);
    kept->lines = lines;
    kept->lines_bytes += bytes;
}

void trace_keep_forget(void)
{
    struct trace_kept *kept = &trace_process.kept;
    kept->first = kept->count = kept->lines_bytes = 0;
    kept->rolled = 0;
}

/* ---- signals ---- */

/* The writer's thread writes, which has a sound stack and no lock of ours in the way; two seconds
 * are enough for it or it has come to an end as well. */
static void on_signal(int number)
{
    struct trace_kept *kept = &trace_process.kept;
    const struct timespec interval = {.tv_nsec = WAIT_NSEC};
    uint32_t turn = atomic_fetch_add(&kept->asked, 1) + 1;
    if (number == SIGUSR2) return;
    for (int k = 0; k < WAITS && (int32_t)(atomic_load(&kept->answered) - turn) < 0; k++)
        nanosleep(&interval, NULL);
    signal(number, SIG_DFL);
    raise(number);
}

/* What another thread handles already belongs to it. */
void trace_keep_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGUSR2};
    struct trace_kept *kept = &trace_process.kept;
    if (!kept->room || kept->has_signals) return;
    kept->has_signals = true;
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
        struct sigaction before, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        sigemptyset(&ours.sa_mask);
        if (!sigaction(numbers[k], NULL, &before) && before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[k], &ours, NULL);
    }
}
