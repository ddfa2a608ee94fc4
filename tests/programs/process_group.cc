/* A process group as frameworks write it: owners of communicators, memory and events, templates
 * over types, ids through a store, an own stream per group, a thread that watches for errors.
 * Blocking and not. usage: process_group [RANKS] */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define NCCLCHECK(cmd)                                                                             \
    do {                                                                                           \
        ncclResult_t res_ = (cmd);                                                                 \
        if (res_ != ncclSuccess && res_ != ncclInProgress)                                         \
            throw std::runtime_error(std::string(#cmd) + ": " + ncclGetErrorString(res_) + " " +   \
                                     ncclGetLastError(nullptr));                                   \
    } while (0)
#define CUDACHECK(cmd)                                                                             \
    do {                                                                                           \
        cudaError_t err_ = (cmd);                                                                  \
        if (err_ != cudaSuccess)                                                                   \
            throw std::runtime_error(std::string(#cmd) + ": " + cudaGetErrorString(err_));         \
    } while (0)
template <class T> struct TypeOf;
template <> struct TypeOf<float> {
    static constexpr ncclDataType_t v = ncclFloat;
};
template <> struct TypeOf<double> {
    static constexpr ncclDataType_t v = ncclDouble;
};
template <> struct TypeOf<int32_t> {
    static constexpr ncclDataType_t v = ncclInt;
};
template <> struct TypeOf<uint64_t> {
    static constexpr ncclDataType_t v = ncclUint64;
};
template <> struct TypeOf<int8_t> {
    static constexpr ncclDataType_t v = ncclChar;
};
struct Store {
    std::mutex m;
    std::condition_variable cv;
    std::map<std::string, std::string> kv;
    void set(const std::string &k, std::string v)
    {
        std::lock_guard g(m);
        kv[k] = std::move(v);
        cv.notify_all();
    }
    std::string get(const std::string &k)
    {
        std::unique_lock g(m);
        cv.wait(g, [&] { return kv.count(k); });
        return kv[k];
    }
};
template <class T> class DeviceVec
{
    T *p_{};
    size_t n_{};

  public:
    explicit DeviceVec(size_t n) : n_(n) { CUDACHECK(cudaMalloc(&p_, n * sizeof(T))); }
    DeviceVec(DeviceVec &&o) noexcept : p_(std::exchange(o.p_, nullptr)), n_(o.n_) {}
    ~DeviceVec()
    {
        if (p_) cudaFree(p_);
    }
    T *get() { return p_; }
    size_t size() const { return n_; }
    void put(const std::vector<T> &h, cudaStream_t s)
    {
        CUDACHECK(cudaMemcpyAsync(p_, h.data(), n_ * sizeof(T), cudaMemcpyHostToDevice, s));
    }
    std::vector<T> fetch(cudaStream_t s)
    {
        std::vector<T> h(n_);
        CUDACHECK(cudaMemcpyAsync(h.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost, s));
        CUDACHECK(cudaStreamSynchronize(s));
        return h;
    }
};
struct Event {
    cudaEvent_t e{};
    Event() { CUDACHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming)); }
    ~Event() { cudaEventDestroy(e); }
    Event(const Event &) = delete;
};
class Comm
{
    ncclComm_t c_{};
    std::mutex m_;

  public:
    Comm(int n, int r, const ncclUniqueId &id, bool blocking)
    {
        ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
        cfg.blocking = blocking;
        cfg.commName = "pg";
        NCCLCHECK(ncclCommInitRankConfig(&c_, n, id, r, &cfg));
        wait();
    }
    explicit Comm(ncclComm_t c) : c_(c) { wait(); }
    void wait()
    {
        ncclResult_t s;
        do {
            NCCLCHECK(ncclCommGetAsyncError(c_, &s));
            if (s == ncclInProgress) std::this_thread::yield();
        } while (s == ncclInProgress);
        NCCLCHECK(s);
    }
    ncclComm_t raw() { return c_; }
    std::unique_ptr<Comm> split(int color, int key)
    {
        ncclComm_t n = nullptr;
        ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
        cfg.splitShare = 1;
        NCCLCHECK(ncclCommSplit(c_, color, key, &n, &cfg));
        wait();
        return color == NCCL_SPLIT_NOCOLOR ? nullptr : std::make_unique<Comm>(n);
    }
    ncclResult_t check()
    {
        std::lock_guard g(m_);
        ncclResult_t s;
        ncclCommGetAsyncError(c_, &s);
        return s;
    }
    ~Comm()
    {
        if (c_) {
            ncclCommFinalize(c_);
            ncclResult_t s;
            do {
                ncclCommGetAsyncError(c_, &s);
            } while (s == ncclInProgress);
            ncclCommDestroy(c_);
        }
    }
};
class ProcessGroup
{
    int n_, r_;
    Store &st_;
    bool blocking_;
    std::unique_ptr<Comm> comm_;
    cudaStream_t s_{};

  public:
    struct Work {
        std::shared_ptr<Event> ev;
        bool done() { return cudaEventQuery(ev->e) == cudaSuccess; }
        void wait() { CUDACHECK(cudaEventSynchronize(ev->e)); }
    };
    ProcessGroup(int n, int r, Store &st, bool blocking)
        : n_(n), r_(r), st_(st), blocking_(blocking)
    {
        CUDACHECK(cudaSetDevice(r));
        int lo, hi;
        CUDACHECK(cudaDeviceGetStreamPriorityRange(&lo, &hi));
        CUDACHECK(cudaStreamCreateWithPriority(&s_, cudaStreamNonBlocking, hi));
    }
    ~ProcessGroup()
    {
        comm_.reset();
        cudaStreamDestroy(s_);
    }
    Comm &comm()
    {
        if (!comm_) {
            ncclUniqueId id;
            if (r_ == 0) {
                NCCLCHECK(ncclGetUniqueId(&id));
                st_.set("id", std::string(reinterpret_cast<char *>(&id), sizeof id));
            } else {
                auto v = st_.get("id");
                std::memcpy(&id, v.data(), sizeof id);
            }
            comm_ = std::make_unique<Comm>(n_, r_, id, blocking_);
        }
        return *comm_;
    }
    template <class F> Work run(cudaStream_t user, F f)
    {
        comm();
        Event in;
        CUDACHECK(cudaEventRecord(in.e, user));
        CUDACHECK(cudaStreamWaitEvent(s_, in.e, 0));
        NCCLCHECK(ncclGroupStart());
        f(comm_->raw(), s_);
        NCCLCHECK(ncclGroupEnd());
        comm_->wait();
        Work w{std::make_shared<Event>()};
        CUDACHECK(cudaEventRecord(w.ev->e, s_));
        CUDACHECK(cudaStreamWaitEvent(user, w.ev->e, 0));
        return w;
    }
    template <class T> Work allreduce(T *p, size_t n, ncclRedOp_t op, cudaStream_t u)
    {
        return run(u, [=](ncclComm_t c, cudaStream_t s) {
            NCCLCHECK(ncclAllReduce(p, p, n, TypeOf<T>::v, op, c, s));
        });
    }
    template <class T>
    Work alltoallv(T *in, const std::vector<size_t> &sc, T *out, const std::vector<size_t> &rc,
                   cudaStream_t u)
    {
        return run(u, [&](ncclComm_t c, cudaStream_t s) {
            size_t a = 0, b = 0;
            for (int i = 0; i < n_; i++) {
                if (sc[i]) NCCLCHECK(ncclSend(in + a, sc[i], TypeOf<T>::v, i, c, s));
                if (rc[i]) NCCLCHECK(ncclRecv(out + b, rc[i], TypeOf<T>::v, i, c, s));
                a += sc[i];
                b += rc[i];
            }
        });
    }
    template <class T>
    Work reduce_scatter_coalesced(std::vector<std::pair<T *, T *>> io, size_t n, cudaStream_t u)
    {
        return run(u, [&](ncclComm_t c, cudaStream_t s) {
            for (auto &[i, o] : io)
                NCCLCHECK(ncclReduceScatter(i, o, n, TypeOf<T>::v, ncclAvg, c, s));
        });
    }
};
static std::atomic<int> bad{0};
template <class T> void types(ProcessGroup &pg, int n, int r, cudaStream_t u)
{
    for (size_t count : {1ul, 7ul, 1000ul, 65537ul}) {
        DeviceVec<T> v(count);
        std::vector<T> h(count);
        for (size_t i = 0; i < count; i++)
            h[i] = T((i + r) % 5);
        v.put(h, u);
        pg.allreduce(v.get(), count, ncclSum, u);
        auto o = v.fetch(u);
        for (size_t i = 0; i < count; i++) {
            T e = 0;
            for (int k = 0; k < n; k++)
                e += T((i + k) % 5);
            if (o[i] != e) {
                bad++;
                break;
            }
        }
    }
}
/* Rank i sends (3i + k) % 4 hundreds to rank k. */
static size_t part_of(int from, int to)
{
    return static_cast<size_t>((from * 3 + to) % 4) * 100;
}

static void uneven_exchange(ProcessGroup &pg, int n, int r, cudaStream_t user)
{
    std::vector<size_t> sends(n), receives(n);
    for (int i = 0; i < n; i++) {
        sends[i] = part_of(r, i);
        receives[i] = part_of(i, r);
    }
    size_t out_count = std::accumulate(receives.begin(), receives.end(), size_t(0));
    std::vector<int32_t> host(std::accumulate(sends.begin(), sends.end(), size_t(1)), r);
    DeviceVec<int32_t> in(host.size()), out(out_count);
    in.put(host, user);
    pg.alltoallv(in.get(), sends, out.get(), receives, user);
    auto found = out.fetch(user);
    size_t at = 0;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < receives[i]; k++)
            bad += found[at++] != i;
}

