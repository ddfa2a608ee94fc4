/* See random_program.h. */
#include "../check.h"
#include "random_writer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint32_t random_draw(struct writer *writer, uint32_t below)
{
    uint64_t word = writer->state += 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((word ^ word >> 31) >> 32) % below;
}

bool random_chance(struct writer *writer, uint32_t percent)
{
    return random_draw(writer, 100) < percent;
}

/* ---- one instruction ---- */

bool random_has_room(const struct writer *writer, int rank, int count)
{
    return writer->total[rank] + count + writer->nthreads + 2 <= MOST_INSNS;
}

struct edit_insn *random_append(struct writer *writer, int rank, int thread, enum tt_op op)
{
    assert_true(thread < MOST_THREADS && writer->ninsns[rank][thread] < MOST_INSNS);
    struct edit_insn *insn = &writer->insns[rank][thread][writer->ninsns[rank][thread]++];
    writer->total[rank]++;
    *insn = (struct edit_insn){.op = op, .nchunks = 1};
    return insn;
}

void random_add_src(struct edit_insn *insn, struct tt_operand operand)
{
    assert_true(insn->nsrcs < MOST_OPERANDS);
    insn->src[insn->nsrcs++] = operand;
}

void random_add_dst(struct edit_insn *insn, struct tt_operand operand)
{
    assert_true(insn->ndsts < MOST_OPERANDS);
    insn->dst[insn->ndsts++] = operand;
}

static bool is_power(int number)
{
    return number > 0 && !(number & (number - 1));
}

static int log2_of(int power)
{
    int log2 = 0;
    while (1 << (log2 + 1) <= power)
        log2++;
    return log2;
}

/* The place of rank `to` as `me` may name it: by number or in one of the relative ways. */
static struct tt_operand place_of(struct writer *writer, enum tt_space space, int me, int to,
                                  struct tt_gen_chunk chunk)
{
    int n = writer->set->nranks, up = (to - me + n) % n, down = (me - to + n) % n;
    switch (random_draw(writer, 8)) {
    case 0: return tt_gen_by(space, TT_PEER_SHIFT, random_chance(writer, 50) ? up : up - n, chunk);
    case 1:
        return tt_gen_by(space, TT_PEER_RING, writer->position[to] - writer->position[me], chunk);
    case 2: return tt_gen_by(space, TT_PEER_XOR, me ^ to, chunk);
    case 3:
        if (is_power(me ^ to)) return tt_gen_by(space, TT_PEER_FLIP, log2_of(me ^ to), chunk);
        if (is_power(up)) return tt_gen_by(space, TT_PEER_UP, log2_of(up), chunk);
        if (is_power(down)) return tt_gen_by(space, TT_PEER_DOWN, log2_of(down), chunk);
        break;
    case 4: /* the table of random_set_make(): the next rank */
        if (up == 1) return tt_gen_by(space, TT_PEER_TABLE, TT_TABLE_OTHER, chunk);
        break;
    default: break;
    }
    return tt_gen_at(space, to, chunk);
}

/* Chunk `number` as `me` may name it. */
static struct tt_gen_chunk chunk_of(struct writer *writer, int me, int number, int bound)
{
    int n = writer->set->nranks;
    struct tt_gen_chunk chunk = tt_gen_number(number);
    uint32_t choice = random_draw(writer, 12);
    if (choice == 0) chunk = (struct tt_gen_chunk){TT_CHUNK_ME, number - me, 0};
    if (choice == 1) chunk = (struct tt_gen_chunk){TT_CHUNK_XOR, number ^ me, 0};
    if (choice == 2 && bound == n) chunk = (struct tt_gen_chunk){TT_CHUNK_SHIFT, number - me, 0};
    if (choice == 3 && number == (me & ~1)) chunk = (struct tt_gen_chunk){TT_CHUNK_GROUP, 1, 0};
    if (choice == 3 && number == (me ^ 1)) chunk = (struct tt_gen_chunk){TT_CHUNK_SIBLING, 0, 0};
    return chunk;
}

static int chunk_bound(const struct tt_program *head, enum tt_space space)
{
    return space == TT_SPACE_IN ? tt_program_in_chunks(head) : tt_program_out_chunks(head);
}

