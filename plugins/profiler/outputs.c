/* TUTTI_TRACE_OUTPUTS: what is written, several at once. The records' own file is the writer's;
 * here are the files of operations and of Chrome's events. A file that cannot be written is
 * reported once and given up.
 */
#include "outputs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JSONL = 1, INSPECTOR = 2, PROMETHEUS = 4, RECORDS = 8, CHROME = 16 };
enum { USUAL_SECONDS = 5, BUFFER_BYTES = 65536 };

/* A file that grows. */
struct growing {
    int output;
    const char *variable, *usual; /* its name */
    int fd;
    size_t used, tail_bytes; /* tail_bytes: of its end, which what follows overwrites */
    char buffer[BUFFER_BYTES];
};

struct trace_outputs {
    int wanted;
    bool failed[CHROME + 1];
    struct trace_rank **ranks; /* owned, as are they; of contexts from `first` on */
    uint32_t first, nranks;
    struct trace_operations *operations; /* owned */
    struct trace_metrics *metrics;       /* owned */
    uint64_t least_bytes;                /* shorter operations are not written */
    uint64_t interval_nsec, written_nsec;
    char host[TRACE_HOST_BYTES];
    struct trace_chrome *chrome;  /* owned; NULL: not wanted */
    struct growing lines, events; /* of the inspector, and Chrome's */
};

/* ---- variables ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

/* Bits of the names in a list; -1: one of them is none. */
static int parse(const char *text)
{
    static const struct {
        const char *name;
        int bit;
    } names[] = {{"jsonl", JSONL},
                 {"inspector", INSPECTOR},
                 {"prometheus", PROMETHEUS},
                 {"records", RECORDS},
                 {"chrome", CHROME}};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    int wanted = 0;
    for (;;) {
        size_t bytes = strcspn(text, ","), k = 0;
        while (k < NAMES &&
               (strlen(names[k].name) != bytes || strncmp(names[k].name, text, bytes) != 0))
            k++;
        if (k == NAMES) return -1;
        wanted |= names[k].bit;
        if (!text[bytes]) return wanted;
        text += bytes + 1;
    }
}

/* Without the variable what the inspector's own ask for comes beside the records. */
static int wanted_outputs(bool *bad)
{
    const char *text = getenv("TUTTI_TRACE_OUTPUTS");
    int wanted = text && *text ? parse(text) : JSONL;
    bool asked = !(text && *text) && is_set("NCCL_INSPECTOR_ENABLE");
    *bad = wanted < 0;
    if (wanted < 0) wanted = JSONL;
    if (asked) wanted |= is_set("NCCL_INSPECTOR_PROM_DUMP") ? PROMETHEUS : INSPECTOR;
    return wanted;
}

static uint64_t interval_nsec(void)
{
    const char *own = getenv("TUTTI_TRACE_INTERVAL");
    const char *theirs = getenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS");
    double seconds = own ? strtod(own, NULL) : 0;
    if (seconds <= 0 && theirs) seconds = strtod(theirs, NULL) / 1e6;
    if (!(seconds > 0 && seconds < 1e6)) seconds = USUAL_SECONDS;
    return (uint64_t)(seconds * 1e9);
}

bool trace_outputs_begin(void)
{
    struct trace_process *all = &trace_process;
    const char *least = getenv("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES");
    bool bad;
    int wanted = wanted_outputs(&bad);
    all->records_wanted = wanted & (JSONL | RECORDS);
    if (all->fd < 0) all->block.wanted = wanted & RECORDS;
    if (all->outputs || !(wanted & (INSPECTOR | PROMETHEUS | CHROME))) return !bad;
    struct trace_outputs *outputs = calloc(1, sizeof(*outputs));
    if (!outputs) return false;
    outputs->wanted = wanted;
    outputs->lines = (struct growing){
        .output = INSPECTOR, "TUTTI_TRACE_INSPECTOR_FILE", "%h-pid%p.log", .fd = -1};
    outputs->events = (struct growing){
        .output = CHROME, "TUTTI_TRACE_CHROME_FILE", "tutti-trace.%h.%p.chrome.json", .fd = -1};
    outputs->operations = trace_operations_create(is_set("NCCL_INSPECTOR_DUMP_VERBOSE"));
    outputs->metrics = trace_metrics_create();
    outputs->interval_nsec = interval_nsec();
    outputs->least_bytes = least ? strtoull(least, NULL, 10) : 0;
    trace_host(outputs->host, sizeof(outputs->host));
    if (wanted & CHROME) outputs->chrome = trace_chrome_create(outputs->host);
    all->outputs = outputs;
    bool good = outputs->operations && outputs->metrics && (outputs->chrome || !(wanted & CHROME));
    if (good && outputs->chrome) {
        outputs->events.used =
            trace_chrome_head(outputs->chrome, outputs->host, outputs->events.buffer);
    }
    if (good) return !bad;
    trace_outputs_forget();
    return false;
}

