/* See random_program.h. */
#include "random_program.h"

#include "program/gen/gen.h"

#include <stdint.h>
#include <string.h>

struct writer {
    struct random_set *set;
    uint64_t state;
    int nthreads;                             /* of every rank */
    int sender[RANDOM_RANKS][RANDOM_RANKS];   /* thread that owns the end; -1: nobody yet */
    int receiver[RANDOM_RANKS][RANDOM_RANKS]; /* [rank][peer] both */
    struct tt_insn insns[RANDOM_RANKS][TT_MAX_THREADS][TT_MAX_INSNS];
    int ninsns[RANDOM_RANKS][TT_MAX_THREADS];
    int total[RANDOM_RANKS];
    bool direct; /* between ENTER and LEAVE */
};

static uint32_t draw(struct writer *writer, uint32_t below)
{
    uint64_t word = writer->state += 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((word ^ word >> 31) >> 32) % below;
}

static bool chance(struct writer *writer, uint32_t percent)
{
    return draw(writer, 100) < percent;
}

/* ---- one instruction ---- */

static bool has_room(const struct writer *writer, int rank, int count)
{
    return writer->total[rank] + count + writer->nthreads + 2 <= TT_MAX_INSNS;
}

static struct tt_insn *append(struct writer *writer, int rank, int thread, enum tt_op op)
{
    struct tt_insn *insn = &writer->insns[rank][thread][writer->ninsns[rank][thread]++];
    writer->total[rank]++;
    *insn = (struct tt_insn){.op = (uint8_t)op};
    return insn;
}

static int chunk_bound(const struct tt_program *program, enum tt_space space)
{
    if (program->geometry == TT_GEOMETRY_SPLIT) return program->nchunks;
    bool blocks = space == TT_SPACE_IN ? program->in_blocks : program->out_blocks;
    return blocks ? program->nranks : 1;
}

/* A chunk of that buffer; of slots, of the larger one. */
static struct tt_gen_chunk some_chunk(struct writer *writer, int rank, enum tt_space space)
{
    const struct tt_program *program = &writer->set->programs[rank];
    int bound = chunk_bound(program, space == TT_SPACE_IN ? TT_SPACE_IN : TT_SPACE_OUT);
    if (space == TT_SPACE_SLOT && chunk_bound(program, TT_SPACE_IN) > bound)
        bound = chunk_bound(program, TT_SPACE_IN);
    if (bound == program->nranks && chance(writer, 20)) {
        enum tt_chunk by =
            program->geometry == TT_GEOMETRY_SPLIT ? TT_CHUNK_RING : TT_CHUNK_RING_RANK;
        return (struct tt_gen_chunk){by, (int)draw(writer, 5) - 2, 0};
    }
    if (bound == program->nranks && chance(writer, 20)) return tt_gen_me();
    return tt_gen_number((int)draw(writer, (uint32_t)bound));
}

static struct tt_operand memory(struct writer *writer, int rank, bool source)
{
    enum tt_space space = source && chance(writer, 60) ? TT_SPACE_IN : TT_SPACE_OUT;
    if (!source && chance(writer, 1)) space = TT_SPACE_IN;
    struct tt_gen_chunk chunk = some_chunk(writer, rank, space);
    if (writer->direct && chance(writer, 40)) {
        return tt_gen_at(space, (int)draw(writer, (uint32_t)writer->set->nranks), chunk);
    }
    return tt_gen_own(space, chunk);
}

static uint8_t some_flags(struct writer *writer, bool fold)
{
    uint8_t flags = fold ? TT_MOVE_FOLD : 0;
    if (chance(writer, 30)) flags |= TT_MOVE_PRE;
    if (chance(writer, 6)) flags |= TT_MOVE_POST;
    return flags;
}

/* Finish a move that may have a source: one more for a fold, and memory destinations. */
static void fill(struct writer *writer, int rank, struct tt_insn *insn, int ndsts)
{
    if (insn->nsrcs == 0) tt_gen_src(insn, memory(writer, rank, true));
    bool fold = chance(writer, 40);
    insn->flags = some_flags(writer, fold);
    if (fold && chance(writer, 85)) tt_gen_src(insn, memory(writer, rank, true));
    for (int k = 0; k < ndsts; k++)
        tt_gen_dst(insn, memory(writer, rank, false));
}