/* A chunk of that buffer; of slots, of the larger one. */
static struct tt_gen_chunk some_chunk(struct writer *writer, int rank, enum tt_space space)
{
    const struct tt_program *head = &writer->head;
    int bound = chunk_bound(head, space == TT_SPACE_IN ? TT_SPACE_IN : TT_SPACE_OUT);
    if (space == TT_SPACE_SLOT && chunk_bound(head, TT_SPACE_IN) > bound)
        bound = chunk_bound(head, TT_SPACE_IN);
    if (bound == head->nranks && random_chance(writer, 20)) {
        enum tt_chunk by = head->nparts > 1 ? TT_CHUNK_RING : TT_CHUNK_RING_RANK;
        return (struct tt_gen_chunk){by, (int)random_draw(writer, 5) - 2, 0};
    }
    if (bound == head->nranks && random_chance(writer, 20)) return tt_gen_me();
    int number = (int)random_draw(writer, (uint32_t)bound);
    return space == TT_SPACE_SLOT ? tt_gen_number(number) : chunk_of(writer, rank, number, bound);
}

static struct tt_operand memory(struct writer *writer, int rank, bool source)
{
    enum tt_space space = source && random_chance(writer, 60) ? TT_SPACE_IN : TT_SPACE_OUT;
    if (!source && random_chance(writer, 1)) space = TT_SPACE_IN;
    if (writer->head.scratch && random_chance(writer, 25)) {
        /* read mostly what was written */
        int number = (int)random_draw(writer, (uint32_t)writer->head.scratch);
        if (source && !writer->written[rank][number]) number = 0;
        if (!source || writer->written[rank][number] || random_chance(writer, 2)) {
            writer->written[rank][number] = writer->written[rank][number] || !source;
            return tt_gen_own(TT_SPACE_SCRATCH, tt_gen_number(number));
        }
    }
    struct tt_gen_chunk chunk = some_chunk(writer, rank, space);
    if (writer->direct && random_chance(writer, 40)) {
        return place_of(writer, space, rank,
                        (int)random_draw(writer, (uint32_t)writer->set->nranks), chunk);
    }
    return tt_gen_own(space, chunk);
}

static uint8_t some_flags(struct writer *writer, bool reduce)
{
    uint8_t flags = reduce ? TT_MOVE_REDUCE : 0;
    if (random_chance(writer, 30)) flags |= TT_MOVE_PRE;
    if (random_chance(writer, 6)) flags |= TT_MOVE_POST;
    return flags;
}

/* Finish a move that may have a source: one more for a reduction, and memory destinations. */
static void fill(struct writer *writer, int rank, struct edit_insn *insn, int ndsts)
{
    if (insn->nsrcs == 0) random_add_src(insn, memory(writer, rank, true));
    bool reduce = random_chance(writer, 40);
    insn->flags = some_flags(writer, reduce);
    if (reduce && random_chance(writer, 85)) random_add_src(insn, memory(writer, rank, true));
    for (int k = 0; k < ndsts; k++)
        random_add_dst(insn, memory(writer, rank, false));
}

/* ---- transfers ---- */

static void local(struct writer *writer)
{
    int rank = (int)random_draw(writer, (uint32_t)writer->set->nranks);
    int thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    if (!random_has_room(writer, rank, 1)) return;
    fill(writer, rank, random_append(writer, rank, thread, TT_OP_MOVE),
         1 + (int)random_draw(writer, 2));
}

/* Let a thread wait for what another one of its rank was given before: that ends. */
static void order(struct writer *writer)
{
    int rank = (int)random_draw(writer, (uint32_t)writer->set->nranks);
    int thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    int other = (int)random_draw(writer, (uint32_t)writer->nthreads);
    int count = writer->ninsns[rank][other];
    if (thread == other || count == 0 || !random_has_room(writer, rank, 1)) return;
    int at = random_chance(writer, 70) ? count - 1 : (int)random_draw(writer, (uint32_t)count);
    bool looping = false;
    for (int k = 0; k < at; k++) {
        enum tt_op op = writer->insns[rank][other][k].op;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
    }
    if (looping || writer->insns[rank][other][at].op != TT_OP_MOVE) return;
    struct edit_insn *await = random_append(writer, rank, thread, TT_OP_AWAIT);
    await->thread = other;
    await->arg = at;
}

