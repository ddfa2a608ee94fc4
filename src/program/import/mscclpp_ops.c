/* Reads the blocks of a plan and their operations: what each touches at which rank, and whom it
 * signals or waits for. */
#include "mscclpp.h"

#include <string.h>

static const struct mscclpp_kind kinds[] = {
    {.name = "nop"},
    {.name = "flush"},
    {.name = "signal", .does = MSCCLPP_SIGNALS},
    {.name = "rlxsignal", .does = MSCCLPP_SIGNALS},
    {.name = "wait", .does = MSCCLPP_WAITS},
    {.name = "rlxwait", .does = MSCCLPP_WAITS},
    {.name = "barrier", .does = MSCCLPP_BARRIER},
    {.name = "sem_acquire", .does = MSCCLPP_ACQUIRES},
    {.name = "sem_release", .does = MSCCLPP_RELEASES},
    {.name = "copy", .does = MSCCLPP_MOVES},
    {.name = "put", .does = MSCCLPP_MOVES},
    {.name = "get", .does = MSCCLPP_MOVES},
    {.name = "pws", .does = MSCCLPP_MOVES, .signals = true},
    {.name = "pwsf", .does = MSCCLPP_MOVES, .signals = true},
    {.name = "re", .does = MSCCLPP_MOVES, .adds = true},
    {.name = "res", .does = MSCCLPP_MOVES, .adds = true},
    {.name = "rre", .does = MSCCLPP_MOVES, .adds = true},
    {.name = "rres", .does = MSCCLPP_MOVES, .adds = true},
    {.name = "glres", .does = MSCCLPP_MOVES, .adds = true},
    {.name = "gstore", .does = MSCCLPP_MOVES},
    {.name = "ppkt", .does = MSCCLPP_MOVES, .writes_lines = true},
    {.name = "cpkt", .does = MSCCLPP_MOVES, .writes_lines = true},
    {.name = "upkt", .does = MSCCLPP_MOVES, .reads_lines = true},
    {.name = "rppkt", .does = MSCCLPP_MOVES, .reads_lines = true, .writes_lines = true},
    {.name = "repkt", .does = MSCCLPP_MOVES, .adds = true, .reads_lines = true},
    {.name = "recpkt",
     .does = MSCCLPP_MOVES,
     .adds = true,
     .reads_lines = true,
     .writes_lines = true},
    {.name = "respkt",
     .does = MSCCLPP_MOVES,
     .adds = true,
     .reads_lines = true,
     .writes_lines = true},
    {.name = "recspkt",
     .does = MSCCLPP_MOVES,
     .adds = true,
     .reads_lines = true,
     .writes_lines = true},
};

struct reading { /* of a block */
    struct mscclpp_plan *plan;
    const struct mscclpp_rank *rank;
    struct mscclpp_block *block;
    const struct json_node *node;    /* the block */
    const struct json_node *op;      /* that is being read */
    const struct mscclpp_kind *kind; /* its */
    int type;                        /* of its channels */
};

/* ---- what a block calls by numbers of its own ---- */

/* Entry `number` of what the block lists for channels of a type. NULL: refused. */
static const struct json_node *listed(struct reading *reading, const char *list_key,
                                      const char *type_key, const char *ids_key, int type,
                                      int number)
{
    const struct json_node *list = tt_json_member(reading->node, list_key);
    for (const struct json_node *at = list ? list->first : NULL; at; at = at->next) {
        const struct json_node *its =
            tt_mscclpp_need(reading->plan, at, list_key, type_key, JSON_STRING);
        const struct json_node *ids =
            its ? tt_mscclpp_need(reading->plan, at, list_key, ids_key, JSON_ARRAY) : NULL;
        int of = 0;
        if (!ids || !tt_mscclpp_take_type(reading->plan, its, &of)) return NULL;
        if (of != type) continue;
        for (const struct json_node *id = ids->first; id; id = id->next) {
            if (number-- == 0) return id;
        }
    }
    (void)tt_msccl_refuse(reading->plan->file, reading->op->line,
                          "gpu %d tb %d: %s names what %s of the block does not list",
                          reading->block->rank, reading->block->id, reading->kind->name, list_key);
    return NULL;
}

