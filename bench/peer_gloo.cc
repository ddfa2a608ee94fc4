// Gloo (TCP) under the same loop, one process per rank. BENCH_PEER "gloo-sync" polls in the
// caller's thread, which only its older AllReduce can do; "gloo" uses its device thread.
#include "bench.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <map>
#include <memory>
#include <unistd.h>
#include <vector>

namespace
{

struct Peer {
    bench_peer head; // first: the loop hands out its address
    std::shared_ptr<gloo::rendezvous::Context> context;
    bool sync;
    mutable uint32_t tag;
    mutable std::map<size_t, std::unique_ptr<gloo::Algorithm>> algorithms; // by count
};

// Gloo has no bfloat16: reduced in float, rounded to nearest even.
void sum_bf16(void *to, const void *a, const void *b, size_t count)
{
    auto *out = static_cast<uint16_t *>(to);
    const auto *x = static_cast<const uint16_t *>(a), *y = static_cast<const uint16_t *>(b);
    for (size_t i = 0; i < count; i++) {
        uint32_t p = uint32_t(x[i]) << 16, q = uint32_t(y[i]) << 16;
        float f, g;
        std::memcpy(&f, &p, 4);
        std::memcpy(&g, &q, 4);
        f += g;
        std::memcpy(&p, &f, 4);
        out[i] = uint16_t((p + 0x7fff + (p >> 16 & 1)) >> 16);
    }
}

using Reduce = void (*)(void *, const void *, const void *, size_t);

// In place, so the copy belongs to the operation.
int allreduce_sync(const Peer &p, const bench_point &point)
{
    if (point.type != BENCH_FLOAT32) return -1;
    size_t count = point.bytes / 4;
    auto &algorithm = p.algorithms[count];
    auto *recv = reinterpret_cast<float *>(p.head.recv);
    std::memcpy(recv, p.head.send, point.bytes);
    if (!algorithm)
        algorithm.reset(new gloo::AllreduceHalvingDoubling<float>(
            p.context, std::vector<float *>{recv}, int(count)));
    algorithm->run();
    return 0;
}

int ping(const Peer &p, size_t bytes)
{
    const std::chrono::seconds limit(60);
    if (p.head.rank > 1) return 0;
    auto send = p.context->createUnboundBuffer(p.head.send, bytes);
    auto recv = p.context->createUnboundBuffer(p.head.recv, bytes);
    for (int half = 0; half < 2; half++) {
        if (p.head.rank == half) {
            send->send(1 - half, 8 + uint64_t(half));
            send->waitSend(limit);
        } else {
            recv->recv(half, 8 + uint64_t(half));
            recv->waitRecv(limit);
        }
    }
    return 0;
}

template <class T> int run(const Peer &p, const bench_point &point, Reduce reduce)
{
    T *send = reinterpret_cast<T *>(p.head.send), *recv = reinterpret_cast<T *>(p.head.recv);
    size_t count = point.bytes / sizeof(T), block = count / size_t(p.head.nranks);
    p.tag = (p.tag + 1) & 0xffff;
    switch (point.op) {
    case BENCH_ALLREDUCE: {
        gloo::AllreduceOptions o(p.context);
        o.setInput(send, count);
        o.setOutput(recv, count);
        o.setReduceFunction(reduce);
        o.setTag(p.tag);
        gloo::allreduce(o);
        return 0;
    }
    case BENCH_ALLGATHER: {
        gloo::AllgatherOptions o(p.context);
        o.setInput(send, block);
        o.setOutput(recv, block * size_t(p.head.nranks));
        o.setTag(p.tag);
        gloo::allgather(o);
        return 0;
    }
    case BENCH_BROADCAST: {
        gloo::BroadcastOptions o(p.context);
        o.setOutput(p.head.rank ? recv : send, count);
        o.setRoot(0);
        o.setTag(p.tag);
        gloo::broadcast(o);
        return 0;
    }
    case BENCH_REDUCE: {
        gloo::ReduceOptions o(p.context);
        o.setInput(send, count);
        o.setOutput(recv, count);
        o.setReduceFunction(reduce);
        o.setRoot(0);
        o.setTag(p.tag);
        gloo::reduce(o);
        return 0;
    }
    case BENCH_ALLTOALL: {
        gloo::AlltoallOptions o(p.context);
        o.setInput(send, block * size_t(p.head.nranks));
        o.setOutput(recv, block * size_t(p.head.nranks));
        o.setTag(p.tag);
        gloo::alltoall(o);
        return 0;
    }
    case BENCH_PINGPONG: return ping(p, point.bytes);
    default: return -1;
    }
}

int call(const bench_peer *peer, const bench_point *point)
{
    const Peer &p = *reinterpret_cast<const Peer *>(peer);
    if (point->type > BENCH_BFLOAT16) return -1;
    if (p.sync) return point->op == BENCH_ALLREDUCE ? allreduce_sync(p, *point) : -1;
    if (point->type == BENCH_FLOAT32) return run<float>(p, *point, Reduce(&gloo::sum<float>));
    return run<gloo::float16>(p, *point, sum_bf16); // two bytes are all that it needs to know
}

void connect(Peer &p)
{
    char *folder = static_cast<char *>(bench_blob());
    if (p.head.rank == 0) {
        std::strcpy(folder, "/dev/shm/tutti-bench-gloo-XXXXXX");
        if (!mkdtemp(folder)) std::exit(2);
    }
    bench_barrier();
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(address);
    gloo::rendezvous::FileStore store(folder);
    p.context = std::make_shared<gloo::rendezvous::Context>(p.head.rank, p.head.nranks);
    p.context->setTimeout(std::chrono::seconds(100));
    p.context->connectFullMesh(store, device);
    for (int r = 0; p.sync && r < p.head.nranks; r++) {
        if (r != p.head.rank) p.context->getPair(r)->setSync(true, true);
    }
    bench_barrier();
    std::string command = "rm -rf '" + std::string(folder) + "'";
    if (p.head.rank == 0 && std::system(command.c_str())) std::perror("rm");
}

} // namespace

int main()
{
    const char *rank = std::getenv("BENCH_RANK"), *nranks = std::getenv("BENCH_NRANKS");
    const char *name = std::getenv("BENCH_PEER");
    if (!rank || !nranks) return 2;
    Peer p = {};
    p.head.name = name ? name : "gloo";
    p.head.version = "tcp";
    p.head.rank = std::atoi(rank);
    p.head.nranks = std::atoi(nranks);
    p.head.call = call;
    p.sync = !std::strcmp(p.head.name, "gloo-sync");
    if (!bench_attach(&p.head)) return 2;
    connect(p); // before pinning: the device thread stays free
    bench_pin(p.head.rank);
    p.head.send = static_cast<char *>(aligned_alloc(4096, bench_max_bytes()));
    p.head.recv = static_cast<char *>(aligned_alloc(4096, bench_max_bytes()));
    std::memset(p.head.send, 0, bench_max_bytes());
    std::memset(p.head.recv, 0, bench_max_bytes());
    bench_run(&p.head);
    std::fflush(stdout);
    _exit(0); // its threads may still be in the context
}
