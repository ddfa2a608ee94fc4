// A benchmark in the manner of the community's: every data type and operator through every collective, in and out of
// place, timed with events, values checked on the host. Threads (-t) drive groups of devices (-g); with graphs (-G 1)
// the calls are captured and replayed. Exit status 1 when a value was wrong.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <thread>
#include <type_traits>
#include <vector>

#define CUDA(cmd)                                                                                                      \
    do {                                                                                                               \
        cudaError_t err_ = (cmd);                                                                                      \
        if (err_ != cudaSuccess) {                                                                                     \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_));                         \
            std::exit(EXIT_FAILURE);                                                                                   \
        }                                                                                                              \
    } while (0)
#define NCCL(cmd)                                                                                                      \
    do {                                                                                                               \
        ncclResult_t rc_ = (cmd);                                                                                      \
        if (rc_ != ncclSuccess) {                                                                                      \
            std::fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, ncclGetErrorString(rc_),                      \
                         ncclGetLastError(nullptr));                                                                   \
            std::exit(EXIT_FAILURE);                                                                                   \
        }                                                                                                              \
    } while (0)

namespace {

struct Options {
    size_t minBytes = 8, maxBytes = 1 << 15;
    int factor = 16, threads = 1, devices = 1, graph = 0;
};

struct Rank { // one device, driven by one thread
    int rank, nranks, device;
    ncclComm_t comm;
    cudaStream_t stream;
    void *send, *recv;
};

struct Tally {
    std::atomic<long> wrong{0}, lines{0};
};

enum class Coll { allReduce, reduce, reduceScatter, broadcast, allGather, allToAll, gather, scatter, sendRecv };
constexpr Coll colls[] = {Coll::allReduce, Coll::reduce,   Coll::reduceScatter, Coll::broadcast, Coll::allGather,
                          Coll::allToAll,  Coll::gather,   Coll::scatter,       Coll::sendRecv};

bool reduces(Coll c) { return c <= Coll::reduceScatter; }
bool spreads(Coll c) { return c == Coll::reduceScatter || c == Coll::allToAll || c == Coll::scatter; }
bool collects(Coll c) { return c == Coll::allGather || c == Coll::allToAll || c == Coll::gather; }
bool rooted(Coll c) { return c == Coll::reduce || c == Coll::broadcast || c == Coll::gather || c == Coll::scatter; }

template <typename T> constexpr ncclDataType_t typeOf();
template <> constexpr ncclDataType_t typeOf<int8_t>() { return ncclInt8; }
template <> constexpr ncclDataType_t typeOf<uint8_t>() { return ncclUint8; }
template <> constexpr ncclDataType_t typeOf<int32_t>() { return ncclInt32; }
template <> constexpr ncclDataType_t typeOf<uint32_t>() { return ncclUint32; }
template <> constexpr ncclDataType_t typeOf<int64_t>() { return ncclInt64; }
template <> constexpr ncclDataType_t typeOf<uint64_t>() { return ncclUint64; }
template <> constexpr ncclDataType_t typeOf<__half>() { return ncclFloat16; }
template <> constexpr ncclDataType_t typeOf<float>() { return ncclFloat32; }
template <> constexpr ncclDataType_t typeOf<double>() { return ncclFloat64; }
template <> constexpr ncclDataType_t typeOf<__nv_bfloat16>() { return ncclBfloat16; }
template <> constexpr ncclDataType_t typeOf<__nv_fp8_e4m3>() { return ncclFloat8e4m3; }
template <> constexpr ncclDataType_t typeOf<__nv_fp8_e5m2>() { return ncclFloat8e5m2; }

template <typename T> T fromNumber(double x) { return T(static_cast<float>(x)); }
template <> __half fromNumber(double x) { return __float2half(static_cast<float>(x)); }
template <> __nv_bfloat16 fromNumber(double x) { return __float2bfloat16(static_cast<float>(x)); }
template <typename T> double toNumber(T x) { return static_cast<double>(static_cast<float>(x)); }
template <> double toNumber(__half x) { return __half2float(x); }
template <> double toNumber(__nv_bfloat16 x) { return __bfloat162float(x); }

// Small whole numbers: every partial result is exact in every type, up to eight ranks.
double input(int rank, size_t i, int op)
{
    size_t mix = i * 7 + static_cast<size_t>(rank) * 3 + i / 13;
    return op == ncclProd ? static_cast<double>(1 + (mix % 4 == 0)) : static_cast<double>(mix % 2);
}

double reduced(int nranks, size_t i, int op, bool whole)
{
    double acc = input(0, i, op);
    for (int r = 1; r < nranks; r++) {
        double x = input(r, i, op);
        acc = op == ncclProd ? acc * x : op == ncclMax ? std::max(acc, x) : op == ncclMin ? std::min(acc, x) : acc + x;
    }
    if (op == ncclAvg) acc = whole ? std::trunc(acc / nranks) : acc / nranks;
    return acc;
}

template <typename T> class Line { // one line of the table: a collective, an operator, a size
public:
    Line(std::vector<Rank> &ranks, Tally &tally, const Options &options)
        : ranks_(ranks), tally_(tally), options_(options), n_(ranks[0].nranks)
    {
    }

    void run(Coll coll, int op, int root, size_t bytes, bool inPlace)
    {
        coll_ = coll;
        op_ = op;
        root_ = root;
        inPlace_ = inPlace;
        count_ = std::max<size_t>(bytes / sizeof(T) / (spreads(coll) || collects(coll) ? n_ : 1), 1);
        for (auto &r : ranks_) fill(r);
        launch();
        for (auto &r : ranks_) wait(r);
        for (auto &r : ranks_) tally_.wrong += check(r);
        tally_.lines++;
    }

private:
    T *sendOf(const Rank &r) const
    {
        if (!inPlace_) return static_cast<T *>(r.send);
        bool block = coll_ == Coll::allGather || (coll_ == Coll::gather && r.rank == root_);
        return static_cast<T *>(r.recv) + (block ? r.rank * count_ : 0);
    }

    T *recvOf(const Rank &r) const
    {
        bool block = coll_ == Coll::reduceScatter || (coll_ == Coll::scatter && r.rank == root_);
        return static_cast<T *>(r.recv) + (inPlace_ && block ? r.rank * count_ : 0);
    }

    void fill(const Rank &r)
    {
        size_t elems = count_ * (spreads(coll_) ? n_ : 1);
        std::vector<T> host(elems);
        for (size_t i = 0; i < elems; i++) host[i] = fromNumber<T>(input(r.rank, i, op_));
        CUDA(cudaSetDevice(r.device));
        CUDA(cudaMemsetAsync(r.recv, 0x11, options_.maxBytes + 4096, r.stream));
        CUDA(cudaMemcpyAsync(sendOf(r), host.data(), elems * sizeof(T), cudaMemcpyHostToDevice, r.stream));
        CUDA(cudaStreamSynchronize(r.stream));
    }

    void call(const Rank &r) const
    {
        const T *send = sendOf(r);
        T *recv = recvOf(r);
        ncclDataType_t type = typeOf<T>();
        auto op = static_cast<ncclRedOp_t>(op_);
        switch (coll_) {
        case Coll::allReduce: NCCL(ncclAllReduce(send, recv, count_, type, op, r.comm, r.stream)); break;
        case Coll::reduce: NCCL(ncclReduce(send, recv, count_, type, op, root_, r.comm, r.stream)); break;
        case Coll::reduceScatter: NCCL(ncclReduceScatter(send, recv, count_, type, op, r.comm, r.stream)); break;
        case Coll::broadcast: NCCL(ncclBroadcast(send, recv, count_, type, root_, r.comm, r.stream)); break;
        case Coll::allGather: NCCL(ncclAllGather(send, recv, count_, type, r.comm, r.stream)); break;
        case Coll::allToAll: // spelled out, as programs older than ncclAlltoAll do
            NCCL(ncclGroupStart());
            for (int p = 0; p < n_; p++) {
                NCCL(ncclSend(send + p * count_, count_, type, p, r.comm, r.stream));
                NCCL(ncclRecv(recv + p * count_, count_, type, p, r.comm, r.stream));
            }
            NCCL(ncclGroupEnd());
            break;
        case Coll::gather:
            NCCL(ncclGroupStart());
            NCCL(ncclSend(send, count_, type, root_, r.comm, r.stream));
            for (int p = 0; r.rank == root_ && p < n_; p++)
                NCCL(ncclRecv(recv + p * count_, count_, type, p, r.comm, r.stream));
            NCCL(ncclGroupEnd());
            break;
        case Coll::scatter:
            NCCL(ncclGroupStart());
            for (int p = 0; r.rank == root_ && p < n_; p++)
                NCCL(ncclSend(send + p * count_, count_, type, p, r.comm, r.stream));
            NCCL(ncclRecv(recv, count_, type, root_, r.comm, r.stream));
            NCCL(ncclGroupEnd());
            break;
        case Coll::sendRecv:
            NCCL(ncclGroupStart());
            NCCL(ncclSend(send, count_, type, (r.rank + 1) % n_, r.comm, r.stream));
            NCCL(ncclRecv(recv, count_, type, (r.rank + n_ - 1) % n_, r.comm, r.stream));
            NCCL(ncclGroupEnd());
            break;
        }
    }

    void callAll() const
    {
        if (ranks_.size() > 1) NCCL(ncclGroupStart());
        for (auto &r : ranks_) {
            CUDA(cudaSetDevice(r.device));
            call(r);
        }
        if (ranks_.size() > 1) NCCL(ncclGroupEnd());
    }

    void launch() const
    {
        if (!options_.graph) return callAll();
        std::vector<cudaGraphExec_t> execs(ranks_.size());
        for (auto &r : ranks_) CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
        callAll();
        for (size_t k = 0; k < ranks_.size(); k++) {
            cudaGraph_t graph;
            CUDA(cudaStreamEndCapture(ranks_[k].stream, &graph));
            CUDA(cudaGraphInstantiate(&execs[k], graph, nullptr, nullptr, 0));
            CUDA(cudaGraphDestroy(graph));
        }
        for (size_t k = 0; k < ranks_.size(); k++) CUDA(cudaGraphLaunch(execs[k], ranks_[k].stream));
        for (auto &r : ranks_) wait(r);
        for (auto exec : execs) CUDA(cudaGraphExecDestroy(exec));
    }

    void wait(const Rank &r) const // a query loop, so that an error of the communicator ends it
    {
        ncclResult_t state = ncclSuccess;
        CUDA(cudaSetDevice(r.device));
        for (cudaError_t err = cudaErrorNotReady; err == cudaErrorNotReady;) {
            err = cudaStreamQuery(r.stream);
            if (err != cudaErrorNotReady) CUDA(err);
            NCCL(ncclCommGetAsyncError(r.comm, &state));
            NCCL(state);
        }
    }

    double expected(const Rank &r, size_t i) const
    {
        size_t block = i / count_, within = i % count_, mine = r.rank * count_ + within;
        switch (coll_) {
        case Coll::allReduce:
        case Coll::reduce: return reduced(n_, i, op_, std::is_integral<T>::value);
        case Coll::reduceScatter: return reduced(n_, mine, op_, std::is_integral<T>::value);
        case Coll::broadcast: return input(root_, i, op_);
        case Coll::allGather:
        case Coll::gather: return input(static_cast<int>(block), within, op_);
        case Coll::allToAll: return input(static_cast<int>(block), mine, op_);
        case Coll::scatter: return input(root_, mine, op_);
        case Coll::sendRecv: return input((r.rank + n_ - 1) % n_, i, op_);
        }
        return -1;
    }

    long check(const Rank &r) const
    {
        if ((coll_ == Coll::reduce || coll_ == Coll::gather) && r.rank != root_) return 0;
        size_t elems = count_ * (collects(coll_) ? n_ : 1);
        double slack = op_ != ncclAvg || std::is_integral<T>::value ? 0
                       : sizeof(T) == 1                             ? 0.26
                       : sizeof(T) == 2                             ? 0.02
                                                                    : 1e-6;
        std::vector<T> host(elems);
        CUDA(cudaSetDevice(r.device));
        CUDA(cudaMemcpy(host.data(), recvOf(r), elems * sizeof(T), cudaMemcpyDeviceToHost));
        long wrong = 0;
        for (size_t i = 0; i < elems; i++) {
            double want = expected(r, i), got = toNumber(host[i]);
            if (std::fabs(want - got) <= slack) continue;
            if (wrong++ == 0)
                std::printf("wrong: collective %d type %d op %d %s rank %d element %zu is %g, not %g\n",
                            static_cast<int>(coll_), static_cast<int>(typeOf<T>()), op_,
                            inPlace_ ? "in place" : "out of place", r.rank, i, got, want);
        }
        return wrong;
    }

    std::vector<Rank> &ranks_;
    Tally &tally_;
    const Options &options_;
    int n_, op_ = ncclSum, root_ = 0;
    Coll coll_ = Coll::allReduce;
    bool inPlace_ = false;
    size_t count_ = 0;
};

template <typename T> void testType(std::vector<Rank> &ranks, Tally &tally, const Options &o)
{
    Line<T> line(ranks, tally, o);
    for (Coll coll : colls) {
        bool apart = coll == Coll::allToAll || coll == Coll::sendRecv;
        int lastOp = reduces(coll) ? static_cast<int>(ncclNumOps) - 1 : static_cast<int>(ncclSum);
        int lastRoot = rooted(coll) ? ranks[0].nranks - 1 : 0;
        for (int op = ncclSum; op <= lastOp; op++)
            for (int root = 0; root <= lastRoot; root++)
                for (size_t bytes = o.minBytes; bytes <= o.maxBytes; bytes *= o.factor)
                    for (int inPlace = 0; inPlace <= (apart ? 0 : 1); inPlace++)
                        line.run(coll, op, root, bytes, inPlace == 1);
    }
}

void threadMain(std::vector<Rank> ranks, Tally &tally, const Options &o)
{
    cudaEvent_t begin, end;
    float msec = 0;
    CUDA(cudaSetDevice(ranks[0].device));
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    CUDA(cudaEventRecord(begin, ranks[0].stream));
    testType<int8_t>(ranks, tally, o);
    testType<uint8_t>(ranks, tally, o);
    testType<int32_t>(ranks, tally, o);
    testType<uint32_t>(ranks, tally, o);
    testType<int64_t>(ranks, tally, o);
    testType<uint64_t>(ranks, tally, o);
    testType<__half>(ranks, tally, o);
    testType<float>(ranks, tally, o);
    testType<double>(ranks, tally, o);
    testType<__nv_bfloat16>(ranks, tally, o);
    testType<__nv_fp8_e4m3>(ranks, tally, o);
    testType<__nv_fp8_e5m2>(ranks, tally, o);
    CUDA(cudaSetDevice(ranks[0].device));
    CUDA(cudaEventRecord(end, ranks[0].stream));
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventElapsedTime(&msec, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    if (!(msec > 0)) tally.wrong++;
}

Options parse(int argc, char **argv)
{
    Options o;
    for (int letter; (letter = getopt(argc, argv, "b:e:f:t:g:G:")) != -1;) {
        switch (letter) {
        case 'b': o.minBytes = std::strtoull(optarg, nullptr, 0); break;
        case 'e': o.maxBytes = std::strtoull(optarg, nullptr, 0); break;
        case 'f': o.factor = std::atoi(optarg); break;
        case 't': o.threads = std::atoi(optarg); break;
        case 'g': o.devices = std::atoi(optarg); break;
        case 'G': o.graph = std::atoi(optarg); break;
        default: std::exit(2);
        }
    }
    return o;
}

int fromEnv(const char *name, int otherwise)
{
    const char *text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
}

} // namespace

int main(int argc, char **argv)
{
    const Options o = parse(argc, argv);
    int process = fromEnv("RANK", 0), processes = fromEnv("WORLD_SIZE", 1), local = fromEnv("LOCAL_RANK", 0);
    int mine = o.threads * o.devices, ndevices = 0;
    Tally tally;
    std::vector<Rank> ranks(mine);
    ncclUniqueId id;
    CUDA(cudaGetDeviceCount(&ndevices));
    NCCL(ncclGetUniqueId(&id)); // the same in every process: NCCL_COMM_ID is set
    NCCL(ncclGroupStart());
    for (int k = 0; k < mine; k++) {
        Rank &r = ranks[k];
        r = Rank{process * mine + k, processes * mine, (local * mine + k) % ndevices, nullptr, nullptr, nullptr, nullptr};
        CUDA(cudaSetDevice(r.device));
        NCCL(ncclCommInitRank(&r.comm, r.nranks, id, r.rank));
    }
    NCCL(ncclGroupEnd());
    for (auto &r : ranks) {
        cudaDeviceProp prop;
        CUDA(cudaGetDeviceProperties(&prop, r.device));
        std::printf("# rank %2d device %2d [%04x:%02x:%02x] %s\n", r.rank, r.device, prop.pciDomainID, prop.pciBusID,
                    prop.pciDeviceID, prop.name);
        CUDA(cudaSetDevice(r.device));
        CUDA(cudaMalloc(&r.send, o.maxBytes + 4096));
        CUDA(cudaMalloc(&r.recv, o.maxBytes + 4096));
        CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < o.threads; t++) {
        std::vector<Rank> own(ranks.begin() + t * o.devices, ranks.begin() + (t + 1) * o.devices);
        threads.emplace_back([own, &tally, &o] { threadMain(own, tally, o); });
    }
    for (auto &thread : threads) thread.join();
    for (auto &r : ranks) {
        CUDA(cudaSetDevice(r.device));
        CUDA(cudaFree(r.send));
        CUDA(cudaFree(r.recv));
        CUDA(cudaStreamDestroy(r.stream));
    }
    for (auto &r : ranks) NCCL(ncclCommFinalize(r.comm));
    for (auto &r : ranks) NCCL(ncclCommDestroy(r.comm));
    std::printf("# %ld lines, out of bounds values: %ld %s\n", tally.lines.load(), tally.wrong.load(),
                tally.wrong ? "FAILED" : "OK");
    return tally.wrong ? 1 : 0;
}
