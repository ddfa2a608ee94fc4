/* The report of `tutti plugin check`, in words or as JSON: one line per case, how it ended and what
 * the plugin did against the contract of its kind. */
#include "check.h"

#include "base/error.h"
#include "nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_breach(struct check_case_state *state, const char *fmt, ...)
{
    char text[sizeof(state->breaches[0])];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (int k = 0; k < state->nbreaches; k++) {
        if (!strcmp(state->breaches[k], text)) return;
    }
    if (state->nbreaches == CHECK_BREACHES) return;
    memcpy(state->breaches[state->nbreaches++], text, sizeof(text));
}

void check_result(struct check_case_state *state, const char *function, int rc)
{
    const bool known = rc >= 0 && rc < ncclNumResults;
    check_breach(state, "%s: returned %d%s%s%s", function, rc, known ? " (" : "",
                 known ? tt_result_name((ncclResult_t)rc) : ", which is no result",
                 known ? ")" : "");
}

void check_say_cost(const struct check_case_state *state, const char *turn, const char *key,
                    bool in_words, json_t *report)
{
    json_object_set_new(report, "nsec_per_call", json_real(state->nsec_per_call));
    json_object_set_new(report, key, json_real(state->bytes_per_turn));
    if (!in_words) return;
    printf("cost       %.1f ns per call, memory ", state->nsec_per_call);
    if (state->bytes_per_turn < 0.5) {
        printf("does not grow\n");
    } else {
        printf("grows by %.0f bytes per %s\n", state->bytes_per_turn, turn);
    }
}

struct verdict {
    const char *result; /* "ok", "failed", "crash", "hang" */
    char detail[CHECK_REASON_BYTES];
};

static const char *why_not(const struct check_case_state *state)
{
    if (*state->note) return state->note;
    return state->nbreaches ? "the contract is broken" : "no reason is known";
}

static struct verdict judge(enum check_end end, int ended, const struct check_case_state *state,
                            const char *where, long seconds)
{
    struct verdict verdict = {.result = "ok"};
    switch (end) {
    case CHECK_OK:
        snprintf(verdict.detail, sizeof(verdict.detail), "%llu call%s",
                 (unsigned long long)state->calls, state->calls == 1 ? "" : "s");
        break;
    case CHECK_NO:
        verdict.result = "failed";
        snprintf(verdict.detail, sizeof(verdict.detail), "%s", why_not(state));
        break;
    case CHECK_CRASHED:
        verdict.result = "crash";
        snprintf(verdict.detail, sizeof(verdict.detail), "signal %d (%s) in %s", ended,
                 strsignal(ended), where);
        break;
    case CHECK_EXITED:
        verdict.result = "failed";
        snprintf(verdict.detail, sizeof(verdict.detail),
                 "the plugin ended the process with status %d in %s", ended, where);
        break;
    case CHECK_HUNG:
        verdict.result = "hang";
        snprintf(verdict.detail, sizeof(verdict.detail), "no end after %ld s, in %s", seconds,
                 where);
        break;
    }
    return verdict;
}

struct one_case {
    const struct check_case *row;
    const struct check_options *options;
};

static int run_case(struct check_case_state *state, void *arg)
{
    const struct one_case *own = arg;
    return own->row->run(state, own->options) || state->nbreaches > 0;
}

static json_t *case_json(const char *name, const struct verdict *verdict,
                         const struct check_case_state *state)
{
    json_t *breaches = json_array();
    for (int i = 0; i < state->nbreaches; i++)
        json_array_append_new(breaches, json_string(state->breaches[i]));
    return json_pack("{s:s, s:s, s:s, s:I, s:o}", "name", name, "result", verdict->result, "detail",
                     verdict->detail, "calls", (json_int_t)state->calls, "breaches", breaches);
}

