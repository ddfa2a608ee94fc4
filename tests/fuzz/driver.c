/* Runs a fuzz target without an engine: driver COUNT SEED FOLDER [SUFFIX [CORPUS]]. Every file of
 * the folder and of the kept corpus as it is, then COUNT mutations of them ("60s": for 60 seconds):
 * bytes, numbers and lines changed, doubled, moved or taken from another file. Deterministic for a
 * seed, so that a crash can be run again; the input at work lies in ./fuzz-last-PID until the end.
 * With COUNT 0 only the files (a kept corpus). */
#include "fuzz/target.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 1024, MOST_BYTES = 1 << 18 };

struct text {
    char *at;
    size_t bytes;
};

struct corpus {
    struct text text[MOST_FILES];
    size_t count;
    bool is_json; /* numbers stand without quotes */
};

static uint64_t state;

static size_t below(size_t limit) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return limit ? (size_t)((state * 0x2545f4914f6cdd1dull) >> 33) % limit : 0;
}

/* ---- corpus ---- */

static void load(struct corpus *corpus, const char *path)
{
    struct text text = {.at = malloc(MOST_BYTES)};
    FILE *in = fopen(path, "rb");
    if (in && text.at && corpus->count < MOST_FILES) {
        text.bytes = fread(text.at, 1, MOST_BYTES, in);
        corpus->text[corpus->count++] = text;
        text.at = NULL;
    }
    if (in) (void)fclose(in);
    free(text.at);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    return length > strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(struct corpus *corpus, const char *folder, const char *suffix)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, NULL, by_name);
    for (int k = 0; k < count; k++) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[k]->d_name);
        if (has_suffix(names[k]->d_name, suffix)) load(corpus, path);
        free(names[k]);
    }
    free(names);
}

/* ---- mutations ---- */

static void replace(struct text *text, size_t at, size_t removed, const char *with, size_t count)
{
    if (at > text->bytes || removed > text->bytes - at) return;
    if (text->bytes - removed + count > MOST_BYTES) return;
    memmove(text->at + at + count, text->at + at + removed, text->bytes - at - removed);
    memcpy(text->at + at, with, count);
    text->bytes += count - removed;
}

struct span {
    size_t at, bytes;
};

static struct span line_of(const struct text *text)
{
    size_t at = below(text->bytes);
    size_t end = at;
    while (at > 0 && text->at[at - 1] != '\n') {
        at--;
    }
    while (end < text->bytes && text->at[end] != '\n') {
        end++;
    }
    return (struct span){at, (end < text->bytes ? end + 1 : end) - at};
}

static void change_byte(struct text *text)
{
    if (text->bytes) text->at[below(text->bytes)] = (char)below(256);
}

static void change_number(struct text *text)
{
    static const char *const values[] = {"0",  "-1", "1",          "2147483647", "-2147483648",
                                         "65", "",   "4294967296", "0x7fffffff", "9e99",
                                         "8",  "16", "100",        "nan",        "640"};
    size_t at = below(text->bytes);
    while (at < text->bytes && text->at[at] != '"') {
        at++;
    }
    size_t end = at + 1;
    while (end < text->bytes && text->at[end] != '"') {
        end++;
    }
    if (end >= text->bytes) return;
    const char *value = values[below(sizeof(values) / sizeof(values[0]))];
    replace(text, at + 1, end - at - 1, value, strlen(value));
}

/* Digits behind a colon. */
static void change_digits(struct text *text)
{
    static const char *const values[] = {"0",
                                         "-1",
                                         "1",
                                         "2147483647",
                                         "65535",
                                         "4294967295",
                                         "18446744073709551615",
                                         "2305843009213693952",
                                         "31",
                                         "100"};
    size_t at = below(text->bytes);
    while (at < text->bytes && text->at[at] != ':')
        at++;
    size_t end = at + 1;
    while (end < text->bytes && text->at[end] >= '0' && text->at[end] <= '9')
        end++;
    if (end >= text->bytes || end == at + 1) return;
    const char *value = values[below(sizeof(values) / sizeof(values[0]))];
    /* near the old one: times that overlap */
    if (below(2))
        text->at[at + 1 + below(end - at - 1)] = (char)('0' + below(10));
    else
        replace(text, at + 1, end - at - 1, value, strlen(value));
}

static void move_line(struct text *text, const struct text *from)
{
    char copy[4096];
    struct span line = line_of(from);
    size_t count = line.bytes < sizeof(copy) ? line.bytes : sizeof(copy);
    memcpy(copy, from->at + line.at, count);
    replace(text, line_of(text).at, 0, copy, count);
}

static void drop_line(struct text *text)
{
    struct span line = line_of(text);
    replace(text, line.at, line.bytes, "", 0);
}

static void mutate(struct text *text, const struct corpus *corpus)
{
    for (size_t left = 1 + below(6); left > 0; left--) {
        switch (below(8)) {
        case 0: change_byte(text); break;
        case 1: drop_line(text); break;
        case 2: move_line(text, text); break;
        case 3: move_line(text, &corpus->text[below(corpus->count)]); break;
        case 4: text->bytes = text->bytes ? text->bytes - below(text->bytes) / 8 : 0; break;
        default:
            if (corpus->is_json)
                change_digits(text);
            else
                change_number(text);
            break;
        }
    }
}

/* ---- running ---- */

static const char *last_name(void)
{
    static char name[32];
    (void)snprintf(name, sizeof(name), "fuzz-last-%d", (int)getpid());
    return name;
}

static void run(const struct text *text)
{
    FILE *out = fopen(last_name(), "wb");
    if (out) {
        (void)fwrite(text->at, 1, text->bytes, out);
        (void)fclose(out);
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)text->at, text->bytes);
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    if (argc < 4) {
        (void)fprintf(stderr, "usage: %s COUNT|SECONDSs SEED FOLDER [SUFFIX [CORPUS]]\n", argv[0]);
        return 2;
    }
    char *unit = NULL;
    long count = strtol(argv[1], &unit, 10);
    bool timed = unit && strcmp(unit, "s") == 0;
    time_t end = time(NULL) + count;
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    load_folder(&corpus, argv[3], argc > 4 ? argv[4] : "");
    corpus.is_json = argc > 4 && strcmp(argv[4], ".jsonl") == 0;
    if (argc > 5) load_folder(&corpus, argv[5], "");
    struct text text = {.at = malloc(MOST_BYTES)};
    if (corpus.count == 0 || !text.at) {
        (void)fprintf(stderr, "no files in %s\n", argv[3]);
        free(text.at);
        return 2;
    }
    for (size_t k = 0; k < corpus.count; k++)
        run(&corpus.text[k]);
    long done = 0;
    for (; timed ? time(NULL) < end : done < count; done++) {
        const struct text *base = &corpus.text[below(corpus.count)];
        memcpy(text.at, base->at, base->bytes);
        text.bytes = base->bytes;
        mutate(&text, &corpus);
        run(&text);
    }
    (void)unlink(last_name());
    (void)printf("%zu files and %ld mutations\n", corpus.count, done);
    for (size_t k = 0; k < corpus.count; k++)
        free(corpus.text[k].at);
    free(text.at);
    return 0;
}
