/* Fuzz target: any bytes as the trace files of a run. It is checked, summarised, drawn and
 * converted into every format; in Perfetto's form, read here by a decoder of its own, every slice
 * of a track must begin before it ends, in order of time. Some become archives of OTF2. */
#include "fuzz/target.h"
#include "tools/trace/tool.h"
#include "tools/tutti.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OTF2_EVERY = 64 }; /* an archive is many files */

static struct {
    char path[64];   /* of the input, */
    char output[64]; /* and of what is written */
    int in, out;
} fuzz = {.in = -1, .out = -1};

static void open_files(void)
{
    if (fuzz.in >= 0) return;
    fuzz.in = memfd_create("fuzz-in", 0);
    fuzz.out = memfd_create("fuzz-out", 0);
    FILE *nowhere = fopen("/dev/null", "w");
    if (fuzz.in < 0 || fuzz.out < 0 || !nowhere) abort();
    (void)snprintf(fuzz.path, sizeof(fuzz.path), "/proc/self/fd/%d", fuzz.in);
    (void)snprintf(fuzz.output, sizeof(fuzz.output), "/proc/self/fd/%d", fuzz.out);
    stderr = nowhere; /* complaints; a sanitizer's report goes to the descriptor, not here */
}

/* ---- what cmd_trace.c gives to the commands ---- */

int trace_load(const struct trace_options *options, int first, int count, struct timeline *run)
{
    bool good = timeline_open(run);
    (void)first, (void)count;
    run->types = options->types;
    good = good && timeline_read(run, fuzz.path) && run->nprocesses > 0 && timeline_finish(run);
    return good ? 0 : 1;
}

int tutti_usage_error(const char *command, const char *fmt, ...)
{
    (void)command, (void)fmt;
    abort(); /* all that is asked for here is right */
}

/* ---- Perfetto's form ---- */

struct field {
    uint64_t number, value; /* value: of a varint; of bytes how many */
    const uint8_t *bytes;   /* NULL: none */
};

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (*at == end) abort();
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    abort();
}

static bool next_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
    if (*at == end) return false;
    uint64_t tag = varint(at, end);
    *field = (struct field){.number = tag >> 3};
    if ((tag & 7) == 0) {
        field->value = varint(at, end);
        return true;
    }
    if ((tag & 7) != 1 && (tag & 7) != 2) abort();
    field->value = (tag & 7) == 1 ? 8 : varint(at, end);
    field->bytes = *at;
    if (field->value > (uint64_t)(end - *at)) abort();
    *at += field->value;
    return true;
}

struct walk {
    uint64_t track, depth, at_nsec;
};

static void check_slice(struct walk *walk, const struct field *event, uint64_t at_nsec)
{
    const uint8_t *at = event->bytes, *end = at + event->value;
    uint64_t type = 0, track = 0;
    for (struct field field; next_field(&at, end, &field);) {
        if (field.number == 9) type = field.value;
        if (field.number == 11) track = field.value;
    }
    if (track != walk->track) {
        if (walk->depth != 0) abort(); /* tracks are written one after the other */
        *walk = (struct walk){.track = track};
    }
    if (at_nsec < walk->at_nsec || (type == 2 && walk->depth == 0)) abort();
    if (type != 1 && type != 2) abort();
    walk->at_nsec = at_nsec;
    walk->depth += type == 1 ? 1 : UINT64_MAX;
}

static void check_perfetto(const uint8_t *at, const uint8_t *end)
{
    struct walk walk = {0};
    for (struct field packet; next_field(&at, end, &packet);) {
        if (packet.number != 1 || !packet.bytes) abort();
        const uint8_t *inner = packet.bytes, *inner_end = inner + packet.value;
        struct field event = {0};
        uint64_t at_nsec = 0;
        for (struct field field; next_field(&inner, inner_end, &field);) {
            if (field.number == 8) at_nsec = field.value;
            if (field.number == 11) event = field;
        }
        if (event.bytes) check_slice(&walk, &event, at_nsec);
    }
    if (walk.depth != 0) abort();
}

static void check_output(void)
{
    off_t bytes = lseek(fuzz.out, 0, SEEK_END);
    if (bytes <= 0) return;
    uint8_t *text = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fuzz.out, 0);
    if (text == MAP_FAILED) abort();
    check_perfetto(text, text + bytes);
    munmap(text, (size_t)bytes);
}

/* ---- OTF2 ---- */

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *where)
{
    (void)about, (void)flag, (void)where;
    return remove(path);
}

static void write_archive(struct trace_options *options)
{
    enum { OPEN_MOST = 8 };
    char folder[64];
    (void)snprintf(folder, sizeof(folder), "fuzz-archive-%d", (int)getpid());
    options->to = "otf2";
    options->output = folder;
    (void)trace_convert(options);
    (void)nftw(folder, remove_one, OPEN_MOST, FTW_DEPTH | FTW_PHYS);
}

/* ---- all of it ---- */

static void check_flights(const struct trace_options *options)
{
    struct timeline run;
    struct trace_findings findings = {.list = json_array()};
    if (trace_load(options, 0, 1, &run) == 0) (void)trace_check_flights(&run, &findings);
    json_decref(findings.list);
    timeline_close(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const formats[] = {"chrome", "jsonl", "inspector", "prometheus", "perfetto"};
    static unsigned int inputs;
    struct trace_options options = {.command = "fuzz", .types = UINT32_MAX, .events = 1000};
    open_files();
    options.output = fuzz.output;
    if (ftruncate(fuzz.in, 0) || pwrite(fuzz.in, bytes, count, 0) != (ssize_t)count) abort();
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
        options.to = formats[f];
        if (ftruncate(fuzz.out, 0)) abort();
        if (trace_convert(&options) == 0 && !strcmp(options.to, "perfetto")) check_output();
    }
    (void)trace_page(&options);
    check_flights(&options);
    if (inputs++ % OTF2_EVERY == 0) write_archive(&options);
    return 0;
}
