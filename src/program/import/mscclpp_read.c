/* Reads what a plan of MSCCL++ says before its operations: the collective, and of each rank its
 * chunks, channels, switches and semaphores. Members that do not change what is moved (threads of a
 * block, alignment, how scratch is reused) are not looked at. */
#include "mscclpp.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

const struct json_node *tt_mscclpp_need(struct mscclpp_plan *plan, const struct json_node *object,
                                        const char *what, const char *key, enum json_kind kind)
{
    static const char *const kinds[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "false",   [JSON_TRUE] = "true",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    const struct json_node *node = tt_json_member(object, key);
    if (node && node->kind == kind) return node;
    if (node) {
        tt_msccl_refuse(plan->file, node->line, "%s of %s is no %s", key, what, kinds[kind]);
    } else if (object->kind != JSON_OBJECT) {
        tt_msccl_refuse(plan->file, object->line, "%s is no object", what);
    } else {
        tt_msccl_refuse(plan->file, object->line, "%s has no \"%s\"", what, key);
    }
    return NULL;
}

bool tt_mscclpp_take_int(struct mscclpp_plan *plan, const struct json_node *node, const char *what,
                         int low, int high, int *out)
{
    int64_t value = 0;
    if (!tt_json_int(node, low, high, &value)) {
        return tt_msccl_refuse(plan->file, node->line, "%s is %.40s, not a number in %d to %d",
                               what, node->text ? node->text : "no number", low, high);
    }
    *out = (int)value;
    return true;
}

bool tt_mscclpp_need_int(struct mscclpp_plan *plan, const struct json_node *object,
                         const char *what, const char *key, struct mscclpp_range range, int *out)
{
    const struct json_node *node = tt_mscclpp_need(plan, object, what, key, JSON_NUMBER);
    return node && tt_mscclpp_take_int(plan, node, key, range.low, range.high, out);
}

/* The number of the string among the words (end at NULL). */
static bool take_word(struct mscclpp_plan *plan, const struct json_node *node, const char *what,
                      const char *const *words, int *out)
{
    for (int w = 0; node->kind == JSON_STRING && words[w]; w++) {
        if (strcmp(words[w], node->text) != 0) continue;
        *out = w;
        return true;
    }
    return tt_msccl_refuse(plan->file, node->line, "%s is \"%.40s\", which is none", what,
                           node->text ? node->text : "");
}

bool tt_mscclpp_take_buffer(struct mscclpp_plan *plan, const struct json_node *object,
                            const char *what, const char *key, uint8_t *out)
{
    static const char *const buffers[] = {"i", "o", "s", NULL}; /* as enum msccl_buffer */
    const struct json_node *node = tt_mscclpp_need(plan, object, what, key, JSON_STRING);
    int buffer = 0;
    if (!node || !take_word(plan, node, key, buffers, &buffer)) return false;
    *out = (uint8_t)buffer;
    return true;
}

bool tt_mscclpp_take_type(struct mscclpp_plan *plan, const struct json_node *node, int *out)
{
    static const char *const types[] = {"memory", "port", "switch", NULL};
    return take_word(plan, node, "a channel's type", types, out);
}

bool tt_mscclpp_add_number(struct mscclpp_plan *plan, struct msccl_list *list, int number)
{
    int *item = tt_msccl_append(list, sizeof(*item));
    if (!item) return tt_msccl_no_memory(plan->file);
    *item = number;
    return true;
}

/* ---- channels ---- */

/* Of an element of `channels`; older plans say "type". */
static bool channel_type(struct mscclpp_plan *plan, const struct json_node *node, int *out)
{
    const struct json_node *type = tt_json_member(node, "channel_type");
    if (!type) type = tt_json_member(node, "type");
    if (!type) type = tt_mscclpp_need(plan, node, "a channel", "channel_type", JSON_STRING);
    return type && tt_mscclpp_take_type(plan, type, out);
}

static bool add_peers(struct mscclpp_plan *plan, int rank, const struct json_node *node,
                      uint32_t first)
{
    const struct json_node *peers =
        tt_mscclpp_need(plan, node, "a channel", "connected_to", JSON_ARRAY);
    for (const struct json_node *at = peers ? peers->first : NULL; at; at = at->next) {
        int peer = 0, nth = 0;
        if (!tt_mscclpp_take_int(plan, at, "connected_to", 0, plan->file->nranks - 1, &peer))
            return false;
        if (peer == rank)
            return tt_msccl_refuse(plan->file, at->line, "gpu %d connects to itself", rank);
        for (uint32_t c = first; c < plan->channels.count; c++)
            nth += mscclpp_channel(plan, c)->peer == peer;
        struct mscclpp_channel *channel = tt_msccl_append(&plan->channels, sizeof(*channel));
        if (!channel) return tt_msccl_no_memory(plan->file);
        *channel = (struct mscclpp_channel){.peer = peer, .nth = nth, .inbox = UINT32_MAX};
        if (plan->channels.count - first > MSCCLPP_CHANNELS ||
            plan->channels.count > MSCCLPP_ALL_CHANNELS)
            return tt_msccl_refuse(plan->file, at->line, "too many channels (gpu %d)", rank);
    }
    return peers != NULL;
}

static bool add_member(struct mscclpp_plan *plan, const struct mscclpp_group *group,
                       const struct json_node *node)
{
    int number = 0;
    if (!tt_mscclpp_take_int(plan, node, "ranks", 0, plan->file->nranks - 1, &number)) return false;
    for (uint32_t m = group->first; m < plan->members.count; m++) {
        if (*mscclpp_number(&plan->members, m) == number)
            return tt_msccl_refuse(plan->file, node->line, "gpu %d is in a group twice", number);
    }
    return tt_mscclpp_add_number(plan, &plan->members, number);
}

static bool add_group(struct mscclpp_plan *plan, uint8_t buffer, const struct json_node *node)
{
    const struct json_node *ranks = tt_mscclpp_need(plan, node, "a group", "ranks", JSON_ARRAY);
    struct mscclpp_group *group = ranks ? tt_msccl_append(&plan->groups, sizeof(*group)) : NULL;
    if (!group) return ranks ? tt_msccl_no_memory(plan->file) : false;
    *group = (struct mscclpp_group){buffer, (uint32_t)plan->members.count, ranks->count};
    for (const struct json_node *at = ranks->first; at; at = at->next) {
        if (!add_member(plan, group, at)) return false;
    }
    return true;
}

static bool add_groups(struct mscclpp_plan *plan, int rank, const struct json_node *node)
{
    uint8_t buffer = 0;
    const struct json_node *groups =
        tt_mscclpp_need(plan, node, "a switch", "rank_groups", JSON_ARRAY);
    if (!groups || !tt_mscclpp_take_buffer(plan, node, "a switch", "buffer_type", &buffer))
        return false;
    for (const struct json_node *at = groups->first; at; at = at->next) {
        if (!add_group(plan, buffer, at)) return false;
        plan->ranks[rank].ngroups++;
    }
    return true;
}

static bool read_channels(struct mscclpp_plan *plan, int number)
{
    struct mscclpp_rank *rank = &plan->ranks[number];
    const struct json_node *channels =
        tt_mscclpp_need(plan, rank->node, "a gpu", "channels", JSON_ARRAY);
    rank->group = (uint32_t)plan->groups.count;
    for (int type = 0; channels && type <= MSCCLPP_TYPES; type++) {
        uint32_t first = (uint32_t)plan->channels.count;
        rank->channel[type] = first;
        for (const struct json_node *at = channels->first; at; at = at->next) {
            int its = 0;
            if (!channel_type(plan, at, &its)) return false;
            if (its != type) continue;
            bool added = type == MSCCLPP_TYPES ? add_groups(plan, number, at)
                                               : add_peers(plan, number, at, first);
            if (!added) return false;
        }
    }
    return channels != NULL;
}

/* The peer's nth channel of a type to us is the other end of our nth one to it. */
static void join_channel(struct mscclpp_plan *plan, int rank, int type,
                         struct mscclpp_channel *channel)
{
    const struct mscclpp_rank *peer = &plan->ranks[channel->peer];
    for (uint32_t d = peer->channel[type]; d < peer->channel[type + 1]; d++) {
        const struct mscclpp_channel *other = mscclpp_channel(plan, d);
        if (other->peer == rank && other->nth == channel->nth) channel->inbox = d;
    }
}

static void join_channels(struct mscclpp_plan *plan)
{
    for (int r = 0; r < plan->file->nranks; r++) {
        const struct mscclpp_rank *rank = &plan->ranks[r];
        for (int type = 0; type < MSCCLPP_TYPES; type++) {
            for (uint32_t c = rank->channel[type]; c < rank->channel[type + 1]; c++)
                join_channel(plan, r, type, mscclpp_channel(plan, c));
        }
    }
}

/* ---- ranks ---- */

static bool read_semaphores(struct mscclpp_plan *plan, struct mscclpp_rank *rank)
{
    const struct json_node *list = tt_json_member(rank->node, "semaphores");
    rank->semaphore = (uint32_t)plan->semaphores.count;
    for (const struct json_node *at = list ? list->first : NULL; at; at = at->next) {
        int value = 0;
        if (!tt_mscclpp_need_int(plan, at, "a semaphore", "init_value", mscclpp_upto(MSCCLPP_OPS),
                                 &value) ||
            !tt_mscclpp_add_number(plan, &plan->semaphores, value))
            return false;
        if (++rank->nsemaphores <= MSCCLPP_SYNCS) continue;
        return tt_msccl_refuse(plan->file, at->line, "more than %d semaphores", (int)MSCCLPP_SYNCS);
    }
    return true;
}

static bool read_chunks(struct mscclpp_plan *plan, struct mscclpp_rank *rank)
{
    static const char *const keys[] = {"input_chunks", "output_chunks", "scratch_chunks"};
    if (tt_json_member(rank->node, "inputChunks")) {
        return tt_msccl_refuse(plan->file, rank->node->line,
                               "a plan of an older MSCCL++ (inputChunks): write it anew with the "
                               "MSCCL++ of today");
    }
    for (int buffer = MSCCL_IN; buffer <= MSCCL_SCRATCH; buffer++) {
        if (!tt_mscclpp_need_int(plan, rank->node, "a gpu", keys[buffer],
                                 mscclpp_upto(MSCCL_CHUNKS), &rank->chunks[buffer]))
            return false;
    }
    return true;
}

static bool read_ranks(struct mscclpp_plan *plan, const struct json_node *gpus)
{
    struct msccl_file *file = plan->file;
    if (gpus->count < 1 || gpus->count > MSCCLPP_RANKS) {
        return tt_msccl_refuse(file, gpus->line, "%u gpus, not 1 to %d", (unsigned int)gpus->count,
                               (int)MSCCLPP_RANKS);
    }
    file->nranks = (int)gpus->count;
    plan->ranks = tt_calloc(gpus->count, sizeof(*plan->ranks));
    if (!plan->ranks) return tt_msccl_no_memory(file);
    const struct json_node *at = gpus->first;
    for (int r = 0; r < file->nranks; r++, at = at->next) {
        int id = 0;
        plan->ranks[r].node = at;
        if (!tt_mscclpp_need_int(plan, at, "a gpu", "id", mscclpp_upto(file->nranks - 1), &id))
            return false;
        if (id != r)
            return tt_msccl_refuse(file, at->line, "gpu %d comes where gpu %d is due", id, r);
        if (!read_chunks(plan, &plan->ranks[r]) || !read_channels(plan, r) ||
            !read_semaphores(plan, &plan->ranks[r]))
            return false;
    }
    join_channels(plan);
    return true;
}

/* ---- the collective ---- */

static const char *const collectives[] = {"allreduce", "allgather", "reducescatter",
                                          "alltoall",  "broadcast", "reduce",
                                          "gather",    "scatter",   NULL};
static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER,
                                     TT_FUNC_ALLTOALL,  TT_FUNC_BROADCAST, TT_FUNC_REDUCE,
                                     TT_FUNC_GATHER,    TT_FUNC_SCATTER};

