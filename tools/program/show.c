/* `tutti program show` and `diff`: listings, and the same as JSON. */
#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <stdlib.h>
#include <string.h>

/* The program's listing; the caller frees it. NULL: memory is short, and said. */
static char *text_of(const struct tt_program *program)
{
    int length = tt_program_print(program, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text) {
        (void)tt_program_print(program, text, (size_t)length + 1);
    } else {
        (void)fprintf(stderr, "tutti: out of memory\n");
    }
    return text;
}

void program_print_json(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    if (text) {
        (void)puts(text);
    } else {
        (void)fprintf(stderr, "tutti: out of memory\n");
    }
    free(text);
    json_decref(value);
}

/* ---- JSON ---- */

static json_t *parts_json(uint64_t parts)
{
    json_t *list = json_array();
    for (int r = 0; r < TT_FLOW_MASK_RANKS; r++) {
        if (parts >> r & 1) json_array_append_new(list, json_integer(r));
    }
    return list;
}

static json_t *message_json(const struct program_source *source,
                            const struct tt_flow_message *message)
{
    json_t *row = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "step", (int)message->step,
                            "from", (int)message->from, "to", (int)message->to, "channel",
                            (int)message->channel, "chunk", (int)message->chunk, "insn",
                            (int)message->insn, "holds", parts_json(message->parts));
    if (source->import)
        json_object_set_new(row, "line", json_integer(source->import->lines[message->insn]));
    return row;
}

static json_t *listing_json(const char *text)
{
    json_t *lines = json_array();
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        json_array_append_new(lines, json_stringn(text, (size_t)(end - text)));
    return lines;
}

static json_t *program_json(const struct program_source *source, const char *text,
                            const struct tt_flow *flow)
{
    struct program_predictions predictions;
    const struct tt_program *program = source->program;
    json_t *messages = json_array();
    for (size_t k = 0; k < flow->nmessages; k++)
        json_array_append_new(messages, message_json(source, &flow->messages[k]));
    program_predict(source, &predictions);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "name",
                     source->name, "op", tt_func_name((enum tt_func)program->func), "algo",
                     tt_algo_name((enum tt_algo)program->algo), "protocol",
                     tt_proto_name((enum tt_proto)program->proto), "ranks", (int)program->nranks,
                     "root", (int)program->root, "chunks_per_block", (int)program->nparts,
                     "channels", (int)program->nchannels, "scratch_chunks", (int)program->scratch,
                     "steps", flow->nsteps, "predicted", program_predict_json(&predictions),
                     "listing", listing_json(text), "messages", messages);
}

/* ---- commands ---- */

/* Rows of tables stand behind the first line. */
static void print_listing(const struct tt_program *program, const char *text)
{
    const size_t title = strcspn(text, "\n");
    bool tables = false;
    for (int k = 0; k < TT_MAX_TABLES; k++)
        tables |= k != TT_TABLE_POSITION && tt_program_table(program, (enum tt_table)k);
    (void)printf("%.*s\n%s%s", (int)title, text,
                 tables ? "(a row of numbers: a rank for each rank from 0 on, -1 none; ring: the "
                          "ranks in their order)\n"
                        : "",
                 text[title] ? text + title + 1 : "");
}

/* The listing, steps and volume where they are known, and what the model predicts. */
static void print_all(const struct program_source *source, const char *text,
                      const struct tt_flow *flow)
{
    struct program_predictions predictions;
    print_listing(source->program, text);
    (void)puts("");
    program_flow_print(source->program, flow);
    program_predict(source, &predictions);
    program_predict_print(&predictions);
}

static bool show(const struct program_options *options, const struct program_source *source)
{
    enum { MOST_FOLLOWED = 256 }; /* ranks, for a listing */
    struct tt_flow flow = {.nsteps = -1};
    char fault[128] = "";
    char *text = text_of(source->program);
    bool done = text, listed = !options->svg && !options->json;
    bool follows = !listed || source->program->nranks <= MOST_FOLLOWED;
    if (done && follows && tt_program_flow(source->program, &flow, fault, sizeof(fault))) {
        (void)fprintf(stderr, "tutti %s: %s\n", options->command, fault);
        flow.nsteps = -1;
        done = listed;
    }
    if (done && options->svg) {
        done = program_svg(source, &flow, (int)options->chunk, stdout);
    } else if (done && options->json) {
        program_print_json(program_json(source, text, &flow));
    } else if (done && fault[0]) {
        print_listing(source->program, text);
    } else if (done) {
        print_all(source, text, &flow);
    }
    tt_flow_fini(&flow);
    free(text);
    return done;
}

