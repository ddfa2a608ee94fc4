/* See script.h. All values are small whole numbers, so that sums and products are exact in every
 * type for up to eight ranks, in any order. */
#include "script.h"

#include "../harness/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const func_names[] = {"AllReduce", "Reduce",    "ReduceScatter", "Broadcast",
                                         "Bcast",     "AllGather", "AlltoAll",      "Gather",
                                         "Scatter",   "messages"};

uint64_t script_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int draw(uint64_t *state, int n)
{
    *state = script_mix(*state, 1);
    return (int)((*state >> 11) % (uint64_t)n);
}

void script_comms(int nranks, struct script_comm comms[SCRIPT_COMMS])
{
    memset(comms, 0, SCRIPT_COMMS * sizeof(comms[0]));
    for (int c = 0; c < SCRIPT_COMMS; c++) {
        for (int r = 0; r < SCRIPT_RANKS; r++) {
            comms[c].member[r] = -1;
        }
        for (int k = 0; k < nranks; k++) {
            int world = c == 0 ? k : c == 3 ? (k + 1) % nranks : nranks - 1 - k;
            if ((c == 1 || c == 2) && world % 2 != c - 1) continue;
            comms[c].member[world] = comms[c].n;
            comms[c].world[comms[c].n++] = world;
        }
    }
}

bool script_reduces(enum script_func func)
{
    return func <= SCRIPT_REDUCE_SCATTER;
}

static size_t draw_count(uint64_t *state)
{
    static const int limits[] = {1, 2, 9, 70, 600, 4000, 4000, 20000};
    return (size_t)draw(state, limits[draw(state, 8)]);
}

static void draw_messages(uint64_t *state, int n, struct script_call *call)
{
    call->nmessages = 1 + draw(state, SCRIPT_MESSAGES_MOST);
    for (int m = 0; m < call->nmessages; m++) {
        struct script_message *message = &call->messages[m];
        message->src = draw(state, n);
        message->dst = draw(state, 3) ? draw(state, n) : (message->src + 1) % n;
        message->type = (ncclDataType_t)draw(state, ncclNumTypes);
        message->count = draw_count(state);
    }
}

void script_make(uint64_t seed, const struct script_comm comms[SCRIPT_COMMS], struct script *script)
{
    uint64_t state = script_mix(seed, 77);
    memset(script, 0, sizeof(*script));
    script->seed = seed;
    script->ncalls = 1 + draw(&state, SCRIPT_CALLS);
    script->one_group = draw(&state, 2);
    script->nested = draw(&state, 4) == 0;
    script->captured = draw(&state, 4) == 0;
    script->launches = 1 + draw(&state, 3);
    for (int k = 0; k < script->ncalls; k++) {
        struct script_call *call = &script->calls[k];
        call->seed = script_mix(seed, 1000 + (uint64_t)k);
        call->comm = draw(&state, SCRIPT_COMMS);
        call->func = (enum script_func)draw(&state, SCRIPT_FUNC_COUNT_);
        call->type = (ncclDataType_t)draw(&state, ncclNumTypes);
        call->op = draw(&state, SCRIPT_OP_COUNT_);
        call->root = draw(&state, comms[call->comm].n);
        call->count = draw_count(&state);
        if (call->func == SCRIPT_MESSAGES) draw_messages(&state, comms[call->comm].n, call);
    }
}

/* ---- shapes ---- */

size_t script_in_blocks(const struct script_call *call, int rank, int n)
{
    switch (call->func) {
    case SCRIPT_REDUCE_SCATTER:
    case SCRIPT_ALL_TO_ALL: return (size_t)n;
    case SCRIPT_SCATTER: return rank == call->root ? (size_t)n : 0;
    case SCRIPT_BCAST:
    case SCRIPT_BROADCAST: return rank == call->root;
    case SCRIPT_MESSAGES: return 0;
    default: return 1;
    }
}

size_t script_out_blocks(const struct script_call *call, int rank, int n)
{
    switch (call->func) {
    case SCRIPT_ALL_GATHER:
    case SCRIPT_ALL_TO_ALL: return (size_t)n;
    case SCRIPT_GATHER: return rank == call->root ? (size_t)n : 0;
    case SCRIPT_REDUCE: return rank == call->root;
    case SCRIPT_MESSAGES: return 0;
    default: return 1;
    }
}