/* An earlier case found it, too. */
static bool is_said(const json_t *report, const char *breach)
{
    size_t k = 0, i = 0;
    const json_t *row = NULL, *text = NULL;
    json_array_foreach(json_object_get(report, "cases"), k, row)
    {
        json_array_foreach(json_object_get(row, "breaches"), i, text)
        {
            if (!strcmp(json_string_value(text), breach)) return true;
        }
    }
    return false;
}

/* In words each breach stands once, where it was found first. */
static void say_case(const char *name, const struct verdict *verdict,
                     const struct check_case_state *state, const json_t *report)
{
    int known = 0;
    for (int i = 0; i < state->nbreaches; i++)
        known += is_said(report, state->breaches[i]);
    bool all = known > 0 && known == state->nbreaches && !*state->note;
    printf("%-10s %s: %s%s\n", verdict->result, name, verdict->detail, all ? ", as above" : "");
    for (int i = 0; i < state->nbreaches; i++) {
        if (!is_said(report, state->breaches[i]))
            printf("breach     %s: %s\n", name, state->breaches[i]);
    }
}

/* True when the case is well. */
static bool check_one(const struct check_kind *kind, size_t number,
                      const struct check_options *options, struct check_case_state *state,
                      json_t *report)
{
    struct one_case one = {&kind->cases[number], options};
    char where[128];
    int ended = 0;
    enum check_end end = check_isolated(run_case, &one, options->seconds, state, &ended);
    kind->say_where(state, where, sizeof(where));
    struct verdict verdict = judge(end, ended, state, where, options->seconds);
    if (number == 0) {
        json_object_set_new(report, "version", json_integer(state->version));
        json_object_set_new(report, "name", json_string(state->name));
        kind->describe(state, !options->json, report);
    }
    if (!options->json) say_case(one.row->name, &verdict, state, report);
    json_array_append_new(json_object_get(report, "cases"),
                          case_json(one.row->name, &verdict, state));
    if (number + 1 == kind->ncases && end == CHECK_OK && kind->measured)
        kind->measured(state, !options->json, report);
    const bool hung = number == 0 && end == CHECK_HUNG;
    if (hung) state->version = 0; /* and so would the others */
    if (number == 0 && !state->version && !options->json) {
        printf("left out   the other %zu cases: %s\n", kind->ncases - 1,
               hung ? "they would not end either" : "there is nothing that they could drive");
    }
    return end == CHECK_OK;
}

int check_refuse(const struct check_kind *kind, const struct check_options *options,
                 const char *reason)
{
    fprintf(stderr, "tutti plugin: %s\n", reason);
    if (!options->json) return 1;
    json_t *report = json_pack("{s:s?, s:s, s:[], s:b, s:s}", "kind", kind ? kind->name : NULL,
                               "file", options->file, "cases", "sound", 0, "reason", reason);
    if (report) json_dumpf(report, stdout, JSON_INDENT(2));
    if (report) putchar('\n');
    json_decref(report);
    return 1;
}

int check_run(const struct check_kind *kind, const struct check_options *options)
{
    struct check_case_state *state = check_state_map();
    json_t *report =
        json_pack("{s:s, s:s, s:[]}", "kind", kind->name, "file", options->file, "cases");
    bool sound = true;
    if (state && !report) fprintf(stderr, "tutti plugin: the name of the file is no UTF-8\n");
    if (!state || !report) return 1;
    setenv(kind->variable, options->file, 1);
    setenv("TUTTI_PLUGIN_CHECK", "1", 1);
    for (size_t k = 0; k < kind->ncases; k++) {
        sound &= check_one(kind, k, options, state, report);
        if (k == 0 && !state->version) break; /* nothing to drive */
    }
    json_object_set_new(report, "sound", json_boolean(sound));
    if (options->json) {
        json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4));
        putchar('\n');
    } else {
        printf("verdict    %s\n", sound ? "sound" : "not sound");
    }
    json_decref(report);
    return sound ? 0 : 1;
}