void trace_outputs_forget(void)
{
    struct trace_outputs *outputs = trace_process.outputs;
    if (!outputs) return;
    if (outputs->lines.fd >= 0) close(outputs->lines.fd);
    if (outputs->events.fd >= 0) close(outputs->events.fd);
    trace_chrome_destroy(outputs->chrome);
    trace_operations_destroy(outputs->operations);
    trace_metrics_destroy(outputs->metrics);
    for (uint32_t k = 0; k < outputs->nranks; k++)
        free(outputs->ranks[k]);
    free(outputs->ranks);
    free(outputs);
    trace_process.outputs = NULL;
}

/* ---- ranks ---- */

/* The device of the calling thread, where a CUDA runtime is there to ask. */
static int current_device(void)
{
    int (*ask)(int *) = NULL;
    int device = -1;
    void *symbol = dlsym(RTLD_DEFAULT, "cudaGetDevice");
    memcpy(&ask, &symbol, sizeof(ask)); /* no cast of C makes a function of an object */
    return ask && ask(&device) == 0 ? device : -1;
}

void trace_outputs_join(uint32_t number, const struct trace_communicator *communicator)
{
    struct trace_outputs *outputs = trace_process.outputs;
    if (!outputs) return;
    if (outputs->nranks == 0) outputs->first = number;
    if (number != outputs->first + outputs->nranks) return; /* memory was short before */
    struct trace_rank **ranks =
        realloc(outputs->ranks, (outputs->nranks + 1) * sizeof(struct trace_rank *));
    struct trace_rank *rank = calloc(1, sizeof(*rank));
    if (ranks) outputs->ranks = ranks;
    if (!ranks || !rank) {
        free(rank);
        return; /* its operations are only in the records */
    }
    rank->comm = communicator->comm;
    rank->rank = communicator->rank;
    rank->nranks = communicator->nranks;
    rank->nnodes = communicator->nnodes;
    rank->version = communicator->version;
    rank->device = current_device();
    trace_clean(rank->name, sizeof(rank->name), communicator->name);
    ranks[outputs->nranks++] = rank;
}

struct trace_rank *trace_outputs_rank(uint64_t context)
{
    const struct trace_outputs *outputs = trace_process.outputs;
    uint32_t at = (uint32_t)(context & 0xffffff) - outputs->first;
    bool own = (int)(context >> 24) == trace_process.pid;
    return own && at < outputs->nranks ? outputs->ranks[at] : NULL;
}

/* ---- files ---- */

static void give_up(struct trace_outputs *outputs, int output, const char *path)
{
    int error = errno;
    if (outputs->failed[output]) return;
    outputs->failed[output] = true;
    trace_complain("trace: cannot be written: ", path, error);
}

/* The folder that the inspector's variable names, if it is one of its files, or ours. */
static void path_of(int output, const char *variable, const char *usual, char *path)
{
    const char *pattern = getenv(variable);
    const char *folder = output == CHROME ? NULL : getenv("NCCL_INSPECTOR_DUMP_DIR");
    char text[TRACE_PATH_BYTES];
    if (!folder || !*folder) folder = getenv("TUTTI_PROFILE_DIR");
    if (!folder || !*folder) folder = ".";
    snprintf(text, sizeof(text), "%s/%s", folder, usual);
    trace_name(pattern && *pattern ? pattern : text, path, TRACE_PATH_BYTES);
    trace_make_folder(path);
}