int program_show(const struct program_options *options)
{
    struct program_source source;
    if (options->npaths > 1)
        return tutti_usage_error(options->command, "shows one program, not two");
    int status = program_open(options, options->paths[0], &source);
    if (!status && !show(options, &source)) status = 1;
    program_close(&source);
    return status;
}

int program_export(const struct program_options *options)
{
    struct program_source source;
    char fault[160], *text = NULL;
    if (options->npaths > 1)
        return tutti_usage_error(options->command, "writes one program, not two");
    int status = program_open(options, options->paths[0], &source);
    if (!status && tt_export_msccl(source.program, source.import, &text, fault, sizeof(fault))) {
        (void)fprintf(stderr, "tutti program export: MSCCL's XML cannot say it: %s\n", fault);
        status = 1;
    }
    if (text) (void)fputs(text, stdout);
    free(text);
    program_close(&source);
    return status;
}

/* ---- diff ---- */

struct lines {
    char *text; /* owned */
    char **at;  /* owned; into text */
    size_t count;
};

static bool split(struct lines *lines, const struct tt_program *program)
{
    lines->text = text_of(program);
    if (!lines->text) return false;
    size_t most = 1;
    for (const char *c = lines->text; *c; c++)
        most += *c == '\n';
    lines->at = tt_calloc(most, sizeof(*lines->at));
    for (char *line = lines->text, *end; lines->at && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        lines->at[lines->count++] = line;
    }
    return lines->at;
}

/* A line without the number of its instruction. */
static const char *words(const char *line)
{
    size_t blanks = strspn(line, " ");
    size_t digits = strspn(line + blanks, "0123456789");
    return blanks && digits ? line + blanks + digits : line;
}

/* How many lines of each stand before the next that both have, within a window; false: none is
 * found. */
static bool find_common(const struct lines *a, size_t i, const struct lines *b, size_t j,
                        size_t *skip_a, size_t *skip_b)
{
    enum { WINDOW = 64 };
    for (size_t sum = 0; sum <= WINDOW; sum++) {
        for (size_t k = 0; k <= sum; k++) {
            bool there = i + k < a->count && j + sum - k < b->count;
            if (!there || strcmp(words(a->at[i + k]), words(b->at[j + sum - k])) != 0) continue;
            *skip_a = k;
            *skip_b = sum - k;
            return true;
        }
    }
    *skip_a = a->count - i;
    *skip_b = b->count - j;
    return false;
}

/* Print the lines that only one of both has; how many. */
static size_t print_differences(const struct lines *a, const struct lines *b)
{
    size_t i = 0, j = 0, differ = 0;
    while (i < a->count || j < b->count) {
        size_t skip_a, skip_b;
        bool common = find_common(a, i, b, j, &skip_a, &skip_b);
        differ += skip_a + skip_b;
        for (; skip_a > 0; skip_a--)
            printf("- %s\n", a->at[i++]);
        for (; skip_b > 0; skip_b--)
            printf("+ %s\n", b->at[j++]);
        i += common;
        j += common;
    }
    return differ;
}

static int compare(const struct program_options *options, const struct tt_program *a,
                   const struct tt_program *b)
{
    struct lines left = {.text = NULL}, right = {.text = NULL};
    bool same = a->bytes == b->bytes && memcmp(a, b, a->bytes) == 0;
    bool ready = split(&left, a) && split(&right, b);
    size_t differ = 0;
    if (ready && options->json) {
        program_print_json(
            json_pack("{s:b, s:s, s:s}", "same", same, "a", left.at[0], "b", right.at[0]));
    } else if (ready) {
        differ = print_differences(&left, &right);
        if (!same && !differ) printf("the listings are equal, the blocks are not\n");
    }
    free(left.text);
    free(left.at);
    free(right.text);
    free(right.at);
    return ready && same ? 0 : 1;
}

int program_diff(const struct program_options *options)
{
    struct program_source a, b = {.program = NULL};
    bool generated = options->npaths == 1 && options->algo;
    if (options->npaths != 2 && !generated)
        return tutti_usage_error(options->command, "compares two files, or one with --algo");
    int status = program_open(options, options->paths[0], &a);
    if (!status) status = program_open(options, generated ? NULL : options->paths[1], &b);
    status = status ? 2 : compare(options, a.program, b.program);
    program_close(&a);
    program_close(&b);
    return status;
}