/* ---- transfers ---- */

static void local(struct writer *writer)
{
    int rank = (int)draw(writer, (uint32_t)writer->set->nranks);
    int thread = (int)draw(writer, (uint32_t)writer->nthreads);
    if (!has_room(writer, rank, 1)) return;
    fill(writer, rank, append(writer, rank, thread, TT_OP_MOVE), 1 + (int)draw(writer, 2));
}

static int owner(struct writer *writer, int *end)
{
    if (*end < 0) *end = (int)draw(writer, (uint32_t)writer->nthreads);
    return *end;
}

static void message(struct writer *writer)
{
    int n = writer->set->nranks;
    int from = (int)draw(writer, (uint32_t)n);
    int to = (from + 1 + (int)draw(writer, (uint32_t)n - 1)) % n;
    if (!has_room(writer, from, 1) || !has_room(writer, to, 1)) return;
    struct tt_gen_chunk chunk = some_chunk(writer, from, TT_SPACE_SLOT);
    struct tt_insn *post =
        append(writer, from, owner(writer, &writer->sender[from][to]), TT_OP_MOVE);
    if (!chance(writer, 3)) fill(writer, from, post, chance(writer, 30) ? 1 : 0);
    tt_gen_dst(post, tt_gen_at(TT_SPACE_SLOT, to, chunk));
    struct tt_insn *take =
        append(writer, to, owner(writer, &writer->receiver[to][from]), TT_OP_MOVE);
    tt_gen_src(take, tt_gen_at(TT_SPACE_SLOT, from, chunk));
    if (post->nsrcs > 0 && chance(writer, 95)) fill(writer, to, take, 1);
}

/* A message that goes on: received, folded or not, kept or not, and passed on in one move. */
static void relay(struct writer *writer)
{
    int n = writer->set->nranks;
    int length = 2 + (int)draw(writer, (uint32_t)n - 1);
    int at = (int)draw(writer, (uint32_t)n);
    struct tt_gen_chunk chunk = some_chunk(writer, at, TT_SPACE_SLOT);
    if (n < 3) return;
    for (int k = 0; k < length; k++) {
        if (!has_room(writer, (at + k) % n, 2)) return;
    }
    for (int k = 0; k < length; k++) {
        int rank = (at + k) % n, prev = (rank + n - 1) % n, next = (rank + 1) % n;
        int thread = k ? owner(writer, &writer->receiver[rank][prev])
                       : owner(writer, &writer->sender[rank][next]);
        bool ends = k == length - 1;
        if (!ends && writer->sender[rank][next] < 0) writer->sender[rank][next] = thread;
        struct tt_insn *insn = append(writer, rank, thread, TT_OP_MOVE);
        if (k) tt_gen_src(insn, tt_gen_at(TT_SPACE_SLOT, prev, chunk));
        fill(writer, rank, insn, ends || chance(writer, 40) ? 1 : 0);
        if (!ends) tt_gen_dst(insn, tt_gen_at(TT_SPACE_SLOT, next, chunk));
    }
}

/* May the thread send to and receive from that peer? */
static bool may_use(const struct writer *writer, int rank, int peer, int thread)
{
    int sender = writer->sender[rank][peer], receiver = writer->receiver[rank][peer];
    return (sender < 0 || sender == thread) && (receiver < 0 || receiver == thread);
}

static bool may_spread(const struct writer *writer, int thread)
{
    int n = writer->set->nranks;
    for (int rank = 0; rank < n; rank++) {
        if (!has_room(writer, rank, 2)) return false;
        for (int peer = 0; peer < n; peer++) {
            if (!may_use(writer, rank, peer, thread)) return false;
        }
    }
    return true;
}

static void own_all_edges(struct writer *writer, int thread)
{
    for (int rank = 0; rank < RANDOM_RANKS; rank++) {
        for (int peer = 0; peer < RANDOM_RANKS; peer++)
            writer->sender[rank][peer] = writer->receiver[rank][peer] = thread;
    }
}

enum spread { FROM_ONE, TO_ONE, FROM_ALL };