static int owner(struct writer *writer, int *end)
{
    if (*end < 0) *end = (int)random_draw(writer, (uint32_t)writer->nthreads);
    return *end;
}

/* Begin both ends of a message on some channel; its slots are added last, by end_message(). */
struct ends {
    int from, to, channel;
    struct edit_insn *post, *take;
};

static bool begin_message(struct writer *writer, struct ends *ends)
{
    int n = writer->set->nranks;
    ends->from = (int)random_draw(writer, (uint32_t)n);
    ends->to = (ends->from + 1 + (int)random_draw(writer, (uint32_t)n - 1)) % n;
    ends->channel = writer->head.nchannels > 1 && random_chance(writer, 50);
    if (!random_has_room(writer, ends->from, 1) || !random_has_room(writer, ends->to, 1))
        return false;
    int *sender = ends->channel ? &writer->second_sender[ends->from][ends->to]
                                : &writer->sender[ends->from][ends->to];
    int *receiver = ends->channel ? &writer->second_receiver[ends->to][ends->from]
                                  : &writer->receiver[ends->to][ends->from];
    ends->post = random_append(writer, ends->from, owner(writer, sender), TT_OP_MOVE);
    ends->take = random_append(writer, ends->to, owner(writer, receiver), TT_OP_MOVE);
    return true;
}

static struct tt_operand end_of(struct writer *writer, const struct ends *ends, bool sends,
                                struct tt_gen_chunk chunk)
{
    struct tt_operand slot = place_of(writer, TT_SPACE_SLOT, sends ? ends->from : ends->to,
                                      sends ? ends->to : ends->from, chunk);
    slot.channel = (uint16_t)ends->channel;
    return slot;
}

static int larger_bound(const struct tt_program *head)
{
    int in = chunk_bound(head, TT_SPACE_IN), out = chunk_bound(head, TT_SPACE_OUT);
    return in > out ? in : out;
}

/* A message of several chunks, named by number. */
static void several(struct writer *writer)
{
    const struct tt_program *head = &writer->head;
    int bound = larger_bound(head);
    struct ends ends;
    if (bound < 2 || !begin_message(writer, &ends)) return;
    struct edit_insn *post = ends.post, *take = ends.take;
    int nchunks = 1 + (int)random_draw(writer, (uint32_t)(bound < 4 ? bound : 4));
    int first = (int)random_draw(writer, (uint32_t)(bound - nchunks + 1));
    struct tt_gen_chunk chunk = tt_gen_number(first);
    enum tt_space source = tt_program_in_chunks(head) == bound ? TT_SPACE_IN : TT_SPACE_OUT;
    enum tt_space kept = tt_program_out_chunks(head) == bound ? TT_SPACE_OUT : TT_SPACE_SCRATCH;
    post->nchunks = take->nchunks = nchunks;
    random_add_src(post, tt_gen_own(source, chunk));
    random_add_dst(post, end_of(writer, &ends, true, chunk));
    random_add_src(take, end_of(writer, &ends, false, chunk));
    if (kept == TT_SPACE_OUT && random_chance(writer, 40)) {
        take->flags = some_flags(writer, true);
        random_add_src(take, tt_gen_own(kept, chunk));
    }
    if (kept == TT_SPACE_OUT) {
        random_add_dst(take, tt_gen_own(kept, chunk));
    } else if (nchunks <= head->scratch) {
        random_add_dst(take, tt_gen_own(kept, tt_gen_number(head->scratch - nchunks)));
    }
}

static void message(struct writer *writer)
{
    struct ends ends;
    if (!begin_message(writer, &ends)) return;
    struct tt_gen_chunk chunk = some_chunk(writer, ends.from, TT_SPACE_SLOT);
    if (!random_chance(writer, 3))
        fill(writer, ends.from, ends.post, random_chance(writer, 30) ? 1 : 0);
    random_add_dst(ends.post, end_of(writer, &ends, true, chunk));
    random_add_src(ends.take, end_of(writer, &ends, false, chunk));
    if (ends.post->nsrcs > 0 && random_chance(writer, 95)) fill(writer, ends.to, ends.take, 1);
}