static bool add_ref(struct mscclpp_plan *plan, int rank, uint8_t buffer, int chunk, int size)
{
    struct mscclpp_ref *ref = tt_msccl_append(&plan->refs, sizeof(*ref));
    if (!ref) return tt_msccl_no_memory(plan->file);
    if (plan->refs.count > MSCCLPP_REFS) {
        return tt_msccl_refuse(plan->file, plan->file->line, "more than %d locations",
                               (int)MSCCLPP_REFS);
    }
    *ref = (struct mscclpp_ref){.rank = rank, .chunk = chunk, .size = size, .buffer = buffer};
    return true;
}

/* Whether the chunks are there, at that rank. */
static bool check_ref(struct reading *reading, int rank, uint8_t buffer, int chunk, int size)
{
    static const char *const names[] = {"input", "output", "scratch"};
    int have = reading->plan->ranks[rank].chunks[buffer];
    if (chunk < have && size <= have - chunk) return true;
    return tt_msccl_refuse(reading->plan->file, reading->op->line,
                           "gpu %d tb %d: %s of chunks %d to %d of gpu %d's %s, which has %d",
                           reading->block->rank, reading->block->id, reading->kind->name, chunk,
                           chunk + size - 1, rank, names[buffer], have);
}

static bool add_remote(struct reading *reading, int number, int chunk, int size)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *id = listed(reading, "remote_buffer_refs", "access_channel_type",
                                        "remote_buffer_ids", reading->type, number);
    const struct json_node *all = tt_json_member(reading->rank->node, "remote_buffers");
    const struct json_node *at = all ? all->first : NULL;
    int which = 0, rank = 0;
    uint8_t buffer = 0;
    if (!id || !tt_mscclpp_take_int(plan, id, "remote_buffer_ids", 0,
                                    all ? (int)all->count - 1 : -1, &which))
        return false;
    for (; which > 0 && at; which--)
        at = at->next;
    return at &&
           tt_mscclpp_need_int(plan, at, "a remote buffer", "rank",
                               mscclpp_upto(plan->file->nranks - 1), &rank) &&
           tt_mscclpp_take_buffer(plan, at, "a remote buffer", "type", &buffer) &&
           check_ref(reading, rank, buffer, chunk, size) &&
           add_ref(plan, rank, buffer, chunk, size);
}

/* A switch's buffer is that of all ranks of its group. */
static bool add_switch(struct reading *reading, int number, int chunk, int size)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *id =
        listed(reading, "channels", "channel_type", "channel_ids", MSCCLPP_TYPES, number);
    int which = 0;
    if (!id ||
        !tt_mscclpp_take_int(plan, id, "channel_ids", 0, (int)reading->rank->ngroups - 1, &which))
        return false;
    const struct mscclpp_group *group = mscclpp_group(plan, reading->rank->group + (uint32_t)which);
    for (uint32_t m = 0; m < group->count; m++) {
        int rank = *mscclpp_number(&plan->members, group->first + m);
        if (!check_ref(reading, rank, group->buffer, chunk, size) ||
            !add_ref(plan, rank, group->buffer, chunk, size))
            return false;
    }
    return true;
}

static bool add_location(struct reading *reading, const struct json_node *node)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *remote = tt_json_member(node, "buffer_id");
    const struct json_node *over = tt_json_member(node, "switch_channel_id");
    int chunk = 0, size = 0, number = 0;
    uint8_t buffer = 0;
    if (!tt_mscclpp_need_int(plan, node, "a buffer", "index", mscclpp_upto(MSCCL_CHUNKS), &chunk) ||
        !tt_mscclpp_need_int(plan, node, "a buffer", "size",
                             (struct mscclpp_range){1, MSCCL_CHUNKS}, &size))
        return false;
    if (remote || over) {
        return tt_mscclpp_take_int(plan, remote ? remote : over, "a buffer's number", 0,
                                   MSCCLPP_ALL_CHANNELS, &number) &&
               (remote ? add_remote(reading, number, chunk, size)
                       : add_switch(reading, number, chunk, size));
    }
    return tt_mscclpp_take_buffer(plan, node, "a buffer", "type", &buffer) &&
           check_ref(reading, reading->block->rank, buffer, chunk, size) &&
           add_ref(plan, reading->block->rank, buffer, chunk, size);
}

/* ---- operations ---- */