bool script_in_place(const struct script_call *call, int rank, size_t *in_block, size_t *out_block)
{
    bool root = rank == call->root;
    *in_block = *out_block = 0;
    if (call->func == SCRIPT_BCAST) return true;
    if (script_mix(call->seed, 500 + (uint64_t)rank) % 3) return false;
    switch (call->func) {
    case SCRIPT_ALL_REDUCE:
    case SCRIPT_ALL_TO_ALL: return true;
    case SCRIPT_BROADCAST:
    case SCRIPT_REDUCE: return root;
    case SCRIPT_REDUCE_SCATTER: *out_block = (size_t)rank; return true;
    case SCRIPT_ALL_GATHER: *in_block = (size_t)rank; return true;
    case SCRIPT_GATHER: *in_block = (size_t)rank; return root;
    case SCRIPT_SCATTER: *out_block = (size_t)rank; return root;
    default: return false;
    }
}

/* ---- values ---- */

static bool is_unsigned(ncclDataType_t type)
{
    return type == ncclUint8 || type == ncclUint32 || type == ncclUint64;
}

static bool is_whole(ncclDataType_t type)
{
    return type < ncclFloat16;
}

static uint64_t scatter_bits(uint64_t seed, int launch, int who, size_t index)
{
    uint64_t x =
        seed + (uint64_t)launch * 0x9e3779b97f4a7c15u + (uint64_t)who * 0xd1b54a32d192ed03u;
    x += index * 0x8cb92ba72f3d8dd7u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x >> 40;
}

double script_input(const struct script_call *call, int launch, int rank, size_t index)
{
    uint64_t bits = scatter_bits(call->seed, launch, rank, index);
    if (!script_reduces(call->func)) return (double)(bits % 8);
    if (call->op == ncclProd) return 1 + (double)(bits % 2);
    double value = (double)(bits % 2);
    return !is_unsigned(call->type) && bits % 5 == 0 ? -value : value;
}

double script_message_input(const struct script_call *call, int message, int launch, size_t index)
{
    return (double)(scatter_bits(call->seed, launch, 100 + message, index) % 8);
}

double script_scalar(const struct script_call *call, int rank)
{
    return script_mix(call->seed, 900 + (uint64_t)rank) % 2 ? 1 : 0;
}

static double term(const struct script_call *call, int launch, int rank, size_t index)
{
    double value = script_input(call, launch, rank, index);
    return call->op >= SCRIPT_PRE_MUL_HOST ? value * script_scalar(call, rank) : value;
}

static double reduced(const struct script_call *call, int launch, int n, size_t index)
{
    double sofar = term(call, launch, 0, index);
    for (int r = 1; r < n; r++) {
        double value = term(call, launch, r, index);
        switch (call->op) {
        case ncclProd: sofar *= value; break;
        case ncclMax: sofar = fmax(sofar, value); break;
        case ncclMin: sofar = fmin(sofar, value); break;
        default: sofar += value; break;
        }
    }
    if (call->op != ncclAvg) return sofar;
    return is_whole(call->type) ? trunc(sofar / n) : sofar / n;
}

double script_expected(const struct script_call *call, int launch, int rank, int n, size_t index)
{
    size_t block = call->count ? index / call->count : 0;
    size_t within = call->count ? index % call->count : 0;
    size_t mine = (size_t)rank * call->count;
    switch (call->func) {
    case SCRIPT_ALL_REDUCE:
    case SCRIPT_REDUCE: return reduced(call, launch, n, index);
    case SCRIPT_REDUCE_SCATTER: return reduced(call, launch, n, mine + index);
    case SCRIPT_ALL_GATHER:
    case SCRIPT_GATHER: return script_input(call, launch, (int)block, within);
    case SCRIPT_ALL_TO_ALL: return script_input(call, launch, (int)block, mine + within);
    case SCRIPT_SCATTER: return script_input(call, launch, call->root, mine + index);
    default: return script_input(call, launch, call->root, index);
    }
}

double script_slack(const struct script_call *call)
{
    if (!script_reduces(call->func) || call->op != ncclAvg || is_whole(call->type)) return 0;
    switch (call->type) {
    case ncclFloat64: return 1e-14;
    case ncclFloat32: return 1e-6;
    case ncclFloat16: return 1e-2;
    case ncclBfloat16: return 5e-2;
    default: return 0.3;
    }
}

void script_describe(const struct script_call *call, char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%s comm %d %s op %d count %zu root %d",
                                   func_names[call->func], call->comm, value_type_name(call->type),
                                   call->op, call->count, call->root);
    for (int m = 0; m < call->nmessages && used < text_bytes; m++) {
        const struct script_message *message = &call->messages[m];
        used += (size_t)snprintf(text + used, text_bytes - used, " [%d->%d %zu %s]", message->src,
                                 message->dst, message->count, value_type_name(message->type));
    }
}
