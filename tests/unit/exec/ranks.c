/* See ranks.h. */
#include "ranks.h"

#include "../check.h"

#include "base/mem.h"
#include "exec/host/cursor.h"
#include "net/net.h"
#include "plugin/net/net_abi.h"
#include "transport/serve.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_BYTES ((size_t)1 << 30) /* touched as far as it is used */
#define STAGE_BYTES ((size_t)64 << 20)

static void map_twice(struct world *world)
{
    world->bytes = RANGE_BYTES;
    int fd = memfd_create("tt-test-world", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)world->bytes), 0);
    world->own = mmap(NULL, world->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    world->alias = mmap(NULL, world->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(world->own != MAP_FAILED && world->alias != MAP_FAILED);
    close(fd);
}

static void set_tree_links(int rank, int n, struct tt_tree_links *links_out)
{
    *links_out =
        (struct tt_tree_links){.parent = rank ? (rank - 1) / 2 : -1, .child = {-1, -1, -1}};
    for (int k = 0; k < 2; k++) {
        if (2 * rank + 1 + k < n) links_out->child[k] = 2 * rank + 1 + k;
    }
}

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static void open_net(struct world_rank *rank)
{
    static struct tt_net_plugin sockets = {.builtin = true};
    ncclNetCommConfig_v12_t config = {.trafficClass = -1};
    const struct tt_net_trust trust = {.rank = rank->member.rank};
    if (!sockets.object) assert_int_equal(tt_net_adopt(&sockets, 12, &tt_net_socket), ncclSuccess);
    rank->net = (struct tt_net){.plugin = &sockets, .ndevs = 1, .name = "Socket"};
    assert_int_equal(tt_net_socket.init(&rank->net.ctx, 1, &config, NULL, no_event), ncclSuccess);
    tt_net_socket_set_trust(rank->net.ctx, &trust);
}

static void create_rank(struct world *world, int r, uint64_t inbox_offset, size_t inbox_bytes)
{
    struct world_rank *rank = &world->rank[r];
    rank->member.rank = r;
    rank->member.nranks = world->n;
    rank->member.name = "";
    for (int p = 0; p < world->n; p++) {
        bool process = world->kind == WORLD_PROCESS || p == r;
        bool far = world->kind == WORLD_NET && p != r;
        enum tt_reach near = process ? TT_REACH_PROCESS : TT_REACH_MAPPED;
        rank->peers[p] = (struct tt_peer_reach){
            .reach = far ? TT_REACH_NET : near,
            .range_base = process ? world->own : world->alias,
            .range_bytes = world->bytes,
            .inbox_offset = inbox_offset + (uint64_t)p * inbox_bytes,
            .device = p,
        };
    }
    if (world->kind == WORLD_NET) open_net(rank);
    fake_bootstrap_init(world->boxes, r);
    struct tt_transport_config config = {
        .member = &rank->member,
        .peers = rank->peers,
        .bootstrap = &world->boxes[r],
        .net = world->kind == WORLD_NET ? &rank->net : NULL,
        .nchannels = world->nchannels,
        .slice_bytes = world->slice_bytes,
        .allow_direct = world->kind != WORLD_SHM,
        .allow_shm = true,
    };
    char *inbox = world->own + inbox_offset + (size_t)r * inbox_bytes;
    assert_int_equal(tt_transport_create(&config, inbox, &rank->transport), ncclSuccess);
}

struct world *world_create(int n, enum world_kind kind, size_t slice_bytes)
{
    return world_create_wide(n, kind, slice_bytes, 4);
}

struct world *world_create_wide(int n, enum world_kind kind, size_t slice_bytes, int nchannels)
{
    struct world *world = tt_calloc(1, sizeof(*world));
    assert_non_null(world);
    world->n = n;
    world->nchannels = nchannels;
    world->kind = kind;
    world->slice_bytes = slice_bytes;
    map_twice(world);
    size_t inbox_bytes = tt_transport_inbox_bytes(n, world->nchannels, slice_bytes);
    for (int r = 0; r < n; r++)
        create_rank(world, r, STAGE_BYTES, inbox_bytes);
    /* a ring that is not the order of ranks: evens up, odds down */
    int k = 0;
    for (int r = 0; r < n; r += 2)
        world->ring[k++] = r;
    for (int r = n % 2 ? n - 2 : n - 1; r > 0; r -= 2)
        world->ring[k++] = r;
    world->used = STAGE_BYTES + (size_t)n * inbox_bytes;
    world_reset(world);
    return world;
}

void world_reset(struct world *world)
{
    size_t inbox_bytes = tt_transport_inbox_bytes(world->n, world->nchannels, world->slice_bytes);
    size_t first = STAGE_BYTES + (size_t)world->n * inbox_bytes;
    if (world->used > first) memset(world->own + first, 0, world->used - first);
    world->used = first;
    for (int r = 0; r < world->n; r++)
        tt_issue_queue_fini(&world->rank[r].queue); /* of staging and scratch */
    fake_host_memory(world->own, STAGE_BYTES);
}

static void free_kept(struct world_rank *rank)
{
    while (rank->kept) {
        struct world_kept *kept = rank->kept;
        rank->kept = kept->older;
        free(kept->program);
        free(kept->refs);
        free(kept);
    }
}

void world_destroy(struct world *world)
{
    for (int r = 0; r < world->n; r++) {
        tt_issue_queue_fini(&world->rank[r].queue);
        tt_transport_destroy(world->rank[r].transport);
        if (world->rank[r].net.ctx) tt_net_socket.finalize(world->rank[r].net.ctx);
        fake_bootstrap_fini(&world->boxes[r]);
        free_kept(&world->rank[r]);
    }
    munmap(world->own, world->bytes);
    munmap(world->alias, world->bytes);
    free(world);
}

bool world_serve(struct world *world)
{
    bool moved = false;
    for (int r = 0; r < world->n; r++) {
        ncclResult_t rc;
        moved = tt_transport_serve(world->rank[r].transport, &rc) == TT_NET_MOVED || moved;
    }
    return moved;
}

char *world_memory(struct world *world, size_t bytes, size_t skew)
{
    char *memory = world->own + world->used + skew;
    world->used += tt_round_up(bytes + skew, TT_LINE_BYTES) + TT_LINE_BYTES;
    assert_true(world->used <= world->bytes);
    return memory;
}

void world_program(struct world *world, int r, struct tt_program *program)
{
    struct world_rank *rank = &world->rank[r];
    /* what runs still refers to the programs before: they are kept until the world ends */
    struct world_kept *kept = tt_calloc(1, sizeof(*kept));
    assert_non_null(kept);
    *kept = (struct world_kept){.older = rank->kept, .program = program};
    kept->refs = tt_calloc(program->ninsns, 1);
    assert_non_null(kept->refs);
    tt_program_find_refs(program, r, kept->refs);
    rank->kept = kept;
    rank->program = program;
    rank->refs = kept->refs;
}

static void make_program(struct world *world, int r, const struct world_call *call)
{
    struct tt_tree_links tree[WORLD_MAX];
    int by_host[WORLD_MAX], nhosts = 2;
    struct tt_program *program;
    while (world->n % nhosts != 0)
        nhosts++;
    struct tt_shape shape = {.nranks = world->n,
                             .ring_rank = world->ring,
                             .tree = tree,
                             .by_host = by_host,
                             .nhosts = nhosts};
    for (int rank = 0; rank < world->n; rank++) {
        set_tree_links(rank, world->n, &tree[rank]);
        by_host[rank % nhosts * (world->n / nhosts) + rank / nhosts] = rank;
    }
    assert_int_equal(
        tt_program_make(call->func, call->algo, call->proto, call->root, &shape, &program),
        ncclSuccess);
    world_program(world, r, program);
}

void world_frame(struct world *world, int r, const struct world_call *call, struct tt_frame *frame)
{
    make_program(world, r, call);
    world_bind(world, r, call, frame);
}

void world_bind(struct world *world, int r, const struct world_call *call, struct tt_frame *frame)
{
    struct world_rank *rank = &world->rank[r];
    uint8_t links[WORLD_MAX];
    tt_program_links(rank->program, r, links);
    for (int p = 0; p < world->n; p++) {
        struct tt_edge_key key = {.peer = p, .channel = 0, .conn = call->conn};
        if (call->casts) key.conn = TT_CONN_CAST;
        if (links[p] & TT_LINK_RECEIVES)
            assert_int_equal(tt_transport_edge(rank->transport, &key, &rank->recv[p]), 0);
        key.sending = true;
        if (call->casts) key.peer = r;
        if (links[p] & TT_LINK_SENDS)
            assert_int_equal(tt_transport_edge(rank->transport, &key, &rank->send[p]), 0);
    }
    *frame = (struct tt_frame){
        .program = rank->program,
        .refs = rank->refs,
        .rank = r,
        .reduction = {.type = call->type, .op = call->op},
        .in = call->in,
        .out = call->out,
        .in_bytes = call->in_bytes,
        .out_bytes = call->out_bytes,
        .elem_bytes = tt_type_bytes(call->type),
        .fingerprint = call->fingerprint,
        .conn = call->conn,
        .casts = (uint8_t)call->casts,
        .send_edges = rank->send,
        .recv_edges = rank->recv,
    };
    size_t grain = tt_max_size(1, 16 / frame->elem_bytes);
    tt_geometry_init(&frame->geometry, rank->program, call->count,
                     (struct tt_extent){0, call->count}, call->chunk_limit, grain);
}

struct tt_work_spec world_spec(struct world *world, int r, struct tt_frame *frames, int nframes)
{
    struct world_rank *rank = &world->rank[r];
    return (struct tt_work_spec){
        .member = &rank->member,
        .transport = rank->transport,
        .queue = &rank->queue,
        .frames = frames,
        .nframes = nframes,
        .oversubscribed = true,
    };
}

void world_submit(struct world *world, int r, const struct world_call *call)
{
    struct tt_frame frame;
    struct tt_work *work;
    world_frame(world, r, call, &frame);
    struct tt_work_spec spec = world_spec(world, r, &frame, 1);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    if (call->stepwise) work->eager = NULL;
    assert_int_equal(tt_exec_submit(work, &world->rank[r].stream), ncclSuccess);
}

static bool all_idle(const struct world *world)
{
    for (int r = 0; r < world->n; r++) {
        if (!fake_stream_idle(&world->rank[r].stream)) return false;
    }
    return true;
}

void world_run(struct world *world, unsigned seed)
{
    unsigned fruitless = 0;
    while (!all_idle(world)) {
        int r = rand_r(&seed) % world->n;
        int times = 1 + rand_r(&seed) % 4;
        for (int k = 0; k < times; k++) {
            if (fake_stream_step(&world->rank[r].stream)) fruitless = 0;
        }
        if (world->kind == WORLD_NET && world_serve(world)) fruitless = 0;
        if (world->kind == WORLD_NET && fruitless > 100) sched_yield(); /* to the kernel */
        assert_true(++fruitless < 1000000);
    }
}