static void many_in_a_group(ProcessGroup &pg, int n, int r, cudaStream_t user)
{
    const size_t count = 333;
    std::vector<DeviceVec<float>> ins, outs;
    std::vector<std::pair<float *, float *>> pairs;
    for (int k = 0; k < 5; k++) {
        ins.emplace_back(count * n);
        outs.emplace_back(count);
        std::vector<float> host(count * n, float(r + k));
        ins.back().put(host, user);
        pairs.push_back({ins.back().get(), outs.back().get()});
    }
    auto work = pg.reduce_scatter_coalesced(pairs, count, user);
    work.wait();
    if (!work.done()) bad++;
    for (int k = 0; k < 5; k++)
        bad += outs[k].fetch(user)[count - 1] != float(k) + float(n - 1) / 2;
}

static void child_group(ProcessGroup &pg, int n, int r, cudaStream_t user)
{
    auto child = pg.comm().split(r % 2, r);
    DeviceVec<float> v(10);
    v.put(std::vector<float>(10, 1), user);
    NCCLCHECK(ncclAllReduce(v.get(), v.get(), v.size(), ncclFloat, ncclSum, child->raw(), user));
    child->wait();
    bad += v.fetch(user)[3] != float((n + (r % 2 == 0)) / 2);
}

static void all(ProcessGroup &pg, int n, int r)
{
    cudaStream_t user;
    std::atomic<bool> stop{false};
    CUDACHECK(cudaStreamCreateWithFlags(&user, cudaStreamNonBlocking));
    Comm &comm = pg.comm();
    std::thread watcher([&] {
        while (!stop) {
            auto state = comm.check();
            if (state != ncclSuccess && state != ncclInProgress) bad++;
            std::this_thread::yield();
        }
    });
    types<float>(pg, n, r, user);
    types<double>(pg, n, r, user);
    types<int32_t>(pg, n, r, user);
    types<uint64_t>(pg, n, r, user);
    types<int8_t>(pg, n, r, user);
    uneven_exchange(pg, n, r, user);
    many_in_a_group(pg, n, r, user);
    stop = true;
    watcher.join();
    child_group(pg, n, r, user);
    CUDACHECK(cudaStreamDestroy(user));
}

static void rank_main(int n, int r, Store &store, bool blocking)
{
    try {
        ProcessGroup pg(n, r, store, blocking);
        all(pg, n, r);
    } catch (const std::exception &error) {
        std::cerr << "rank " << r << ": " << error.what() << std::endl;
        std::_Exit(4); /* the others wait for this rank */
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4;
    for (bool b : {true, false}) {
        Store st;
        std::vector<std::thread> t;
        for (int r = 0; r < n; r++)
            t.emplace_back(rank_main, n, r, std::ref(st), b);
        for (auto &x : t)
            x.join();
        std::cout << (b ? "blocking" : "non-blocking") << " " << bad << " wrong" << std::endl;
    }
    return bad != 0;
}
