/* Files into the model, line by line: nothing of a file is kept but the events, so its size does
 * not matter. */
#include "../model.h"
#include "reader.h"

#include "base/mem.h"
#include "base/system/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 17 }; /* stays in the processor's cache until it is looked at */
enum { BUFFER_BYTES = 1 << 20, SLACK_BYTES = SCAN_SLACK_BYTES + 8, REPORTED_MOST = 3 };
static const uint64_t progress_nsec = 2000000000;

void timeline_complain(struct timeline *run, enum complaint kind, uint64_t number, const char *fmt,
                       ...)
{
    struct timeline_reader *reader = run->reader;
    va_list args;
    run->complaints++;
    if (++reader->reported[kind] > REPORTED_MOST) return;
    (void)fprintf(stderr, "%s:%llu: ", run->paths[reader->file], (unsigned long long)number);
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void report_rest(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    static const char *const rest[COMPLAINT_COUNT_] = {"are no events",
                                                       "come before any head",
                                                       "are heads of a version that is not known",
                                                       "have no id or one that is taken",
                                                       "have no sound time",
                                                       "are of events that do not begin",
                                                       "end an event again",
                                                       "are of no communicator",
                                                       "had no room"};
    for (int kind = 0; kind < COMPLAINT_COUNT_; kind++) {
        if (reader->reported[kind] <= REPORTED_MOST) continue;
        (void)fprintf(stderr, "%s: %llu more of its lines %s\n", run->paths[reader->file],
                      (unsigned long long)(reader->reported[kind] - REPORTED_MOST), rest[kind]);
    }
    memset(reader->reported, 0, sizeof(reader->reported));
}

/* That of an array of which there are millions; NULL: none. */
static struct reserve *reserve_of(struct timeline *run, const void *array)
{
    if (array == &run->events) return &run->reader->space_of_events;
    return array == &run->states ? &run->reader->space_of_states : NULL;
}

bool timeline_widen(struct timeline *run, void *array, uint32_t count, size_t size)
{
    void **pointer = array, *grown = NULL;
    struct reserve *reserve = reserve_of(run, array);
    if (count && count < UINT32_MAX / 2) {
        if (reserve && count * size >= RESERVE_LEAST_BYTES)
            grown = reserve_grow(reserve, *pointer, count / 2 * size, count * size);
        if (!grown && !(reserve && reserve->base)) grown = realloc(*pointer, count * size);
    }
    if (grown) {
        *pointer = grown;
        return true;
    }
    if (!run->reader->short_of_memory) (void)fprintf(stderr, "tutti trace: out of memory\n");
    run->reader->short_of_memory = true;
    return false;
}

void timeline_plain(char *to, size_t to_bytes, const char *from, size_t bytes)
{
    size_t used = 0;
    for (; used < bytes && used + 1 < to_bytes; used++) {
        bool plain = from[used] >= ' ' && from[used] <= '~' && from[used] != '"';
        to[used] = from[used];
        if (!plain || from[used] == '\\') to[used] = '_';
    }
    to[used] = '\0';
}

uint16_t timeline_word_of(struct timeline *run, const char *text, size_t bytes)
{
    enum { SLOTS = TT_LEN(((struct timeline_reader *)0)->words), MOST = SLOTS / 2 };
    struct timeline_reader *reader = run->reader;
    char plain[TIMELINE_NAME_BYTES];
    uint64_t hash = bytes;
    if (bytes == 0) return 0;
    if (bytes == 7 && !memcmp(text, "Unknown", 7)) { /* so NCCL calls the type that has no name */
        text = "ncclUint8";
        bytes = 9;
    }
    if (bytes >= sizeof(plain)) bytes = sizeof(plain) - 1;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    uint32_t slot = (uint32_t)(hash ^ hash >> 15) % SLOTS;
    for (; reader->words[slot]; slot = (slot + 1) % SLOTS) {
        const char *known = run->words[reader->words[slot]];
        if (!strncmp(known, text, bytes) && !known[bytes]) return reader->words[slot];
    }
    timeline_plain(plain, sizeof(plain), text, bytes);
    if (memcmp(plain, text, bytes) != 0) return timeline_word_of(run, plain, bytes);
    if (run->nwords >= MOST) return 0;
    if (!timeline_grow(run, &run->words, run->nwords, sizeof(run->words[0]))) return 0;
    memcpy(run->words[run->nwords], plain, sizeof(plain));
    reader->words[slot] = (uint16_t)run->nwords;
    return (uint16_t)run->nwords++;
}

void timeline_report_progress(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    if (!isatty(STDERR_FILENO)) return;
    uint64_t now = tt_now_nsec();
    if (!reader->said_at_nsec) reader->said_at_nsec = now;
    if (now - reader->said_at_nsec < progress_nsec) return;
    reader->said_at_nsec = now;
    (void)fprintf(stderr, "\r\033[Kreading %s: %llu MiB, %u events", run->paths[reader->file],
                  (unsigned long long)(run->bytes >> 20), run->nevents);
}

/* The process that the file tells of still writes it. */
static bool is_live(const struct timeline *run)
{
    uint32_t process = run->reader->process;
    return process != TIMELINE_NONE && run->processes[process].runs;
}

/* Editors and shells of other systems put one before a text, and so between texts that were joined.
 */
static char *skip_mark(const struct timeline *run, char *at, const char *end)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t bytes = sizeof(mark) - 1;
    if (end - at < (ptrdiff_t)bytes || memcmp(at, mark, bytes) != 0) return at;
    (void)fprintf(stderr, "%s:%llu: a byte-order mark, which is passed over\n",
                  run->paths[run->reader->file], (unsigned long long)run->reader->number);
    return at + bytes;
}