static void write_growing(struct trace_outputs *outputs, struct growing *file)
{
    char path[TRACE_PATH_BYTES];
    struct trace_guard guard;
    size_t done = 0;
    if (outputs->failed[file->output]) file->used = 0;
    if (file->used == 0) return;
    path_of(file->output, file->variable, file->usual, path);
    if (file->fd < 0) file->fd = trace_create_file(path);
    trace_guard_begin(&guard);
    if (file->tail_bytes) lseek(file->fd, -(off_t)file->tail_bytes, SEEK_CUR); /* no pipe does */
    file->tail_bytes = 0;
    while (file->fd >= 0 && done < file->used) {
        ssize_t n = write(file->fd, file->buffer + done, file->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    if (done < file->used) give_up(outputs, file->output, path);
    trace_guard_end(&guard, done < file->used);
    file->used = 0;
}

/* With its end, so that it can be read; if more comes that takes its place. */
static void end_events(struct trace_outputs *outputs)
{
    struct growing *events = &outputs->events;
    write_growing(outputs, events);
    size_t bytes = trace_chrome_tail(outputs->chrome, events->buffer);
    events->used = bytes;
    write_growing(outputs, events);
    events->tail_bytes = bytes;
}

/* A new file takes the old one's place at once, as who reads it may come at any time. */
static void write_metrics(struct trace_outputs *outputs)
{
    char path[TRACE_PATH_BYTES], fresh[TRACE_PATH_BYTES + 8];
    struct trace_guard guard;
    if (outputs->failed[PROMETHEUS]) return;
    trace_guard_begin(&guard);
    path_of(PROMETHEUS, "TUTTI_TRACE_PROMETHEUS_FILE", "nccl_inspector_metrics_%h_%p.prom", path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    FILE *file = fopen(fresh, "we");
    bool good = file != NULL;
    if (file) {
        trace_metrics_print(outputs->metrics, outputs->host,
                            trace_operations_given_up(outputs->operations), file);
        good = !ferror(file);
        if (fclose(file)) good = false;
        if (good) good = rename(fresh, path) == 0;
        if (!good) (void)unlink(fresh);
    }
    if (!good) give_up(outputs, PROMETHEUS, path);
    trace_guard_end(&guard, !good);
}

void trace_outputs_take(const struct trace_record *record, int tid)
{
    struct trace_outputs *outputs = trace_process.outputs;
    struct trace_operation operation;
    struct growing *lines = &outputs->lines, *events = &outputs->events;
    if (outputs->chrome) {
        if (events->used + TRACE_CHROME_BYTES > sizeof(events->buffer))
            write_growing(outputs, events);
        events->used +=
            trace_chrome_take(outputs->chrome, record, tid, events->buffer + events->used);
    }
    if (!(outputs->wanted & (INSPECTOR | PROMETHEUS))) return;
    if (!trace_operations_follow(outputs->operations, record, &operation)) return;
    if (operation.bytes < outputs->least_bytes) return;
    if (outputs->wanted & PROMETHEUS) trace_metrics_add(outputs->metrics, &operation);
    if (!(outputs->wanted & INSPECTOR)) return;
    if (lines->used + TRACE_INSPECTOR_BYTES > sizeof(lines->buffer)) write_growing(outputs, lines);
    lines->used += trace_inspector_line(&operation, outputs->host, lines->buffer + lines->used);
}

void trace_outputs_write(uint64_t now_nsec, bool all_of_it)
{
    struct trace_outputs *outputs = trace_process.outputs;
    if (!outputs || (!all_of_it && now_nsec - outputs->written_nsec < outputs->interval_nsec))
        return;
    outputs->written_nsec = now_nsec;
    write_growing(outputs, &outputs->lines);
    write_growing(outputs, &outputs->events);
    if (outputs->chrome && all_of_it) end_events(outputs);
    if (outputs->wanted & PROMETHEUS) write_metrics(outputs);
}
