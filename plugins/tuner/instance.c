/* One instance of the tuner: the rules first, in their order; where none fits the model that
 * TUTTI_TUNER_MODEL names; else the host's own numbers stay as they are. What came as impossible is
 * never touched. */
#include "file.h"
#include "reload.h"

#include "tuner.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum model { MODEL_NONE, MODEL_MI300, MODEL_MEASURED };

struct tuner {
    struct tuner_size size;
    ncclDebugLogger_t log;
    enum model model;
    char path[PATH_MAX]; /* of the rules */
    struct tuner_rules rules;
    struct tuner_measured measured;
    struct tuner_reload *reload; /* owned; NULL: the rules stay */
};

static void report(const struct tuner *tuner, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void report(const struct tuner *tuner, const char *fmt, ...)
{
    char text[PATH_MAX + 256];
    va_list args;
    if (!tuner->log) return;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    tuner->log(NCCL_LOG_INFO, NCCL_TUNING, __FILE__, __LINE__, "TUNER/Tutti: %s", text);
}

/* Old rules stay when there is no memory for new ones. */
static void take_rules(struct tuner *tuner, const char *text, size_t bytes)
{
    const struct tuner_notes notes = {tuner->log, tuner->path};
    struct tuner_rules rules;
    if (!tuner_rules_parse(&rules, text, bytes, &notes)) return;
    tuner_rules_free(&tuner->rules);
    tuner->rules = rules;
    report(tuner, "%zu rules from %s", rules.count, tuner->path);
}

/* A missing file is no error: it may come. */
static void read_rules(struct tuner *tuner, unsigned long long comm_id)
{
    const char *path = getenv("NCCL_TUNER_CONFIG_FILE");
    const char *reason;
    size_t bytes;
    bool named = path && *path;
    snprintf(tuner->path, sizeof(tuner->path), "%s", named ? path : "nccl_tuner.conf");
    tuner->reload = tuner_reload_open(tuner->path, comm_id, &tuner->size);
    char *text = tuner_reload_first(tuner->reload, &bytes);
    if (!text) text = tuner_file_read(tuner->path, &bytes, &reason);
    if (text) {
        take_rules(tuner, text, bytes);
    } else if (named) {
        report(tuner, "no rules, %s: %s", tuner->path, reason);
    }
    free(text);
}

static void read_measured(struct tuner *tuner)
{
    char path[PATH_MAX];
    const char *named = getenv("TUTTI_TUNE_FILE"), *home = getenv("HOME");
    const char *reason;
    size_t bytes;
    if (named && *named) {
        snprintf(path, sizeof(path), "%s", named);
    } else {
        snprintf(path, sizeof(path), "%s/.config/tutti/machine.tune", home ? home : "");
    }
    char *text = tuner_file_read(path, &bytes, &reason);
    if (!text) {
        report(tuner, "no measured times, %s: %s; `tutti tune` writes them", path, reason);
        return;
    }
    const struct tuner_notes notes = {tuner->log, path};
    if (tuner_measured_parse(&tuner->measured, text, bytes, &tuner->size, &notes)) {
        report(tuner, "%zu measured times for %zu ranks on %zu nodes from %s",
               tuner->measured.count, tuner->size.nranks, tuner->size.nnodes, path);
    }
    free(text);
}

static enum model read_model(const struct tuner *tuner)
{
    const char *word = getenv("TUTTI_TUNER_MODEL");
    if (!word || !*word || !strcmp(word, "none")) return MODEL_NONE;
    if (!strcmp(word, "mi300")) return MODEL_MI300;
    if (!strcmp(word, "measured")) return MODEL_MEASURED;
    report(tuner, "TUTTI_TUNER_MODEL is none, mi300 or measured, not '%.40s'; going on without",
           word);
    return MODEL_NONE;
}

struct tuner *tuner_create(const struct tuner_size *size, unsigned long long comm_id,
                           ncclDebugLogger_t log)
{
    struct tuner *tuner = calloc(1, sizeof(*tuner));
    if (!tuner) return NULL;
    tuner->size = *size;
    tuner->log = log;
    tuner->model = read_model(tuner);
    read_rules(tuner, comm_id);
    if (tuner->model == MODEL_MEASURED) read_measured(tuner);
    return tuner;
}

void tuner_destroy(struct tuner *tuner)
{
    if (!tuner) return;
    tuner_reload_close(tuner->reload);
    tuner_rules_free(&tuner->rules);
    tuner_measured_free(&tuner->measured);
    free(tuner);
}

/* True when a rule was applied. */
static bool follow_rules(struct tuner *tuner, const struct tuner_question *question,
                         float table[TUNER_ALGOS][TUNER_PROTOS], int *nchannels)
{
    const struct tuner_rule *rule;
    for (size_t at = 0; (rule = tuner_rules_next(&tuner->rules, question, &tuner->size, &at));) {
        float *entry = &table[rule->algo][rule->proto];
        if (!(*entry >= 0)) continue;
        *entry = 0;
        if (rule->nchannels > 0) *nchannels = rule->nchannels;
        return true;
    }
    return false;
}

static void follow_mi300(struct tuner *tuner, const struct tuner_question *question,
                         float table[TUNER_ALGOS][TUNER_PROTOS])
{
    float *best = NULL;
    double best_usec = 0;
    for (int a = 0; a <= NCCL_ALGO_RING; a++) {
        for (int p = 0; p < TUNER_PROTOS; p++) {
            double usec = tuner_mi300_time(&tuner->size, question, a, p);
            if (usec < 0 || !(table[a][p] >= 0) || (best && usec >= best_usec)) continue;
            best = &table[a][p];
            best_usec = usec;
        }
    }
    if (best) *best = 0;
}

/* Measured times stand beside the host's own predictions, and the host still chooses: what it can
 * do beyond the table is not pushed aside. */
static void follow_measured(struct tuner *tuner, const struct tuner_question *question,
                            float table[TUNER_ALGOS][TUNER_PROTOS])
{
    for (int a = 0; a < TUNER_ALGOS; a++) {
        for (int p = 0; p < TUNER_PROTOS; p++) {
            double usec = tuner_measured_time(&tuner->measured, question, a, p);
            if (usec > 0 && table[a][p] >= 0) table[a][p] = (float)usec;
        }
    }
}

void tuner_answer(struct tuner *tuner, const struct tuner_question *question,
                  float table[TUNER_ALGOS][TUNER_PROTOS], int *nchannels)
{
    size_t bytes = 0;
    char *text = tuner_reload_step(tuner->reload, &bytes);
    if (text) {
        take_rules(tuner, text, bytes);
        free(text);
    }
    if (follow_rules(tuner, question, table, nchannels)) return;
    if (tuner->model == MODEL_MI300) follow_mi300(tuner, question, table);
    if (tuner->model == MODEL_MEASURED) follow_measured(tuner, question, table);
}