static bool add_locations(struct reading *reading, const char *key, uint32_t *first,
                          uint32_t *count)
{
    const struct json_node *list =
        tt_mscclpp_need(reading->plan, reading->op, reading->kind->name, key, JSON_ARRAY);
    *first = (uint32_t)reading->plan->refs.count;
    for (const struct json_node *at = list ? list->first : NULL; at; at = at->next) {
        if (!add_location(reading, at)) return false;
    }
    *count = (uint32_t)reading->plan->refs.count - *first;
    if (list && *count == 0) {
        return tt_msccl_refuse(reading->plan->file, list->line, "%s of a %s is empty", key,
                               reading->kind->name);
    }
    return list != NULL;
}

/* All pieces are as long as each other; they go one to one, one to all, or all into each. */
static bool check_locations(struct reading *reading, const struct mscclpp_op *op)
{
    struct msccl_file *file = reading->plan->file;
    bool matched = op->kind->adds || op->nsrc == 1 || op->nsrc == op->ndst;
    for (uint32_t k = 0; k < op->nsrc + op->ndst; k++) {
        matched = matched && mscclpp_ref(reading->plan, op->src + k)->size ==
                                 mscclpp_ref(reading->plan, op->src)->size;
    }
    if (!matched) {
        return tt_msccl_refuse(file, op->line,
                               "gpu %d tb %d: sources and destinations of a %s do not match",
                               reading->block->rank, reading->block->id, op->kind->name);
    }
    reading->plan->touched +=
        (int64_t)(op->nsrc + op->ndst) * mscclpp_ref(reading->plan, op->src)->size;
    if (reading->plan->touched > MSCCL_TOTAL || (uint64_t)op->nsrc * op->ndst > MSCCLPP_PAIRS) {
        return tt_msccl_refuse(file, op->line, "the plan touches too many chunks (limit %d)",
                               (int)MSCCL_TOTAL);
    }
    if (!op->kind->adds || msccl_reduces(file->func)) return true;
    return tt_msccl_refuse(file, op->line, "gpu %d tb %d: %s, where %s reduces nothing",
                           reading->block->rank, reading->block->id, op->kind->name,
                           tt_func_name(file->func));
}

static bool read_locations(struct reading *reading, struct mscclpp_op *op)
{
    const struct json_node *sum = tt_json_member(reading->op, "reduce_op");
    if (sum && (sum->kind != JSON_STRING || strcmp(sum->text, "sum") != 0)) {
        return tt_msccl_refuse(
            reading->plan->file, sum->line,
            "reduce_op is \"%.40s\": the operator is the caller's, and plans say sum",
            sum->text ? sum->text : "");
    }
    return add_locations(reading, "src_buff", &op->src, &op->nsrc) &&
           add_locations(reading, "dst_buff", &op->dst, &op->ndst) && check_locations(reading, op);
}

/* The inboxes that its channels signal at the peers, or that it waits at. */
static bool read_channels(struct reading *reading, struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *ids =
        tt_mscclpp_need(plan, reading->op, op->kind->name, "channel_ids", JSON_ARRAY);
    if (ids && reading->type == MSCCLPP_TYPES)
        return tt_msccl_refuse(plan->file, reading->op->line, "a %s on a switch", op->kind->name);
    op->sync = (uint32_t)plan->syncs.count;
    for (const struct json_node *at = ids ? ids->first : NULL; at; at = at->next) {
        int number = 0, which = 0;
        if (!tt_mscclpp_take_int(plan, at, "channel_ids", 0, MSCCLPP_CHANNELS, &number))
            return false;
        const struct json_node *id =
            listed(reading, "channels", "channel_type", "channel_ids", reading->type, number);
        uint32_t first = reading->rank->channel[reading->type];
        int count = (int)(reading->rank->channel[reading->type + 1] - first);
        if (!id || !tt_mscclpp_take_int(plan, id, "channel_ids", 0, count - 1, &which))
            return false;
        uint32_t own = first + (uint32_t)which, peer = mscclpp_channel(plan, own)->inbox;
        if (peer == UINT32_MAX) {
            return tt_msccl_refuse(plan->file, id->line, "gpu %d has no channel back to gpu %d",
                                   mscclpp_channel(plan, own)->peer, reading->block->rank);
        }
        bool waits = op->kind->does == MSCCLPP_WAITS;
        if (!tt_mscclpp_add_number(plan, &plan->syncs, (int)(waits ? own : peer))) return false;
        if (++op->nsync > MSCCLPP_CHANNELS)
            return tt_msccl_refuse(plan->file, at->line, "too many channels of one operation");
    }
    return ids != NULL;
}

