/* Calls of a tuner plugin, and what is looked at in each answer: see tuner_drive.h. */
#include "tuner_drive.h"

#include "base/mem.h"
#include "base/system/clock.h"
#include "program/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CALL_INIT = 1, CALL_ASK, CALL_CHUNK, CALL_FINALIZE, GUARD = 16, MOST_CHANNELS = 64 };
static const char *const calls[] = {"a call", "init", "getCollInfo", "getChunkSize", "finalize"};

void tuner_where(const struct check_case_state *state, char *text, size_t text_bytes)
{
    if (state->call == CALL_ASK || state->call == CALL_CHUNK) {
        snprintf(text, text_bytes, "%s of %s, %zu byte%s, %d rank%s (%s)", calls[state->call],
                 tt_func_name(state->asked.func), state->asked.bytes,
                 state->asked.bytes == 1 ? "" : "s", state->asked.nranks,
                 state->asked.nranks == 1 ? "" : "s", state->doing);
    } else {
        snprintf(text, text_bytes, "%s (%s)", calls[state->call], state->doing);
    }
}

/* Note what is about to be called. */
static void begin(struct check_case_state *state, int call)
{
    state->call = call;
    state->calls++;
}

bool tuner_load(struct tuner_plugin *plugin, const char *file, struct check_case_state *state)
{
    *plugin = (struct tuner_plugin){.single.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!tt_library_open("TUNER", 0, "libnccl-tuner", file, &plugin->library) ||
        !tt_library_find(&plugin->library, tt_tuner_symbols, TT_TUNER_VERSIONS, &plugin->found)) {
        snprintf(state->note, sizeof(state->note), "cannot be loaded: %s", plugin->library.why);
        return false;
    }
    const ncclTuner_v6_t *object = plugin->found.object; /* all versions begin so */
    const char *const required[] = {"init", "getCollInfo",
                                    plugin->found.version < 5 ? "destroy" : "finalize"};
    snprintf(state->name, sizeof(state->name), "%s", object->name ? object->name : "");
    if (!object->name) check_breach(state, "the table: name: there is none");
    const char *lacks = tt_table_lacks(object, required, TT_LEN(required));
    if (lacks) check_breach(state, "the table: %s: it is missing", lacks);
    return object->init && object->getCollInfo;
}

void tuner_unload(struct tuner_plugin *plugin)
{
    tt_library_close(&plugin->library);
}

/* The struct is nothing but doubles. */
static void judge_constants(const struct tuner_drive *drive)
{
    double figures[sizeof(drive->constants) / sizeof(double)];
    memcpy(figures, &drive->constants, sizeof(figures));
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (!(figures[i] >= 0) || isinf(figures[i]))
            check_breach(drive->state, "init: constants: %g is no time or bandwidth", figures[i]);
    }
}

bool tuner_open(struct tuner_drive *drive, struct tuner_plugin *plugin,
                struct check_case_state *state, int nranks, int nnodes)
{
    const ncclNvlDomainInfo_v6_t domains = {nnodes, nranks / nnodes, nranks / nnodes};
    *drive = (struct tuner_drive){
        .instance = {.object = plugin->found.object,
                     .version = plugin->found.version,
                     .single = &plugin->single,
                     .comm_id = 0x7e57,
                     .nranks = (size_t)nranks,
                     .nnodes = (size_t)nnodes},
        .abi = tt_tuner_abi(plugin->found.version),
        .state = state,
        .domains = domains,
    };
    double figures[sizeof(drive->constants) / sizeof(double)] = {0};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        figures[i] = 10;
    memcpy(&drive->constants, figures, sizeof(figures));
    begin(drive->state, CALL_INIT);
    ncclResult_t rc = drive->abi->init(&drive->instance, &drive->domains, &drive->constants);
    if (rc) {
        check_result(drive->state, "init", rc);
        return false;
    }
    state->version = plugin->found.version;
    if (memcmp(&domains, &drive->domains, sizeof(domains)) != 0)
        check_breach(drive->state, "init: nvlDomainInfo: it was written to");
    judge_constants(drive);
    return true;
}

void tuner_close(struct tuner_drive *drive)
{
    begin(drive->state, CALL_FINALIZE);
    ncclResult_t rc = drive->abi->finalize(&drive->instance);
    if (rc) check_result(drive->state, "finalize", rc);
}

static void judge(const struct tuner_drive *drive, const float *before, const float *after)
{
    int possible = 0, left = 0;
    for (int i = 0; i < TUNER_ENTRIES; i++) {
        const char *wrong = NULL;
        bool was = before[i] >= 0;
        possible += was;
        left += after[i] >= 0;
        if (isnan(after[i])) wrong = "not a number";
        if (isinf(after[i])) wrong = "infinite";
        if (after[i] < 0 && after[i] > -1) wrong = "negative, but not -1";
        if (after[i] < -1) wrong = "negative, but not -1";
        if (!was && after[i] >= 0) wrong = "was impossible (-1) and is possible now";
        if (wrong) {
            check_breach(drive->state, "getCollInfo: collCostTable: [%d][%d] (%s/%s) %s",
                         i / TT_TUNER_PROTOS, i % TT_TUNER_PROTOS,
                         tt_algo_name(i / TT_TUNER_PROTOS), tt_proto_name(i % TT_TUNER_PROTOS),
                         wrong);
        }
    }
    if (possible && !left)
        check_breach(drive->state, "getCollInfo: collCostTable: nothing is left to choose");
}

