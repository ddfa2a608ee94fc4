/* The oracle's single operations: each is put on a stream behind those that touched its buffers,
 * and done to the models at once. */
#include "oracle.h"

struct span oracle_pick_span(struct world *world)
{
    size_t most = oracle_pick(world, 4) ? 300 : WORDS;
    struct span span = {oracle_pick(world, WORDS), 1 + oracle_pick(world, most)};
    if (span.first + span.count > WORDS) span.count = WORDS - span.first;
    return span;
}

struct buffer *oracle_pick_buffer(struct world *world, bool pageable)
{
    struct buffer *buffer = &world->buffers[oracle_pick(world, BUFFERS)];
    while (!pageable && buffer->kind == KIND_PAGEABLE) {
        buffer = &world->buffers[oracle_pick(world, BUFFERS)];
    }
    return buffer;
}

/* ---- order ---- */

void oracle_begin(struct world *world, size_t stream, struct buffer *const *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        OK(world, cudaStreamWaitEvent(world->streams[stream], buffers[i]->last, 0));
    }
}

/* An event is recorded on streams of its own device: another one carries it there. */
void oracle_end(struct world *world, size_t stream, struct buffer *const *buffers, size_t count)
{
    int device = (int)(stream % DEVICES);
    OK(world, cudaEventRecord(world->done[device], world->streams[stream]));
    for (size_t i = 0; i < count; i++) {
        size_t own = buffers[i]->device == device ? stream : (size_t)buffers[i]->device;
        OK(world, cudaStreamWaitEvent(world->streams[own], world->done[device], 0));
        OK(world, cudaEventRecord(buffers[i]->last, world->streams[own]));
    }
}

/* ---- host functions ---- */

struct change *oracle_change(struct world *world, struct buffer *to)
{
    struct span span = oracle_pick_span(world);
    struct change *change = malloc(sizeof(*change));
    uint32_t value = (uint32_t)oracle_pick(world, 1000);
    *change = (struct change){world->changes, to->at + span.first, span.count, value};
    world->changes = change;
    return change;
}

void oracle_change_run(void *arg)
{
    const struct change *change = arg;
    for (size_t i = 0; i < change->count; i++) {
        change->at[i] += change->value;
    }
}

void oracle_model_change(struct buffer *to, const struct change *change)
{
    for (size_t i = 0; i < change->count; i++) {
        to->model[(size_t)(change->at - to->at) + i] += change->value;
    }
}

void oracle_call(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *to = oracle_pick_buffer(world, false);
    struct change *change = oracle_change(world, to);
    oracle_begin(world, stream, &to, 1);
    OK(world, cudaLaunchHostFunc(world->streams[stream], oracle_change_run, change));
    oracle_model_change(to, change);
    oracle_end(world, stream, &to, 1);
}

/* ---- fills, copies, memory of pools ---- */

void oracle_fill(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *to = oracle_pick_buffer(world, false);
    struct span span = oracle_pick_span(world);
    int value = (int)oracle_pick(world, 256);
    oracle_begin(world, stream, &to, 1);
    OK(world, cudaMemsetAsync(to->at + span.first, value, span.count * 4, world->streams[stream]));
    memset(to->model + span.first, value, span.count * 4);
    oracle_end(world, stream, &to, 1);
}

void oracle_copy(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *two[] = {oracle_pick_buffer(world, true), oracle_pick_buffer(world, true)};
    struct span span = oracle_pick_span(world);
    size_t at = oracle_pick(world, WORDS - span.count + 1);
    if (two[0] == two[1]) at = span.first; /* ranges of one copy must not overlap otherwise */
    oracle_begin(world, stream, two, 2);
    OK(world, cudaMemcpyAsync(two[0]->at + at, two[1]->at + span.first, span.count * 4,
                              cudaMemcpyDefault, world->streams[stream]));
    memmove(two[0]->model + at, two[1]->model + span.first, span.count * 4);
    oracle_end(world, stream, two, 2);
}

void oracle_renew(struct world *world)
{
    struct buffer *pool = &world->buffers[KIND_POOL + KIND_COUNT_ * oracle_pick(world, DEVICES)];
    size_t stream = oracle_pick(world, STREAMS / DEVICES) * DEVICES + (size_t)pool->device;
    oracle_begin(world, stream, &pool, 1);
    OK(world, cudaFreeAsync(pool->at, world->streams[stream]));
    OK(world, cudaMallocAsync((void **)&pool->at, BYTES, world->streams[stream]));
    OK(world, cudaMemsetAsync(pool->at, 7, BYTES, world->streams[stream]));
    memset(pool->model, 7, BYTES);
    oracle_end(world, stream, &pool, 1);
}

/* ---- collectives ----
 * On streams that do not wait for the legacy one: another thread's legacy work may come between the
 * calls of two ranks, and two such collectives then wait for each other, on a GPU as well. */

void oracle_model_reduce(struct buffer *const *two, struct span span)
{
    for (size_t i = span.first; i < span.first + span.count; i++) {
        two[0]->model[i] = two[1]->model[i] = two[0]->model[i] + two[1]->model[i];
    }
}

void oracle_reduce(struct world *world)
{
    struct buffer *two[] = {oracle_pick_buffer(world, false), oracle_pick_buffer(world, false)};
    struct span span = oracle_pick_span(world);
    size_t stream = DEVICES * oracle_pick(world, NONBLOCKING / DEVICES);
    if (two[0] == two[1]) return;
    for (size_t d = 0; d < DEVICES; d++) {
        oracle_begin(world, stream + d, &two[d], 1);
    }
    OK(world, ncclGroupStart());
    for (size_t d = 0; d < DEVICES; d++) {
        OK(world, ncclAllReduce(two[d]->at + span.first, two[d]->at + span.first, span.count,
                                ncclUint32, ncclSum, world->comms[d], world->streams[stream + d]));
    }
    OK(world, ncclGroupEnd());
    oracle_model_reduce(two, span);
    for (size_t d = 0; d < DEVICES; d++) {
        oracle_end(world, stream + d, &two[d], 1);
    }
}
