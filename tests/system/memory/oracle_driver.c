/* The oracle's operations by the driver's functions: fills of halves and words, in a row and in
 * several, copies of rows and boxes, between devices and in batches, words that streams write and
 * wait for. */
#include "oracle.h"

enum { ROWS_MOST = 20, BATCH = 4 };

static CUdeviceptr address(const struct buffer *buffer, size_t word)
{
    return (CUdeviceptr)(uintptr_t)(buffer->at + word);
}

/* ---- fills ---- */

static void model_fill(struct buffer *to, struct span span, uint32_t value)
{
    for (size_t i = span.first; i < span.first + span.count; i++) {
        to->model[i] = value;
    }
}

void oracle_driver_fill(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *to = oracle_pick_buffer(world, false);
    struct span span = oracle_pick_span(world);
    uint32_t value = (uint32_t)oracle_pick(world, 1 << 16);
    CUstream on = world->streams[stream];
    CUdeviceptr at = address(to, span.first);
    oracle_begin(world, stream, &to, 1);
    switch (oracle_pick(world, 3)) {
    case 0:
        value = (value & 0xff) * 0x01010101U;
        OK(world, cuMemsetD8Async(at, (unsigned char)value, span.count * 4, on));
        break;
    case 1:
        value *= 0x00010001U;
        OK(world, cuMemsetD16Async(at, (unsigned short)value, span.count * 2, on));
        break;
    default: OK(world, cuMemsetD32Async(at, value, span.count, on)); break;
    }
    model_fill(to, span, value);
    oracle_end(world, stream, &to, 1);
}

void oracle_driver_fill_rows(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS), width = 1 + oracle_pick(world, 100);
    size_t pitch = width + oracle_pick(world, 50), rows = 1 + oracle_pick(world, ROWS_MOST);
    size_t first = oracle_pick(world, WORDS - pitch * rows);
    struct buffer *to = oracle_pick_buffer(world, false);
    uint32_t value = (uint32_t)oracle_pick(world, 1 << 16);
    oracle_begin(world, stream, &to, 1);
    OK(world, cuMemsetD2D32Async(address(to, first), pitch * 4, value, width, rows,
                                 world->streams[stream]));
    for (size_t row = 0; row < rows; row++) {
        model_fill(to, (struct span){first + row * pitch, width}, value);
    }
    oracle_end(world, stream, &to, 1);
}

/* ---- copies ---- */

struct rows { /* in words */
    size_t to, to_pitch, from, from_pitch, width, count;
};

static struct rows pick_rows(struct world *world)
{
    struct rows rows = {.width = 1 + oracle_pick(world, 100),
                        .count = 1 + oracle_pick(world, ROWS_MOST)};
    rows.to_pitch = rows.width + oracle_pick(world, 50);
    rows.from_pitch = rows.width + oracle_pick(world, 50);
    rows.to = oracle_pick(world, WORDS - rows.to_pitch * rows.count);
    rows.from = oracle_pick(world, WORDS - rows.from_pitch * rows.count);
    return rows;
}

static void copy_rows(struct world *world, struct buffer *const *two, const struct rows *rows,
                      CUstream on)
{
    CUDA_MEMCPY2D planes = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                            .srcDevice = address(two[1], rows->from),
                            .srcPitch = rows->from_pitch * 4,
                            .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                            .dstDevice = address(two[0], rows->to),
                            .dstPitch = rows->to_pitch * 4,
                            .WidthInBytes = rows->width * 4,
                            .Height = rows->count};
    CUDA_MEMCPY3D boxes = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = address(two[1], 0),
                           .srcXInBytes = rows->from % rows->from_pitch * 4,
                           .srcZ = rows->from / rows->from_pitch,
                           .srcPitch = rows->from_pitch * 4,
                           .srcHeight = 1,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = address(two[0], rows->to),
                           .dstPitch = rows->to_pitch * 4,
                           .dstHeight = 1,
                           .WidthInBytes = rows->width * 4,
                           .Height = 1,
                           .Depth = rows->count};
    /* a box whose slices are single rows; its source's first one is named by its position */
    bool fits = boxes.srcXInBytes + boxes.WidthInBytes <= boxes.srcPitch;
    if (fits && oracle_pick(world, 2)) {
        OK(world, cuMemcpy3DAsync(&boxes, on));
    } else {
        OK(world, cuMemcpy2DAsync(&planes, on));
    }
}