static void spread_take(struct writer *writer, enum spread kind, int rank, struct tt_insn *take,
                        struct tt_gen_chunk chunk, int root)
{
    if (kind == FROM_ONE) {
        tt_gen_src(take, tt_gen_at(TT_SPACE_SLOT, root, chunk));
        fill(writer, rank, take, 1);
        return;
    }
    enum tt_peer set = chance(writer, 50) ? TT_PEER_EACH : TT_PEER_OTHERS;
    tt_gen_src(take, tt_gen_set(TT_SPACE_SLOT, set, chunk));
    if (writer->set->programs[rank].out_blocks && chance(writer, 50)) {
        tt_gen_dst(take, tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
    } else {
        take->flags = some_flags(writer, true);
        tt_gen_dst(take, memory(writer, rank, false));
    }
}

/* One rank to all others through slots, or all to one, or all to all. */
static void spread(struct writer *writer)
{
    int n = writer->set->nranks;
    enum spread kind = (enum spread)draw(writer, 3);
    int root = (int)draw(writer, (uint32_t)n);
    int thread = (int)draw(writer, (uint32_t)writer->nthreads);
    struct tt_gen_chunk chunk = some_chunk(writer, root, TT_SPACE_SLOT);
    if (chunk.by == TT_CHUNK_RING || chunk.by == TT_CHUNK_RING_RANK) chunk = tt_gen_number(0);
    if (!may_spread(writer, thread)) return;
    for (int rank = 0; rank < n; rank++) {
        if (kind == TO_ONE ? rank == root : kind == FROM_ONE && rank != root) continue;
        struct tt_insn *post = append(writer, rank, thread, TT_OP_MOVE);
        tt_gen_src(post, memory(writer, rank, true));
        post->flags = chance(writer, 30) ? TT_MOVE_PRE : 0;
        tt_gen_dst(post, kind == TO_ONE ? tt_gen_at(TT_SPACE_SLOT, root, chunk)
                                        : tt_gen_set(TT_SPACE_SLOT, TT_PEER_OTHERS, chunk));
    }
    for (int rank = 0; rank < n; rank++) {
        if (kind == FROM_ONE ? rank == root : kind == TO_ONE && rank != root) continue;
        struct tt_insn *take = append(writer, rank, thread, TT_OP_MOVE);
        spread_take(writer, kind, rank, take, chunk, root);
    }
    own_all_edges(writer, thread);
}

static bool may_go_round(const struct writer *writer, int thread)
{
    int n = writer->set->nranks;
    for (int pos = 0; pos < n; pos++) {
        int rank = writer->set->ring[pos], next = writer->set->ring[(pos + 1) % n],
            prev = writer->set->ring[(pos + n - 1) % n];
        bool free = may_use(writer, rank, next, thread) && may_use(writer, rank, prev, thread);
        if (!free || !has_room(writer, rank, 5)) return false;
    }
    return true;
}

/* Every rank passes something to the next one, `times` times over: a ring's loop. */
static void round_about(struct writer *writer)
{
    int n = writer->set->nranks, thread = (int)draw(writer, (uint32_t)writer->nthreads);
    const struct tt_program *model = &writer->set->programs[0];
    int times = 1 + (int)draw(writer, (uint32_t)n);
    bool rings = chunk_bound(model, TT_SPACE_OUT) == n && chance(writer, 70);
    enum tt_chunk by = model->geometry == TT_GEOMETRY_SPLIT ? TT_CHUNK_RING : TT_CHUNK_RING_RANK;
    if (!may_go_round(writer, thread)) return;
    bool keep = chance(writer, 60), folds = chance(writer, 50);
    for (int pos = 0; pos < n; pos++) {
        int rank = writer->set->ring[pos], next = writer->set->ring[(pos + 1) % n],
            prev = writer->set->ring[(pos + n - 1) % n];
        struct tt_gen_chunk chunk = rings ? (struct tt_gen_chunk){by, -1, -1} : tt_gen_number(0);
        struct tt_gen_chunk first = rings ? (struct tt_gen_chunk){by, 0, 0} : tt_gen_number(0);
        struct tt_gen_chunk last =
            rings ? (struct tt_gen_chunk){by, -1 - times, 0} : tt_gen_number(0);
        enum tt_space own =
            model->in_blocks || model->geometry == TT_GEOMETRY_SPLIT ? TT_SPACE_IN : TT_SPACE_OUT;
        writer->sender[rank][next] = writer->receiver[rank][prev] = thread;
        struct tt_insn *send = append(writer, rank, thread, TT_OP_MOVE);
        tt_gen_src(send, tt_gen_own(own, first));
        tt_gen_dst(send, tt_gen_at(TT_SPACE_SLOT, next, first));
        append(writer, rank, thread, TT_OP_LOOP)->arg = times;
        struct tt_insn *pass = append(writer, rank, thread, TT_OP_MOVE);
        tt_gen_src(pass, tt_gen_at(TT_SPACE_SLOT, prev, chunk));
        if (folds) {
            pass->flags = TT_MOVE_FOLD | TT_MOVE_PRE;
            tt_gen_src(pass, tt_gen_own(own, chunk));
        }
        if (keep) tt_gen_dst(pass, tt_gen_own(TT_SPACE_OUT, chunk));
        tt_gen_dst(pass, tt_gen_at(TT_SPACE_SLOT, next, chunk));
        append(writer, rank, thread, TT_OP_NEXT);
        struct tt_insn *take = append(writer, rank, thread, TT_OP_MOVE);
        tt_gen_src(take, tt_gen_at(TT_SPACE_SLOT, prev, last));
        tt_gen_dst(take, tt_gen_own(TT_SPACE_OUT, last));
    }
}

/* ---- the set ---- */

static void make_heads(struct writer *writer)
{
    struct random_set *set = writer->set;
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER,
                                         TT_FUNC_REDUCESCATTER, TT_FUNC_ALLTOALL};
    bool split = chance(writer, 50);
    enum tt_func func = split ? TT_FUNC_ALLREDUCE : funcs[draw(writer, 4)];
    int nchunks = split && chance(writer, 50) ? 1 + (int)draw(writer, 12) : set->nranks;
    bool whole = split && chance(writer, 30);
    int n = set->nranks;
    for (int k = 0; k < n; k++)
        set->ring[k] = (int)(((unsigned int)k * (n % 2 ? 2u : 1u)) % (unsigned int)n);
    for (int pos = 0; pos < n; pos++) {
        int rank = set->ring[pos];
        set->programs[rank] = (struct tt_program){
            .func = func,
            .algo = TT_ALGO_RING,
            .proto = TT_PROTO_SIMPLE,
            .geometry = split ? TT_GEOMETRY_SPLIT : TT_GEOMETRY_BLOCKS,
            .nranks = n,
            .rank = rank,
            .root = -1,
            .nchunks = split                       ? nchunks
                       : func == TT_FUNC_ALLREDUCE ? 1
                                                   : n,
            .in_blocks = func == TT_FUNC_REDUCESCATTER || func == TT_FUNC_ALLTOALL,
            .out_blocks = func == TT_FUNC_ALLGATHER || func == TT_FUNC_ALLTOALL,
            .whole_window = whole,
            .ring_pos = pos,
            .ring_rank = set->ring,
        };
    }
}