/* The sizes that it is for; a limit beyond 2^62 is none. */
static bool read_sizes(struct mscclpp_plan *plan, const struct json_node *root)
{
    struct msccl_file *file = plan->file;
    const struct json_node *low = tt_json_member(root, "min_message_size");
    const struct json_node *high = tt_json_member(root, "max_message_size");
    int64_t bytes = 0;
    if (low && !tt_json_int(low, 0, INT64_MAX / 2, &bytes))
        return tt_msccl_refuse(file, low->line, "min_message_size is no size");
    file->min_bytes = (uint64_t)bytes;
    if (high && (high->kind != JSON_NUMBER || high->text[0] == '-'))
        return tt_msccl_refuse(file, high->line, "max_message_size is no size");
    file->max_bytes = high && tt_json_int(high, 0, INT64_MAX / 2, &bytes) ? (uint64_t)bytes : 0;
    if (file->max_bytes && file->min_bytes > file->max_bytes)
        return tt_msccl_refuse(file, high->line, "max_message_size is less than min_message_size");
    return true;
}

static bool read_head(struct mscclpp_plan *plan, const struct json_node *root)
{
    static const char *const protos[] = {"LL", "LL128", "Simple", NULL}; /* as enum tt_proto */
    struct msccl_file *file = plan->file;
    const struct json_node *name = tt_json_member(root, "name");
    const struct json_node *coll =
        tt_mscclpp_need(plan, root, "the plan", "collective", JSON_STRING);
    const struct json_node *proto = tt_json_member(root, "protocol");
    const struct json_node *inplace = tt_json_member(root, "inplace");
    int func = 0, kind = TT_PROTO_SIMPLE;
    file->line = root->line;
    if (!coll || !take_word(plan, coll, "collective", collectives, &func) ||
        (proto && !take_word(plan, proto, "protocol", protos, &kind)))
        return false;
    if (!inplace || (inplace->kind != JSON_TRUE && inplace->kind != JSON_FALSE)) {
        return tt_msccl_refuse(
            file, inplace ? inplace->line : root->line,
            "the plan does not say whether it is in place (inplace: true or false)");
    }
    if (name && name->kind == JSON_STRING) tt_msccl_take_name(file, name->text);
    file->func = funcs[func];
    file->proto = (enum tt_proto)kind;
    file->nchannels = 1;
    file->in_place = inplace->kind == JSON_TRUE;
    file->out_of_place = !file->in_place;
    return read_sizes(plan, root);
}

