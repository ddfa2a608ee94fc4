/* Scenarios of words that streams write and wait for, of what runs side by side (copies of a batch,
 * calls of a group), and of order that ranks make by messages and collectives alone. */
#include "racy.h"

#include <pthread.h>

enum { TURNS = 4 };

/* ---- words ---- */

static CUdeviceptr make_word(void)
{
    char *word;
    OK(cudaMalloc((void **)&word, 8));
    OK(cudaMemset(word, 0, 8));
    OK(cudaDeviceSynchronize());
    return (CUdeviceptr)(uintptr_t)word;
}

static void put(cudaStream_t stream, CUdeviceptr word, unsigned value)
{
    OK(cuStreamWriteValue32(stream, word, value, 0));
}

static void get(cudaStream_t stream, CUdeviceptr word, unsigned value, unsigned compare)
{
    OK(cuStreamWaitValue32(stream, word, value, compare));
}

static void word_loop(bool sound) /* racy: every turn's wait ends by the first turn's write */
{
    CUdeviceptr full = make_word();
    for (unsigned i = 1; i <= TURNS; i++) {
        fill(my.x, my.a);
        put(my.a, full, i);
        get(my.b, full, sound ? i : 1, CU_STREAM_WAIT_VALUE_GEQ);
        copy(my.y, my.x, my.b);
        order(my.b, my.a, true);
    }
}

static void word_back_and_forth(bool sound) /* racy: no stream waits for the word to be empty */
{
    CUdeviceptr full = make_word();
    for (int i = 0; i < TURNS; i++) {
        fill(my.x, my.a);
        put(my.a, full, 1);
        get(my.b, full, 1, CU_STREAM_WAIT_VALUE_EQ);
        copy(my.y, my.x, my.b);
        put(my.b, full, 0);
        if (sound) get(my.a, full, 0, CU_STREAM_WAIT_VALUE_EQ);
    }
}

static void word_of_two(bool sound) /* racy: either of two writes ends the wait */
{
    cudaStream_t c;
    CUdeviceptr words[] = {make_word(), make_word()};
    OK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    fill(my.x, my.a);
    put(my.a, words[0], 1);
    fill(my.y, my.b);
    put(my.b, words[sound], 1);
    get(c, words[0], 1, CU_STREAM_WAIT_VALUE_EQ);
    get(c, words[sound], 1, CU_STREAM_WAIT_VALUE_EQ);
    copy(my.z, my.x, c);
    copy(my.z, my.y, c);
}

static void word_too_small(bool sound) /* racy: an earlier write is enough */
{
    CUdeviceptr word = make_word();
    put(my.a, word, 1);
    fill(my.x, my.a);
    put(my.a, word, 2);
    get(my.b, word, sound ? 2 : 1, CU_STREAM_WAIT_VALUE_GEQ);
    copy(my.y, my.x, my.b);
}

static void word_held_before(bool sound) /* racy: what the word holds ends the wait */
{
    CUdeviceptr word = make_word();
    fill(my.x, my.a);
    put(my.a, word, 0x10);
    get(my.b, word, sound ? 0x10 : 0, sound ? CU_STREAM_WAIT_VALUE_AND : CU_STREAM_WAIT_VALUE_NOR);
    copy(my.y, my.x, my.b);
}

static void word_filled_again(bool sound) /* racy: the word is not emptied for the second turn */
{
    CUdeviceptr word = make_word();
    for (int i = 0; i < 2; i++) {
        if (sound || !i) OK(cuMemsetD32Async(word, 0, 1, (CUstream)my.b));
        order(my.b, my.a, true);
        fill(my.x, my.a);
        put(my.a, word, 1);
        get(my.b, word, 1, CU_STREAM_WAIT_VALUE_EQ);
        copy(my.y, my.x, my.b);
    }
}

static void word_emptied_by_host(bool sound)
{
    unsigned *word;
    OK(cudaMallocHost((void **)&word, sizeof(*word)));
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)word;
    for (int i = 0; i < 2; i++) {
        if (sound || !i) *word = 0;
        fill(my.x, my.a);
        get(my.b, at, 1, CU_STREAM_WAIT_VALUE_EQ);
        copy(my.y, my.x, my.b);
        put(my.a, at, 1);
        OK(cudaStreamSynchronize(my.b));
        OK(cudaStreamSynchronize(my.a));
    }
}

/* ---- batches ---- */

static void batch(void **to, const void **from, size_t count)
{
    struct cudaMemcpyAttributes attrs = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t lens[] = {BYTES / 2, BYTES / 2}, starts[] = {0};
    OK(cudaMemcpyBatchAsync(to, from, lens, count, &attrs, starts, 1, my.a));
}

static void batch_chain(bool sound) /* racy: one copy of a batch reads what another writes */
{
    void *to[] = {my.y, my.z};
    const void *from[] = {my.x, my.y};
    batch(to, from, sound ? 1 : 2);
    if (sound) batch(to + 1, from + 1, 1);
}