static void everybody(struct writer *writer, enum tt_op op)
{
    writer->direct = op == TT_OP_ENTER;
    for (int rank = 0; rank < writer->set->nranks; rank++) {
        append(writer, rank, 0, op)->arg = -1;
        writer->set->programs[rank].needs_board = true;
    }
}

static void change(struct writer *writer)
{
    int rank = (int)draw(writer, (uint32_t)writer->set->nranks);
    int thread = (int)draw(writer, (uint32_t)writer->nthreads);
    struct tt_insn *insns = writer->insns[rank][thread];
    int count = writer->ninsns[rank][thread];
    if (count == 0) return;
    int at = (int)draw(writer, (uint32_t)count), other = (int)draw(writer, (uint32_t)count);
    struct tt_insn *insn = &insns[at];
    struct tt_insn before = *insn;
    struct tt_operand *operand = insn->nsrcs ? &insn->src[0] : &insn->dst[0];
    switch (draw(writer, 7)) {
    case 0:
        if (insn->op != TT_OP_MOVE || insns[other].op != TT_OP_MOVE) break;
        *insn = insns[other];
        insns[other] = before;
        break;
    case 1: insn->flags ^= (uint8_t)(1u << draw(writer, 3)); break;
    case 2: operand->chunk = (int)draw(writer, 4); break;
    case 3: operand->peer_rank = (int)draw(writer, (uint32_t)writer->set->nranks); break;
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

static void assemble(struct writer *writer)
{
    for (int rank = 0; rank < writer->set->nranks; rank++) {
        struct tt_program *program = &writer->set->programs[rank];
        for (int t = 0; t < writer->nthreads; t++) {
            tt_gen_thread(program);
            for (int k = 0; k < writer->ninsns[rank][t]; k++)
                program->insns[program->ninsns++] = writer->insns[rank][t][k];
            tt_gen_end(program);
        }
        tt_program_find_refs(program);
    }
}

/* One of the library's own, its instructions spread out for change(). */
static void generate(struct writer *writer)
{
    static const struct {
        enum tt_func func;
        enum tt_algo algo;
        enum tt_proto proto;
    } rows[] = {
        {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE},
        {TT_FUNC_ALLREDUCE, TT_ALGO_TREE, TT_PROTO_SIMPLE},
        {TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL},
        {TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
        {TT_FUNC_ALLGATHER, TT_ALGO_RING, TT_PROTO_SIMPLE},
        {TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, TT_PROTO_LL},
        {TT_FUNC_REDUCESCATTER, TT_ALGO_RING, TT_PROTO_SIMPLE},
        {TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL},
        {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL},
        {TT_FUNC_ALLTOALL, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    };
    struct random_set *set = writer->set;
    uint32_t row = draw(writer, sizeof(rows) / sizeof(rows[0]));
    writer->nthreads = rows[row].algo == TT_ALGO_TREE ? 2 : 1;
    for (int pos = 0; pos < set->nranks; pos++) {
        int rank = set->ring[pos];
        struct tt_program *program = &set->programs[rank];
        struct tt_shape shape = {
            .nranks = set->nranks, .rank = rank, .ring_rank = set->ring, .ring_pos = pos};
        shape.tree =
            (struct tt_tree_place){.parent = rank ? (rank - 1) / 2 : -1, .child = {-1, -1, -1}};
        for (int k = 1; k <= 2; k++)
            if (2 * rank + k < set->nranks) shape.tree.child[k - 1] = 2 * rank + k;
        (void)tt_program_make(rows[row].func, rows[row].algo, rows[row].proto, -1, &shape, program);
        for (int t = 0; t < program->nthreads; t++) {
            int first = program->thread_first[t], end = program->thread_first[t + 1] - 1;
            writer->ninsns[rank][t] = end - first;
            for (int k = first; k < end; k++)
                writer->insns[rank][t][k - first] = program->insns[k];
        }
        program->ninsns = program->nthreads = 0;
    }
}

static void write_at_random(struct writer *writer)
{
    static void (*const kinds[])(struct writer *) = {local, message, message,    message,
                                                     relay, spread,  round_about};
    int count = 1 + (int)draw(writer, 10);
    int enter = chance(writer, 25) ? (int)draw(writer, (uint32_t)count) : -1;
    for (int k = 0; k < count; k++) {
        if (k == enter) everybody(writer, TT_OP_ENTER);
        kinds[draw(writer, sizeof(kinds) / sizeof(kinds[0]))](writer);
    }
    if (enter >= 0) everybody(writer, TT_OP_LEAVE);
}

void random_set_make(uint64_t seed, struct random_set *set)
{
    struct writer writer = {.set = set, .state = seed * 0x2545f4914f6cdd1dull + 1};
    memset(set, 0, sizeof(*set));
    memset(writer.sender, -1, sizeof(writer.sender));
    memset(writer.receiver, -1, sizeof(writer.receiver));
    set->nranks = 2 + (int)(chance(&writer, 80) ? draw(&writer, 4) : draw(&writer, 8));
    writer.nthreads = chance(&writer, 60) ? 1 : 1 + (int)draw(&writer, 3);
    make_heads(&writer);
    if (chance(&writer, 15)) {
        generate(&writer);
    } else {
        write_at_random(&writer);
    }
    set->changed = chance(&writer, 40);
    for (int k = 0; set->changed && k < 1 + (int)(seed % 3); k++)
        change(&writer);
    assemble(&writer);
}