void oracle_driver_rows(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *two[] = {oracle_pick_buffer(world, true), oracle_pick_buffer(world, true)};
    const struct rows rows = pick_rows(world);
    if (two[0] == two[1]) return; /* rows of one copy must not overlap */
    oracle_begin(world, stream, two, 2);
    copy_rows(world, two, &rows, world->streams[stream]);
    for (size_t row = 0; row < rows.count; row++) {
        memcpy(two[0]->model + rows.to + row * rows.to_pitch,
               two[1]->model + rows.from + row * rows.from_pitch, rows.width * 4);
    }
    oracle_end(world, stream, two, 2);
}

void oracle_driver_peer(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS);
    struct buffer *two[] = {oracle_pick_buffer(world, false), oracle_pick_buffer(world, false)};
    struct span span = oracle_pick_span(world);
    CUcontext of[2] = {NULL, NULL};
    if (two[0] == two[1]) return;
    for (int i = 0; i < 2; i++) {
        OK(world, cuDevicePrimaryCtxRetain(&of[i], two[i]->device));
        OK(world, cuDevicePrimaryCtxRelease(two[i]->device));
    }
    oracle_begin(world, stream, two, 2);
    OK(world, cuMemcpyPeerAsync(address(two[0], span.first), of[0], address(two[1], span.first),
                                of[1], span.count * 4, world->streams[stream]));
    memcpy(two[0]->model + span.first, two[1]->model + span.first, span.count * 4);
    oracle_end(world, stream, two, 2);
}

/* Each copy of a batch has a part of both buffers for itself: they may come in any order. */
void oracle_driver_batch(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS), lens[BATCH], start = 0;
    struct buffer *two[] = {oracle_pick_buffer(world, true), oracle_pick_buffer(world, true)};
    CUdeviceptr to[BATCH], from[BATCH];
    CUmemcpyAttributes attr = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    if (two[0] == two[1]) return;
    oracle_begin(world, stream, two, 2);
    for (size_t i = 0; i < BATCH; i++) {
        size_t first = i * (WORDS / BATCH) + oracle_pick(world, 100);
        size_t at = (BATCH - 1 - i) * (WORDS / BATCH) + oracle_pick(world, 100);
        size_t count = 1 + oracle_pick(world, WORDS / BATCH - 100);
        from[i] = address(two[1], first);
        to[i] = address(two[0], at);
        lens[i] = count * 4;
        memcpy(two[0]->model + at, two[1]->model + first, lens[i]);
    }
    OK(world, cuMemcpyBatchAsync(to, from, lens, BATCH, &attr, &start, 1, world->streams[stream]));
    oracle_end(world, stream, two, 2);
}

/* ---- words ---- */

void oracle_driver_words(struct world *world)
{
    size_t stream = oracle_pick(world, STREAMS), at = oracle_pick(world, WORDS / 2) * 2;
    struct buffer *to = oracle_pick_buffer(world, false);
    uint32_t value = (uint32_t)oracle_pick(world, 1 << 16);
    uint64_t wide = ((uint64_t)value << 32) | ~value;
    CUstream on = world->streams[stream];
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof(ops));
    oracle_begin(world, stream, &to, 1);
    if (oracle_pick(world, 2)) {
        OK(world, cuStreamWriteValue64(on, address(to, at), wide, 0));
        OK(world, cuStreamWaitValue64(on, address(to, at), wide, CU_STREAM_WAIT_VALUE_EQ));
        memcpy(to->model + at, &wide, sizeof(wide));
    } else {
        ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[0].writeValue.address = address(to, at);
        ops[0].writeValue.value = value;
        ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        ops[1].waitValue.address = address(to, at);
        ops[1].waitValue.value = value;
        ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
        OK(world, cuStreamBatchMemOp(on, 2, ops, 0));
        to->model[at] = value;
    }
    oracle_end(world, stream, &to, 1);
}