/* One line; `end` is its '\n'. `cut`: the file ends without one. */
static void read_line(struct timeline *run, char *at, const char *end, bool cut)
{
    struct timeline_reader *reader = run->reader;
    timeline_count_line(run);
    at = skip_mark(run, at, end);
    if (at == end) return;
    if (line_read(&reader->names, at, end, &reader->line)) {
        if (reader->line.kind != LINE_RECORDS)
            shapes_learn(&reader->shapes, at, end, &reader->line);
        timeline_usual_learn(run);
        timeline_take(run);
    } else if (cut && !is_live(run)) {
        timeline_complain(run, COMPLAINT_LINE, reader->number,
                          "the file ends in the middle of a line: its process was killed, or still "
                          "writes it");
    } else if (!cut) {
        timeline_complain(run, COMPLAINT_LINE, reader->number, "%s", reader->line.wrong);
    }
}

/* Lines of the `used` bytes, and what stands between them in blocks; returns how many bytes are
 * left of a line or a record that has no end yet. The byte behind them is written. */
static size_t read_lines(struct timeline *run, char *buffer, size_t used)
{
    struct timeline_reader *reader = run->reader;
    char *at = buffer, *limit = buffer + used;
    *limit = '\n';
    while (at < limit) {
        if (reader->records.left_bytes) {
            size_t taken = timeline_records_take(run, at, (size_t)(limit - at));
            if (taken == 0) break;
            timeline_report_progress(run);
            at += taken;
            continue;
        }
        const char *end = timeline_usual_line(run, at, limit);
        if (end) {
            at += end + 1 - at;
            continue;
        }
        if (!reader->usual.is_new) end = shapes_read(&reader->shapes, at, limit, &reader->line);
        if (end) {
            timeline_count_line(run);
            timeline_take(run);
        } else {
            end = memchr(at, '\n', (size_t)(limit - at));
            if (!end) break;
            read_line(run, at, end, false);
        }
        at += end + 1 - at;
    }
    size_t left = (size_t)(limit - at);
    memmove(buffer, at, left);
    return left;
}