/* A message that goes on: received, reduced or not, kept or not, and passed on in one move. */
static void relay(struct writer *writer)
{
    int n = writer->set->nranks;
    int length = 2 + (int)random_draw(writer, (uint32_t)n - 1);
    int at = (int)random_draw(writer, (uint32_t)n);
    struct tt_gen_chunk chunk = some_chunk(writer, at, TT_SPACE_SLOT);
    if (n < 3) return;
    for (int k = 0; k < length; k++) {
        if (!random_has_room(writer, (at + k) % n, 2)) return;
    }
    for (int k = 0; k < length; k++) {
        int rank = (at + k) % n, prev = (rank + n - 1) % n, next = (rank + 1) % n;
        int thread = k ? owner(writer, &writer->receiver[rank][prev])
                       : owner(writer, &writer->sender[rank][next]);
        bool ends = k == length - 1;
        if (!ends && writer->sender[rank][next] < 0) writer->sender[rank][next] = thread;
        struct edit_insn *insn = random_append(writer, rank, thread, TT_OP_MOVE);
        if (k) random_add_src(insn, place_of(writer, TT_SPACE_SLOT, rank, prev, chunk));
        fill(writer, rank, insn, ends || random_chance(writer, 40) ? 1 : 0);
        if (!ends) random_add_dst(insn, place_of(writer, TT_SPACE_SLOT, rank, next, chunk));
    }
}

/* May the thread send to and receive from that peer? */
static bool may_use(const struct writer *writer, int rank, int peer, int thread)
{
    int sender = writer->sender[rank][peer], receiver = writer->receiver[rank][peer];
    return (sender < 0 || sender == thread) && (receiver < 0 || receiver == thread);
}

bool random_may_spread(const struct writer *writer, int thread)
{
    int n = writer->set->nranks;
    for (int rank = 0; rank < n; rank++) {
        if (!random_has_room(writer, rank, 2)) return false;
        for (int peer = 0; peer < n; peer++) {
            if (!may_use(writer, rank, peer, thread)) return false;
        }
    }
    return true;
}

void random_own_all_edges(struct writer *writer, int thread)
{
    for (int rank = 0; rank < RANDOM_RANKS; rank++) {
        for (int peer = 0; peer < RANDOM_RANKS; peer++)
            writer->sender[rank][peer] = writer->receiver[rank][peer] = thread;
    }
}

enum spread { FROM_ONE, TO_ONE, FROM_ALL };