/* Versions 1 and 2 are not told what is possible, but for two flags. */
static void judge_choice(const struct tuner_drive *drive, const struct tt_tuner_choice *choice)
{
    const int algo = choice->algo, proto = choice->proto;
    bool nvls = algo == NCCL_ALGO_NVLS || algo == NCCL_ALGO_NVLS_TREE;
    bool collnet = algo == NCCL_ALGO_COLLNET_DIRECT || algo == NCCL_ALGO_COLLNET_CHAIN;
    if (algo < NCCL_ALGO_UNDEF || algo >= TT_TUNER_ALGOS) {
        check_breach(drive->state, "getCollInfo: algorithm: %d is none of -1 to %d", algo,
                     TT_TUNER_ALGOS - 1);
    }
    if (proto < NCCL_PROTO_UNDEF || proto >= TT_TUNER_PROTOS) {
        check_breach(drive->state, "getCollInfo: protocol: %d is none of -1 to %d", proto,
                     TT_TUNER_PROTOS - 1);
    }
    if (collnet && !choice->collnet)
        check_breach(drive->state, "getCollInfo: algorithm: %d, and collNetSupport is 0", algo);
    if (nvls && !choice->nvls)
        check_breach(drive->state, "getCollInfo: algorithm: %d, and nvlsSupport is 0", algo);
}

/* Also of what is not a number. */
static bool same_bits(const void *one, const void *other, size_t bytes)
{
    return memcmp(one, other, bytes) == 0;
}

static size_t ask_chunk(struct tuner_drive *drive, const struct tt_tuner_query *query, int entry)
{
    const size_t ours = 128 * 1024;
    size_t chunk = ours;
    const struct tt_tuner_layout layout = {
        .algo = entry / TT_TUNER_PROTOS, .proto = entry % TT_TUNER_PROTOS, .nchannels = 2};
    if (!tt_tuner_has_chunk(&drive->instance)) return 0;
    begin(drive->state, CALL_CHUNK);
    ncclResult_t rc = tt_tuner_ask_chunk(&drive->instance, query, &layout, &chunk);
    if (rc) check_result(drive->state, "getChunkSize", rc);
    if (chunk == 0) check_breach(drive->state, "getChunkSize: chunkSize: it is 0");
    return chunk;
}

void tuner_ask(struct tuner_drive *drive, const struct tt_tuner_query *query, uint32_t possible,
               struct tuner_answer *answer)
{
    /* What lies around the table is looked at as well. */
    struct {
        float before[GUARD], table[TUNER_ENTRIES], after[GUARD];
    } given, area;
    for (int i = 0; i < GUARD; i++)
        given.before[i] = given.after[i] = 4711;
    for (int i = 0; i < TUNER_ENTRIES; i++)
        given.table[i] = possible >> i & 1U ? (float)(10 + i) : -1.0F;
    area = given;
    answer->nchannels = 0;
    struct tt_tuner_choice choice = {NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF, true, true};
    drive->instance.choice = &choice;
    drive->state->asked.func = query->func;
    drive->state->asked.nranks = (int)drive->instance.nranks;
    drive->state->asked.bytes = query->bytes;
    begin(drive->state, CALL_ASK);
    ncclResult_t rc =
        drive->abi->ask(&drive->instance, query, (tt_tuner_row *)area.table, &answer->nchannels);
    if (rc) check_result(drive->state, "getCollInfo", rc);
    if (!same_bits(area.before, given.before, sizeof(area.before)) ||
        !same_bits(area.after, given.after, sizeof(area.after)))
        check_breach(drive->state, "getCollInfo: collCostTable: written beyond its 7 rows of 3");
    judge(drive, given.table, area.table);
    judge_choice(drive, &choice);
    drive->instance.choice = NULL;
    if (answer->nchannels < 0 || answer->nchannels > MOST_CHANNELS) {
        check_breach(drive->state, "getCollInfo: nChannels: %d is none of 0 to %d",
                     answer->nchannels, (int)MOST_CHANNELS);
    }
    memcpy(answer->table, area.table, sizeof(answer->table));
    answer->chunk = possible ? ask_chunk(drive, query, __builtin_ctz(possible)) : 0;
}

bool tuner_same(const struct tuner_answer *one, const struct tuner_answer *other)
{
    return same_bits(one->table, other->table, sizeof(one->table)) &&
           one->nchannels == other->nchannels && one->chunk == other->chunk;
}