/* An operation that moves may name a channel, too; where it leads its buffers say. */
static bool check_channels(struct reading *reading)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *ids = tt_json_member(reading->op, "channel_ids");
    for (const struct json_node *at = ids ? ids->first : NULL; at; at = at->next) {
        int number = 0;
        if (!tt_mscclpp_take_int(plan, at, "channel_ids", 0, MSCCLPP_CHANNELS, &number) ||
            !listed(reading, "channels", "channel_type", "channel_ids", reading->type, number))
            return false;
    }
    return true;
}

static bool read_semaphores(struct reading *reading, struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct json_node *ids =
        tt_mscclpp_need(plan, reading->op, op->kind->name, "semaphore_ids", JSON_ARRAY);
    op->sync = (uint32_t)plan->syncs.count;
    for (const struct json_node *at = ids ? ids->first : NULL; at; at = at->next) {
        int number = 0, most = (int)reading->rank->nsemaphores - 1;
        if (!tt_mscclpp_take_int(plan, at, "semaphore_ids", 0, most, &number) ||
            !tt_mscclpp_add_number(plan, &plan->syncs, (int)reading->rank->semaphore + number))
            return false;
        if (++op->nsync > MSCCLPP_CHANNELS)
            return tt_msccl_refuse(plan->file, at->line, "too many semaphores of one operation");
    }
    return ids != NULL;
}

static bool read_barrier(struct reading *reading, struct mscclpp_op *op)
{
    int number = 0, count = 0;
    const char *name = op->kind->name;
    if (!tt_mscclpp_need_int(reading->plan, reading->op, name, "barrier_id",
                             mscclpp_upto(MSCCLPP_SYNCS - 1), &number) ||
        !tt_mscclpp_need_int(reading->plan, reading->op, name, "num_threadblocks",
                             (struct mscclpp_range){1, MSCCLPP_BLOCKS}, &count))
        return false;
    op->sync = (uint32_t)number;
    op->nsync = (uint32_t)count;
    return true;
}

static const struct mscclpp_kind *find_kind(struct mscclpp_plan *plan, const struct json_node *node)
{
    const struct json_node *name = tt_mscclpp_need(plan, node, "an operation", "name", JSON_STRING);
    for (size_t k = 0; name && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (strcmp(kinds[k].name, name->text) == 0) return &kinds[k];
    }
    if (name) {
        tt_msccl_refuse(plan->file, name->line, "\"%.40s\" is no operation that is imported",
                        name->text);
    }
    return NULL;
}

/* A group of blocks shares the operation; its first one does it here. */
static bool read_group(struct reading *reading, struct mscclpp_op *op)
{
    const struct json_node *info = tt_json_member(reading->op, "tbg_info");
    int number = 0, size = 1;
    if (!info) return true;
    if (!tt_mscclpp_need_int(reading->plan, info, "tbg_info", "tbg_size",
                             (struct mscclpp_range){1, MSCCLPP_BLOCKS}, &size) ||
        !tt_mscclpp_need_int(reading->plan, info, "tbg_info", "tb_id", mscclpp_upto(size - 1),
                             &number))
        return false;
    op->idle = number > 0;
    return true;
}

static bool read_op(struct reading *reading, const struct json_node *node)
{
    struct mscclpp_plan *plan = reading->plan;
    const struct mscclpp_kind *kind = find_kind(plan, node);
    const struct json_node *type = tt_json_member(node, "channel_type");
    struct mscclpp_op op = {.line = node->line, .kind = kind};
    if (!kind) return false;
    reading->op = node;
    reading->kind = kind;
    reading->type = MSCCLPP_MEMORY;
    if (type && strcmp(type->text ? type->text : "", "none") != 0 &&
        !tt_mscclpp_take_type(plan, type, &reading->type))
        return false;
    bool read = true;
    if (kind->does == MSCCLPP_MOVES)
        read = read_locations(reading, &op) && read_group(reading, &op) && check_channels(reading);
    if (kind->does == MSCCLPP_BARRIER) read = read_barrier(reading, &op);
    if (kind->does == MSCCLPP_ACQUIRES || kind->does == MSCCLPP_RELEASES)
        read = read_semaphores(reading, &op);
    if (kind->does == MSCCLPP_SIGNALS || kind->does == MSCCLPP_WAITS || kind->signals)
        read = read && read_channels(reading, &op);
    struct mscclpp_op *added = read ? tt_msccl_append(&plan->ops, sizeof(*added)) : NULL;
    if (!added) return read ? tt_msccl_no_memory(plan->file) : false;
    *added = op;
    if (plan->ops.count <= MSCCLPP_OPS) return true;
    return tt_msccl_refuse(plan->file, node->line, "more than %d operations", (int)MSCCLPP_OPS);
}