static void spread_take(struct writer *writer, enum spread kind, int rank, struct edit_insn *take,
                        struct tt_gen_chunk chunk, int root)
{
    if (kind == FROM_ONE) {
        random_add_src(take, tt_gen_at(TT_SPACE_SLOT, root, chunk));
        fill(writer, rank, take, 1);
        return;
    }
    enum tt_peer set = random_chance(writer, 50) ? TT_PEER_EACH : TT_PEER_OTHERS;
    random_add_src(take, tt_gen_set(TT_SPACE_SLOT, set, chunk));
    if (writer->head.out_blocks && random_chance(writer, 50)) {
        random_add_dst(take, tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
    } else {
        take->flags = some_flags(writer, true);
        random_add_dst(take, memory(writer, rank, false));
    }
}

/* One rank to all others through slots, or all to one, or all to all. */
static void spread(struct writer *writer)
{
    int n = writer->set->nranks;
    enum spread kind = (enum spread)random_draw(writer, 3);
    int root = (int)random_draw(writer, (uint32_t)n);
    int thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    struct tt_gen_chunk chunk = some_chunk(writer, root, TT_SPACE_SLOT);
    if (chunk.by == TT_CHUNK_RING || chunk.by == TT_CHUNK_RING_RANK) chunk = tt_gen_number(0);
    if (!random_may_spread(writer, thread)) return;
    for (int rank = 0; rank < n; rank++) {
        if (kind == TO_ONE ? rank == root : kind == FROM_ONE && rank != root) continue;
        struct edit_insn *post = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(post, memory(writer, rank, true));
        post->flags = random_chance(writer, 30) ? TT_MOVE_PRE : 0;
        random_add_dst(post, kind == TO_ONE ? tt_gen_at(TT_SPACE_SLOT, root, chunk)
                                            : tt_gen_set(TT_SPACE_SLOT, TT_PEER_OTHERS, chunk));
    }
    for (int rank = 0; rank < n; rank++) {
        if (kind == FROM_ONE ? rank == root : kind == TO_ONE && rank != root) continue;
        struct edit_insn *take = random_append(writer, rank, thread, TT_OP_MOVE);
        spread_take(writer, kind, rank, take, chunk, root);
    }
    random_own_all_edges(writer, thread);
}

static bool may_go_round(const struct writer *writer, int thread)
{
    int n = writer->set->nranks;
    for (int pos = 0; pos < n; pos++) {
        int rank = writer->set->ring[pos], next = writer->set->ring[(pos + 1) % n],
            prev = writer->set->ring[(pos + n - 1) % n];
        bool free = may_use(writer, rank, next, thread) && may_use(writer, rank, prev, thread);
        if (!free || !random_has_room(writer, rank, 5)) return false;
    }
    return true;
}

/* Every rank passes something to the next one, `times` times over: a ring's loop. */
static void round_about(struct writer *writer)
{
    int n = writer->set->nranks, thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    const struct tt_program *model = &writer->head;
    int times = 1 + (int)random_draw(writer, (uint32_t)n);
    bool rings = chunk_bound(model, TT_SPACE_OUT) == n && random_chance(writer, 70);
    enum tt_chunk by = model->nparts > 1 ? TT_CHUNK_RING : TT_CHUNK_RING_RANK;
    if (!may_go_round(writer, thread)) return;
    bool keep = random_chance(writer, 60), reduces = random_chance(writer, 50);
    for (int pos = 0; pos < n; pos++) {
        int rank = writer->set->ring[pos], next = writer->set->ring[(pos + 1) % n],
            prev = writer->set->ring[(pos + n - 1) % n];
        struct tt_gen_chunk chunk = rings ? (struct tt_gen_chunk){by, -1, -1} : tt_gen_number(0);
        struct tt_gen_chunk first = rings ? (struct tt_gen_chunk){by, 0, 0} : tt_gen_number(0);
        struct tt_gen_chunk last =
            rings ? (struct tt_gen_chunk){by, -1 - times, 0} : tt_gen_number(0);
        enum tt_space own = model->in_blocks || model->nparts > 1 ? TT_SPACE_IN : TT_SPACE_OUT;
        writer->sender[rank][next] = writer->receiver[rank][prev] = thread;
        struct edit_insn *send = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(send, tt_gen_own(own, first));
        random_add_dst(send, place_of(writer, TT_SPACE_SLOT, rank, next, first));
        random_append(writer, rank, thread, TT_OP_LOOP)->arg = times;
        struct edit_insn *pass = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(pass, place_of(writer, TT_SPACE_SLOT, rank, prev, chunk));
        if (reduces) {
            pass->flags = TT_MOVE_REDUCE | TT_MOVE_PRE;
            random_add_src(pass, tt_gen_own(own, chunk));
        }
        if (keep) random_add_dst(pass, tt_gen_own(TT_SPACE_OUT, chunk));
        random_add_dst(pass, place_of(writer, TT_SPACE_SLOT, rank, next, chunk));
        random_append(writer, rank, thread, TT_OP_NEXT);
        struct edit_insn *take = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(take, tt_gen_at(TT_SPACE_SLOT, prev, last));
        random_add_dst(take, tt_gen_own(TT_SPACE_OUT, last));
    }
}

/* ---- the set ---- */

static void make_head(struct writer *writer)
{
    struct random_set *set = writer->set;
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER,
                                         TT_FUNC_REDUCESCATTER, TT_FUNC_ALLTOALL};
    bool split = random_chance(writer, 50);
    enum tt_func func = split ? TT_FUNC_ALLREDUCE : funcs[random_draw(writer, 4)];
    int n = set->nranks;
    int nparts = random_chance(writer, 50) ? 1 + (int)random_draw(writer, 12) : n;
    if (!split) nparts = random_chance(writer, 30) ? 1 + (int)random_draw(writer, 3) : 1;
    for (int k = 0; k < n; k++)
        set->ring[k] = (int)(((unsigned int)k * (n % 2 ? 2u : 1u)) % (unsigned int)n);
    for (int k = 0; k < n; k++)
        writer->position[set->ring[k]] = k;
    writer->head = (struct tt_program){
        .magic = TT_PROGRAM_MAGIC,
        .func = (int32_t)func,
        .algo = TT_ALGO_RING,
        .proto = TT_PROTO_SIMPLE,
        .nranks = n,
        .root = -1,
        .nparts = nparts,
        .in_blocks = func == TT_FUNC_REDUCESCATTER || func == TT_FUNC_ALLTOALL,
        .out_blocks = func == TT_FUNC_ALLGATHER || func == TT_FUNC_ALLTOALL,
        .whole_window = split && random_chance(writer, 30),
        .nchannels = random_chance(writer, 25) ? 2 : 1,
        .scratch = random_chance(writer, 40) ? 1 + (int)random_draw(writer, 5) : 0,
    };
}