static void batch_of_overlaps(bool sound)
{
    void *to[] = {my.y, my.y + BYTES / 2 - !sound};
    const void *from[] = {my.x, my.x};
    batch(to, from, 2);
}

static void batch_captured(bool sound)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    batch_chain(sound);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphDestroy(graph));
}

/* ---- groups ---- */

static void reduce_one(int r, const float *in, float *out, size_t count)
{
    OK(ncclAllReduce(in, out, count, ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]));
}

static void next_group(bool begins)
{
    if (!begins) return;
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
}

static void group_mixed(bool sound) /* racy: a call reads the result of another of its group */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        reduce_one(r, ranks.in[r], ranks.out[r], COUNT / 2);
    }
    next_group(sound);
    for (int r = 0; r < RANKS; r++) {
        OK(ncclBroadcast(ranks.out[r], ranks.out[r] + COUNT / 2, COUNT / 2, ncclFloat, 0,
                         ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

static void group_again(bool sound) /* racy: two results of a group in one place, turn by turn */
{
    racy_start_ranks();
    for (int i = 0; i < TURNS; i++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            reduce_one(r, ranks.in[r], ranks.out[r], 16);
            reduce_one(r, ranks.in[r] + 16, ranks.out[r] + (sound || i < TURNS - 1 ? 16 : 8), 16);
        }
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void group_sends_result(bool sound)
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        reduce_one(r, ranks.in[r], ranks.out[r], COUNT / 2);
        next_group(false);
        OK(ncclSend(sound ? ranks.in[r] : ranks.out[r], 4, ncclFloat, 1 - r, ranks.comm[r],
                    ranks.stream[r]));
        OK(ncclRecv(ranks.out[r] + COUNT / 2, 4, ncclFloat, 1 - r, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

static void group_on_two_streams(bool sound) /* the streams of a group wait for all of it */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        reduce_one(r, ranks.in[r], ranks.out[r], COUNT / 2);
        OK(ncclAllReduce(ranks.in[r], ranks.out[r] + COUNT / 2 - (sound ? 0 : 1), COUNT / 2,
                         ncclFloat, ncclSum, ranks.comm[r], ranks.other[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

/* ---- order by messages and collectives ---- */

static void message_from(int from)
{
    int to = 1 - from;
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[from], 4, ncclFloat, to, ranks.comm[from], ranks.stream[from]));
    OK(ncclRecv(ranks.out[to], 4, ncclFloat, from, ranks.comm[to], ranks.stream[to]));
    OK(ncclGroupEnd());
}

static void message_reports(bool sound) /* racy: the receiver tells its sender nothing */
{
    racy_start_ranks();
    fill(my.x, ranks.stream[0]);
    message_from(sound ? 0 : 1);
    copy(my.y, my.x, ranks.stream[1]);
    racy_finish_ranks();
}

static void message_too_early(bool sound)
{
    racy_start_ranks();
    if (sound) fill(my.x, ranks.stream[1]);
    message_from(1);
    if (!sound) fill(my.x, ranks.stream[1]);
    copy(my.y, my.x, ranks.stream[0]);
    racy_finish_ranks();
}

static void messages_in_turns(bool sound) /* racy: one answer is missing */
{
    racy_start_ranks();
    for (int i = 0; i < TURNS; i++) {
        fill(my.x, ranks.stream[0]);
        message_from(0);
        copy(my.y, my.x, ranks.stream[1]);
        if (sound || i != 1) message_from(1);
    }
    racy_finish_ranks();
}

static void message_of_own_thread(bool sound) /* sent and received by calls of their own */
{
    racy_start_ranks();
    fill(my.x, sound ? ranks.stream[0] : ranks.other[0]);
    OK(ncclSend(ranks.in[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], 4, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    copy(my.y, my.x, ranks.stream[1]);
    racy_finish_ranks();
}

static void all_to_all_reports(bool sound)
{
    racy_start_ranks();
    fill(my.x, sound ? ranks.stream[1] : ranks.other[1]);
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAlltoAll(ranks.in[r], ranks.out[r], 8, ncclFloat, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    copy(my.y, my.x, ranks.stream[0]);
    racy_finish_ranks();
}

static void in_place_on_two_streams(bool sound) /* the library copies what is in place */
{
    racy_start_ranks();
    for (int pass = 0; pass < 2; pass++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            float *at = pass && sound ? ranks.out[r] : ranks.in[r];
            OK(ncclAlltoAll(at, at, 8, ncclFloat, ranks.comm[r],
                            pass ? ranks.other[r] : ranks.stream[r]));
        }
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void broadcast_reports(bool sound) /* racy: the root waits for no rank */
{
    racy_start_ranks();
    fill(my.x, ranks.stream[sound ? 0 : 1]);
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclBroadcast(ranks.in[r], ranks.out[r], 8, ncclFloat, 0, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    copy(my.y, my.x, ranks.stream[sound ? 1 : 0]);
    racy_finish_ranks();
}

static void through_events(bool sound) /* a message's order goes on by an event */
{
    racy_start_ranks();
    fill(my.x, ranks.stream[0]);
    message_from(0);
    OK(cudaSetDevice(1));
    if (sound) {
        cudaEvent_t event;
        OK(cudaEventCreate(&event));
        OK(cudaEventRecord(event, ranks.stream[1]));
        OK(cudaStreamWaitEvent(ranks.other[1], event, 0));
    }
    copy(my.y, my.x, ranks.other[1]);
    racy_finish_ranks();
}

static bool is_sound;
static pthread_barrier_t barrier;

static void *run_rank(void *arg)
{
    int r = arg != NULL;
    OK(cudaSetDevice(r));
    pthread_barrier_wait(&barrier);
    fill(r ? my.x : my.y, is_sound ? ranks.stream[r] : ranks.other[r]);
    reduce_one(r, ranks.in[r], ranks.out[r], COUNT);
    copy(r ? my.z : my.pinned, r ? my.y : my.x, ranks.stream[r]);
    return NULL;
}

static void thread_per_rank(bool sound) /* a collective orders, whichever thread comes first */
{
    pthread_t thread;
    racy_start_ranks();
    is_sound = sound;
    OK(pthread_barrier_init(&barrier, NULL, RANKS));
    OK(pthread_create(&thread, NULL, run_rank, &barrier));
    run_rank(NULL);
    OK(pthread_join(thread, NULL));
    racy_finish_ranks();
}

static void first_rank_ahead(bool sound) /* rank 0 goes on before rank 1 comes */
{
    racy_start_ranks();
    reduce_one(0, ranks.in[0], ranks.out[0], COUNT);
    copy(my.y, my.x, ranks.stream[0]);
    fill(my.x, sound ? ranks.stream[1] : ranks.other[1]);
    reduce_one(1, ranks.in[1], ranks.out[1], COUNT);
    racy_finish_ranks();
}

static void word_awaited_first(bool sound) /* the wait is there before what it waits for */
{
    CUdeviceptr word = make_word();
    get(my.b, word, 1, CU_STREAM_WAIT_VALUE_GEQ);
    copy(my.y, my.x, my.b);
    if (sound) fill(my.x, my.a);
    put(my.a, word, 1);
    if (!sound) fill(my.x, my.a);
}

static void received_first(bool sound)
{
    racy_start_ranks();
    OK(ncclRecv(ranks.out[1], 4, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    copy(my.y, my.x, ranks.stream[1]);
    if (sound) fill(my.x, ranks.stream[0]);
    OK(ncclSend(ranks.in[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    if (!sound) fill(my.x, ranks.stream[0]);
    racy_finish_ranks();
}

static void reported_late(bool sound) /* order by a late wait goes on to a third stream */
{
    CUdeviceptr word = make_word();
    cudaStream_t c;
    OK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    get(my.b, word, 1, CU_STREAM_WAIT_VALUE_GEQ);
    order(my.b, c, sound);
    copy(my.y, my.x, c);
    fill(my.x, my.a);
    put(my.a, word, 1);
}

const struct racy_scenario racy_sides[] = {
    {"word-loop", word_loop, "race"},
    {"word-back-and-forth", word_back_and_forth, "race"},
    {"word-of-two", word_of_two, "race"},
    {"word-too-small", word_too_small, "race"},
    {"word-held-before", word_held_before, "race"},
    {"word-filled-again", word_filled_again, "race"},
    {"word-emptied-by-host", word_emptied_by_host, "race"},
    {"batch-chain", batch_chain, "race"},
    {"batch-of-overlaps", batch_of_overlaps, "race"},
    {"batch-captured", batch_captured, "race"},
    {"group-mixed", group_mixed, "race"},
    {"group-again", group_again, "race"},
    {"group-sends-result", group_sends_result, "race"},
    {"group-on-two-streams", group_on_two_streams, "race"},
    {"message-tells", message_reports, "race"},
    {"message-too-early", message_too_early, "race"},
    {"messages-in-turns", messages_in_turns, "race"},
    {"message-of-own-thread", message_of_own_thread, "race"},
    {"all-to-all-tells", all_to_all_reports, "race"},
    {"in-place-on-two-streams", in_place_on_two_streams, "race"},
    {"broadcast-tells", broadcast_reports, "race"},
    {"through-events", through_events, "race"},
    {"thread-per-rank", thread_per_rank, "race"},
    {"first-rank-ahead", first_rank_ahead, "race"},
    {"word-awaited-first", word_awaited_first, "race"},
    {"received-first", received_first, "race"},
    {"told-late", reported_late, "race"},
};
const size_t racy_nsides = sizeof(racy_sides) / sizeof(racy_sides[0]);