/* What a pipeline cuts its chunks into does not matter here: its operations come once, whole. */
static bool read_ops(struct reading *reading)
{
    const struct json_node *ops =
        tt_mscclpp_need(reading->plan, reading->node, "a block", "ops", JSON_ARRAY);
    for (const struct json_node *at = ops ? ops->first : NULL; at; at = at->next) {
        const struct json_node *name = tt_json_member(at, "name");
        bool pipeline = name && name->kind == JSON_STRING && strcmp(name->text, "pipeline") == 0;
        const struct json_node *inner =
            pipeline ? tt_mscclpp_need(reading->plan, at, "a pipeline", "ops", JSON_ARRAY) : NULL;
        if (pipeline && !inner) return false;
        if (!pipeline && !read_op(reading, at)) return false;
        for (const struct json_node *one = inner ? inner->first : NULL; one; one = one->next) {
            if (!read_op(reading, one)) return false;
        }
    }
    return ops != NULL;
}

/* ---- blocks ---- */

/* Lists that each operation looks into are short. */
static bool check_lists(struct mscclpp_plan *plan, const struct json_node *object,
                        const char *const *keys)
{
    bool fits = object->count <= MSCCLPP_MEMBERS;
    for (; *keys && fits; keys++) {
        const struct json_node *list = tt_json_member(object, *keys);
        uint32_t count = list ? list->count : 0;
        for (const struct json_node *at = list ? list->first : NULL; at && fits; at = at->next) {
            const struct json_node *ids = tt_json_member(at, "channel_ids");
            if (!ids) ids = tt_json_member(at, "remote_buffer_ids");
            count += ids ? ids->count : 0;
            fits = count <= MSCCLPP_LISTED && at->count <= MSCCLPP_MEMBERS;
        }
        fits = fits && count <= MSCCLPP_LISTED;
    }
    if (fits) return true;
    return tt_msccl_refuse(plan->file, object->line, "it lists too much (limit %d)",
                           (int)MSCCLPP_LISTED);
}

static bool read_block(struct mscclpp_plan *plan, int rank, const struct json_node *node)
{
    static const char *const lists[] = {"channels", "remote_buffer_refs", NULL};
    struct mscclpp_block block = {.line = node->line,
                                  .rank = rank,
                                  .id = (int)(plan->blocks.count - plan->ranks[rank].first),
                                  .first = (uint32_t)plan->ops.count};
    struct reading reading = {
        .plan = plan, .rank = &plan->ranks[rank], .block = &block, .node = node};
    int id = 0;
    if (!check_lists(plan, node, lists)) return false;
    if (!tt_mscclpp_need_int(plan, node, "a block", "id", mscclpp_upto(MSCCLPP_BLOCKS - 1), &id))
        return false;
    if (id != block.id) {
        return tt_msccl_refuse(plan->file, node->line, "gpu %d: tb %d comes where tb %d is due",
                               rank, id, block.id);
    }
    if (!read_ops(&reading)) return false;
    block.end = (uint32_t)plan->ops.count;
    struct mscclpp_block *added = tt_msccl_append(&plan->blocks, sizeof(*added));
    if (!added) return tt_msccl_no_memory(plan->file);
    *added = block;
    if (plan->blocks.count <= MSCCLPP_ALL_BLOCKS) return true;
    return tt_msccl_refuse(plan->file, node->line, "more than %d blocks", (int)MSCCLPP_ALL_BLOCKS);
}

bool tt_mscclpp_read_blocks(struct mscclpp_plan *plan)
{
    for (int r = 0; r < plan->file->nranks; r++) {
        static const char *const lists[] = {"remote_buffers", NULL};
        struct mscclpp_rank *rank = &plan->ranks[r];
        if (!check_lists(plan, rank->node, lists)) return false;
        const struct json_node *blocks =
            tt_mscclpp_need(plan, rank->node, "a gpu", "threadblocks", JSON_ARRAY);
        rank->first = (uint32_t)plan->blocks.count;
        for (const struct json_node *at = blocks ? blocks->first : NULL; at; at = at->next) {
            if (!read_block(plan, r, at)) return false;
        }
        if (!blocks) return false;
        rank->end = (uint32_t)plan->blocks.count;
    }
    return true;
}