/* Every rank's chunks are those of the collective; a buffer that no operation uses may have none.
 */
static bool check_chunks(struct mscclpp_plan *plan)
{
    struct msccl_file *file = plan->file;
    bool many_in = msccl_in_blocks(file->func), many_out = msccl_out_blocks(file->func);
    int n = file->nranks, in = plan->ranks[0].chunks[MSCCL_IN];
    int out = plan->ranks[0].chunks[MSCCL_OUT];
    int parts = in ? (many_in ? in / n : in) : (many_out ? out / n : out);
    int want[] = {parts * (many_in ? n : 1), parts * (many_out ? n : 1)};
    static const char *const names[] = {"input_chunks", "output_chunks"};
    for (int r = 0; r < n; r++) {
        const struct mscclpp_rank *rank = &plan->ranks[r];
        for (int buffer = MSCCL_IN; buffer <= MSCCL_OUT; buffer++) {
            int have = rank->chunks[buffer];
            if (parts > 0 && (have == want[buffer] || have == 0)) continue;
            return tt_msccl_refuse(
                file, rank->node->line,
                "gpu %d: %s is %d; %s of %d ranks has %d input and %d output chunks", r,
                names[buffer], have, tt_func_name(file->func), n, want[0], want[1]);
        }
    }
    file->nchunks = many_in || many_out ? parts * n : parts;
    return true;
}

bool tt_mscclpp_read(struct mscclpp_plan *plan, const char *text, size_t text_bytes)
{
    struct msccl_file *file = plan->file;
    const char *fault = NULL;
    int line = 0;
    if (text_bytes > MSCCL_FILE_BYTES) {
        return tt_msccl_refuse(file, 1, "%zu bytes are too many (limit %d)", text_bytes,
                               (int)MSCCL_FILE_BYTES);
    }
    if (!tt_json_read(&plan->json, text, text_bytes, &line, &fault)) {
        return line ? tt_msccl_refuse(file, line, "not JSON: %s", fault) : tt_msccl_no_memory(file);
    }
    const struct json_node *root = plan->json.root;
    const struct json_node *gpus = tt_mscclpp_need(plan, root, "the plan", "gpus", JSON_ARRAY);
    return gpus && read_head(plan, root) && read_ranks(plan, gpus) && check_chunks(plan);
}