/* A line that does not fit is passed over up to its end; returns what is left behind it. */
static size_t skip_long(char *buffer, size_t used, bool *too_long)
{
    char *end = memchr(buffer, '\n', used);
    if (!end) return 0;
    *too_long = false;
    used -= (size_t)(end + 1 - buffer);
    memmove(buffer, end + 1, used);
    return used;
}

/* Begins as no text of UTF-8 does; said, with what helps. */
static bool is_other_format(struct timeline *run, const char *bytes, size_t count)
{
    static const struct {
        char begin[8];
        const char *what;
    } formats[] = {
        {"\x1f\x8b", "packed by gzip: zcat it into `tutti trace -`; nothing of it is used"},
        {"\x28\xb5\x2f\xfd",
         "packed by zstd: zstdcat it into `tutti trace -`; nothing of it is used"},
        {"\xfd\x37zXZ", "packed by xz: xzcat it into `tutti trace -`; nothing of it is used"},
        {"\xff\xfe", "a text of UTF-16: bring it to UTF-8 with iconv; nothing of it is used"},
        {"\xfe\xff", "a text of UTF-16: bring it to UTF-8 with iconv; nothing of it is used"},
    };
    for (size_t k = 0; k < TT_LEN(formats); k++) {
        size_t length = strlen(formats[k].begin);
        if (count < length || memcmp(bytes, formats[k].begin, length) != 0) continue;
        timeline_complain(run, COMPLAINT_LINE, 1, "%s", formats[k].what);
        return true;
    }
    return false;
}

/* What is left behind the last whole line, and whether there should be more. */
static void read_end(struct timeline *run, char *buffer, size_t used)
{
    const struct timeline_reader *reader = run->reader;
    buffer[used] = '\n';
    if (reader->records.left_bytes && !is_live(run)) {
        timeline_complain(run, COMPLAINT_LINE, reader->number,
                          "the file ends in the middle of its records: its process was killed, or "
                          "still writes it");
    } else if (used && !reader->records.left_bytes) {
        read_line(run, buffer, buffer + used, true);
    }
}

static bool read_stream(struct timeline *run, int fd, const char *path)
{
    struct timeline_reader *reader = run->reader;
    char *buffer = tt_calloc(1, BUFFER_BYTES + SLACK_BYTES);
    size_t used = 0;
    bool too_long = false, is_first = true;
    ssize_t n = 1;
    if (!buffer) return false;
    while (n != 0 && !reader->short_of_memory) {
        n = read(fd, buffer + used, tt_min_size(BUFFER_BYTES - used, READ_BYTES));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        if (is_first && is_other_format(run, buffer, (size_t)n)) break;
        is_first = false;
        run->bytes += (uint64_t)n;
        used += (size_t)n;
        if (too_long) used = skip_long(buffer, used, &too_long);
        if (!too_long) used = read_lines(run, buffer, used);
        if (used < BUFFER_BYTES) continue; /* a record is shorter, so it is a line */
        timeline_complain(run, COMPLAINT_LINE, ++reader->number, "a line of more than %d bytes",
                          BUFFER_BYTES);
        too_long = true;
        used = 0;
    }
    if (n < 0) (void)fprintf(stderr, "tutti trace: %s: %s\n", path, strerror(errno));
    read_end(run, buffer, used);
    free(buffer);
    return n >= 0;
}