static void append_barrier(struct writer *writer, enum tt_op op)
{
    writer->direct = op == TT_OP_ENTER;
    writer->head.needs_barrier = true;
    for (int rank = 0; rank < writer->set->nranks; rank++) {
        struct edit_insn *insn = random_append(writer, rank, 0, op);
        insn->arg = -1;
        if (!writer->wide || writer->uniform || !random_chance(writer, 5)) continue;
        if (op == TT_OP_LEAVE) insn->flags = TT_MOVE_NO_WAIT;
        if (op == TT_OP_ENTER) insn->arg = (int)random_draw(writer, (uint32_t)writer->set->nranks);
    }
}

static void change(struct writer *writer)
{
    int rank = (int)random_draw(writer, (uint32_t)writer->set->nranks);
    int thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    struct edit_insn *insns = writer->insns[rank][thread];
    int count = writer->ninsns[rank][thread];
    if (count == 0) return;
    int at = (int)random_draw(writer, (uint32_t)count),
        other = (int)random_draw(writer, (uint32_t)count);
    struct edit_insn *insn = &insns[at];
    struct edit_insn before = *insn;
    struct tt_operand *operand = insn->nsrcs ? &insn->src[0] : &insn->dst[0];
    switch (random_draw(writer, 7)) {
    case 0:
        if (insn->op != TT_OP_MOVE || insns[other].op != TT_OP_MOVE) break;
        *insn = insns[other];
        insns[other] = before;
        break;
    case 1: insn->flags ^= (uint8_t)(1u << random_draw(writer, 3)); break;
    case 2: operand->chunk = (int)random_draw(writer, 4); break;
    case 3:
        if (operand->peer == TT_PEER_RANK)
            operand->peer_number = (int)random_draw(writer, (uint32_t)writer->set->nranks);
        break;
    case 4:
        if (insn->op == TT_OP_LOOP) insn->arg++;
        break;
    case 5:
        if (insn->op == TT_OP_MOVE && insn->ndsts > 1) insn->ndsts--;
        break;
    default:
        if (insn->op != TT_OP_MOVE) break;
        memmove(insn, insn + 1, (size_t)(count - at - 1) * sizeof(*insn));
        writer->ninsns[rank][thread]--;
        writer->total[rank]--;
        break;
    }
}

static int threads_of(const struct writer *writer, int rank)
{
    return writer->own ? tt_program_nthreads(writer->own, rank) : writer->nthreads;
}

/* The first rank whose text this rank runs. */
static int shared_text(const struct writer *writer, int rank)
{
    for (int other = 0; writer->wide && other < rank; other++) {
        bool same_threads = threads_of(writer, other) == threads_of(writer, rank);
        if (same_threads && random_wide_same(writer, rank, other)) return other;
    }
    return rank;
}