static bool read_file(struct timeline *run, const char *path)
{
    bool is_input = !strcmp(path, "-");
    /* a FIFO that has no writer yet is waited for, as the user's shell makes them: <(zcat ...) */
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct timeline_reader *reader = run->reader;
    if (fd < 0) {
        (void)fprintf(stderr, "tutti trace: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (!timeline_grow(run, &run->paths, run->npaths, sizeof(run->paths[0]))) return false;
    char *name = strdup(is_input ? "standard input" : path);
    if (!name) return false;
    timeline_plain(name, strlen(name) + 1, name, strlen(name));
    run->paths[run->npaths] = name;
    reader->file = run->npaths++;
    reader->fd = fd;
    reader->number = 0;
    reader->process = TIMELINE_NONE;
    bool good = read_stream(run, fd, path);
    timeline_end_process(run);
    report_rest(run);
    if (!is_input) close(fd);
    if (reader->said_at_nsec) (void)fputs("\r\033[K", stderr);
    return good && !reader->short_of_memory;
}

static int is_trace(const struct dirent *entry)
{
    return timeline_is_trace(entry->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Nothing is in a folder itself: `tutti doctor --flight` makes a folder in it for each of several
 * jobs, and each is a run of its own. */
static void say_empty(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_visible, alphasort);
    (void)fprintf(stderr, "tutti trace: %s: no *.jsonl and no *.records in it\n", path);
    for (int i = 0; i < count; i++) {
        char name[4096];
        struct dirent **traces = NULL;
        int bytes = snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        int ntraces = bytes < (int)sizeof(name) ? scandir(name, &traces, is_trace, NULL) : 0;
        for (int k = 0; k < ntraces; k++)
            free(traces[k]);
        free(traces);
        if (ntraces > 0) {
            timeline_plain(name, sizeof(name), name, strlen(name));
            (void)fprintf(stderr, "tutti trace: there are some in %s: give that\n", name);
        }
        free(entries[i]);
    }
    free(entries);
}

static bool read_folder(struct timeline *run, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_trace, timeline_by_dump);
    bool good = count > 0;
    if (count == 0) say_empty(path);
    if (count < 0) (void)fprintf(stderr, "tutti trace: %s: %s\n", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        char name[4096];
        int bytes = snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        if (good && bytes < (int)sizeof(name)) good = read_file(run, name);
        free(entries[i]);
    }
    free(entries);
    return good;
}

bool timeline_open(struct timeline *run)
{
    memset(run, 0, sizeof(*run));
    run->types = (1u << TIMELINE_TYPE_COUNT_) - 1;
    run->reader = tt_calloc(1, sizeof(*run->reader));
    if (!run->reader) {
        (void)fprintf(stderr, "tutti trace: out of memory\n");
        return false;
    }
    line_names_init(&run->reader->names);
    run->reader->process = TIMELINE_NONE;
    if (!timeline_grow(run, &run->words, 0, sizeof(run->words[0]))) return false;
    memset(run->words[0], 0, sizeof(run->words[0]));
    run->nwords = 1;
    for (int type = 0; type < TIMELINE_TYPE_COUNT_; type++) {
        const char *name = timeline_type_name((enum timeline_type)type);
        timeline_word_of(run, name, strlen(name)); /* the word of a type is its number plus 1 */
    }
    return true;
}

bool timeline_read(struct timeline *run, const char *path)
{
    struct stat found;
    if (strcmp(path, "-") != 0 && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return read_folder(run, path);
    return read_file(run, path);
}

bool timeline_finish(struct timeline *run)
{
    if (!timeline_report_runs(run) || !timeline_match(run) || !timeline_set_clocks(run))
        return false;
    timeline_time_operations(run);
    return true;
}

void timeline_close(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    for (uint32_t i = 0; i < run->npaths; i++)
        free(run->paths[i]);
    void *const arrays[] = {run->processes, run->clocks,     run->threads, run->members,
                            run->comms,     run->operations, run->parts,   run->words,
                            run->paths,     run->flights,    run->messages};
    for (size_t i = 0; i < TT_LEN(arrays); i++)
        free(arrays[i]);
    if (reader) {
        reserve_free(&reader->space_of_events, run->events);
        reserve_free(&reader->space_of_states, run->states);
        ids_clear(&reader->events);
        ids_clear(&reader->members);
        ids_clear(&reader->threads);
        ids_clear(&reader->comms);
        ids_clear(&reader->dumped);
        free(reader->laters);
    }
    free(reader);
    memset(run, 0, sizeof(*run));
}