static void write_thread(const struct writer *writer, struct tt_builder *builder, int rank, int t)
{
    tt_build_thread(builder);
    for (int k = 0; k < writer->ninsns[rank][t]; k++) {
        const struct edit_insn *insn = &writer->insns[rank][t][k];
        if (insn->op == TT_OP_AWAIT) {
            tt_build_await(builder, insn->thread, insn->arg);
        } else {
            tt_build_insn(builder, insn->op, insn->flags, insn->arg);
        }
        if (insn->nchunks > 1) tt_build_range(builder, insn->nchunks);
        for (int j = 0; j < insn->nsrcs; j++)
            tt_build_src(builder, insn->src[j]);
        for (int j = 0; j < insn->ndsts; j++)
            tt_build_dst(builder, insn->dst[j]);
    }
    tt_build_stop(builder);
}

/* Each rank has a text of its own, but where ranks that do the same may share one. */
static void assemble(struct writer *writer)
{
    struct random_set *set = writer->set;
    struct tt_builder builder;
    int32_t next[RANDOM_RANKS];
    int texts[RANDOM_RANKS];
    tt_build_begin(&builder, set->nranks);
    builder.head = writer->head;
    for (int rank = 0; rank < set->nranks; rank++)
        next[rank] = (rank + 1) % set->nranks;
    tt_build_table(&builder, TT_TABLE_RING, set->ring);
    tt_build_table(&builder, TT_TABLE_POSITION, writer->position);
    tt_build_table(&builder, TT_TABLE_OTHER, next);
    for (int table = TT_TABLE_PARENT; writer->own && table <= TT_TABLE_CHILD2; table++) {
        const int32_t *values = tt_program_table(writer->own, (enum tt_table)table);
        if (values) tt_build_table(&builder, (enum tt_table)table, values);
    }
    for (int rank = 0; rank < set->nranks; rank++) {
        int nthreads = threads_of(writer, rank), like = shared_text(writer, rank);
        texts[rank] = like < rank ? texts[like] : tt_build_text(&builder);
        tt_build_assign(&builder, rank, texts[rank]);
        if (like < rank) continue;
        for (int t = 0; t < nthreads; t++)
            write_thread(writer, &builder, rank, t);
    }
    set->block = NULL; /* what was changed may not be well-formed */
    (void)tt_build_end(&builder, &set->block);
}

static void write_at_random(struct writer *writer)
{
    static void (*const kinds[])(struct writer *) = {
        local, message, message, message, relay, spread, round_about, order, order, several};
    int count = 1 + (int)random_draw(writer, 10);
    int enter = random_chance(writer, 25) ? (int)random_draw(writer, (uint32_t)count) : -1;
    for (int k = 0; k < count; k++) {
        if (k == enter) append_barrier(writer, TT_OP_ENTER);
        if (writer->uniform || (writer->wide && random_chance(writer, 40))) {
            random_wide_piece(writer);
            continue;
        }
        kinds[random_draw(writer, sizeof(kinds) / sizeof(kinds[0]))](writer);
    }
    if (enter >= 0) append_barrier(writer, TT_OP_LEAVE);
}

void random_set_make(uint64_t seed, struct random_set *set)
{
    static struct writer writer; /* large */
    memset(&writer, 0, sizeof(writer));
    writer.set = set;
    writer.state = seed * 0x2545f4914f6cdd1dull + 1;
    writer.wide = seed % 4 == 0;
    writer.uniform = seed % 16 == 0;
    memset(set, 0, sizeof(*set));
    memset(writer.sender, -1, sizeof(writer.sender));
    memset(writer.receiver, -1, sizeof(writer.receiver));
    memset(writer.second_sender, -1, sizeof(writer.second_sender));
    memset(writer.second_receiver, -1, sizeof(writer.second_receiver));
    set->nranks =
        2 + (int)(random_chance(&writer, 80) ? random_draw(&writer, 4) : random_draw(&writer, 8));
    writer.nthreads = random_chance(&writer, 60) ? 1 : 1 + (int)random_draw(&writer, 3);
    make_head(&writer);
    if (random_chance(&writer, 15)) {
        random_write_own(&writer);
    } else {
        write_at_random(&writer);
        if (writer.wide && !writer.uniform) random_wide_rename(&writer);
    }
    set->changed = random_chance(&writer, 40);
    for (int k = 0; set->changed && k < 1 + (int)(seed % 3); k++)
        change(&writer);
    assemble(&writer);
    free((void *)(uintptr_t)writer.own);
}
