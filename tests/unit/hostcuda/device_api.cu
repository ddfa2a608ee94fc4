// Kernels that communicate, in the way of others' sources: device_api.sh compiles them with each
// compiler there is. As C++ the program is started with the name of a call: teams answer, what
// needs a device communicator ends the process.
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>
#include <stdio.h>
#include <string.h>

#if !defined(__CUDACC__) && !defined(__CUDA__)
static const uint3 threadIdx = {}, blockIdx = {};
static const dim3 blockDim, gridDim;
#endif

template <class T>
__global__ void sumLoads(ncclWindow_t sendwin, size_t sendoffset, ncclWindow_t recvwin,
                         size_t recvoffset, size_t count, struct ncclDevComm devComm)
{
    ncclLsaBarrierSession<ncclCoopCta> bar{ncclCoopCta(), devComm, ncclTeamLsa(devComm),
                                           devComm.lsaBarrier, blockIdx.x};
    bar.sync(ncclCoopCta(), cuda::memory_order_relaxed);
    const int lsaSize = ncclTeamLsa(devComm).nRanks;
    for (size_t i = threadIdx.x + blockDim.x * blockIdx.x; i < count; i += blockDim.x * gridDim.x) {
        T sum{};
        for (int peer = 0; peer < lsaSize; peer++)
            sum += static_cast<T *>(ncclGetLsaPointer(sendwin, sendoffset, peer))[i];
        for (int peer = 0; peer < lsaSize; peer++)
            static_cast<T *>(ncclGetLsaPointer(recvwin, recvoffset, peer))[i] = sum;
    }
    T *all = static_cast<T *>(ncclGetLsaMultimemPointer(recvwin, recvoffset, devComm));
    (void)all;
    bar.sync(ncclCoopCta(), cuda::memory_order_release);
}

template <class T> __device__ __forceinline__ T addEach(T a, T b)
{
    return a + b;
}

template <> __device__ __forceinline__ float4 addEach(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* Types of half precision, begun with {0} and 0; several numbers at a time. */
template <class T, class Many>
__global__ void sumMany(ncclWindow_t win, size_t offset, size_t count, struct ncclDevComm devComm)
{
    T one = T{0};
    T last = 0;
    Many sum[4] = {Many{0}};
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        one += static_cast<T *>(ncclGetLsaPointer(win, offset, 0))[i];
        last = one * one + last;
        sum[i % 4] = addEach(sum[i % 4], static_cast<Many *>(ncclGetLocalPointer(win, offset))[i]);
    }
    static_cast<T *>(ncclGetLsaPointer(win, offset, devComm.lsaRank))[0] = last;
    static_cast<Many *>(ncclGetLocalPointer(win, offset))[1] = sum[count % 4];
}

template <class T>
__global__ void exchangePuts(ncclWindow_t win, size_t from, size_t to, size_t count,
                             ncclDevComm devComm)
{
    ncclGin gin{devComm, 0};
    const unsigned int signal = blockIdx.x;
    const uint64_t before = gin.readSignal(signal);
    ncclBarrierSession<ncclCoopCta> bar{ncclCoopCta(), ncclTeamTagWorld(), gin, blockIdx.x};
    bar.sync(ncclCoopCta(), cuda::memory_order_acquire, ncclGinFenceLevel::Relaxed);
    ncclGinBarrierSession<ncclCoopCta> rail{ncclCoopCta(), gin, ncclTeamTagRail(), blockIdx.x};
    rail.sync(ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::None);
    for (int r = (int)threadIdx.x; r < devComm.nRanks; r += (int)blockDim.x) {
        gin.put(ncclTeamWorld(devComm), r, win, to + (size_t)devComm.rank * count * sizeof(T), win,
                from + (size_t)r * count * sizeof(T), count * sizeof(T), ncclGin_SignalInc{signal});
        gin.put<ncclGin_None, ncclGin_None, ncclCoopWarp>(ncclTeamWorld(devComm), r, win, to, win,
                                                          from, sizeof(T), ncclGin_None{},
                                                          ncclGin_None{}, ncclCoopWarp());
    }
    gin.waitSignal(ncclCoopCta(), signal, before + (uint64_t)devComm.nRanks);
    gin.flush(ncclCoopCta());
}

#if defined(__CUDACC__) || defined(__CUDA__)
void launch(ncclWindow_t win, ncclDevComm comm)
{
    sumLoads<float><<<4, 64>>>(win, 0, win, 0, 16, comm);
    exchangePuts<double><<<4, 64>>>(win, 0, 64, 16, comm);
    sumMany<half, float4><<<4, 64>>>(win, 0, 16, comm);
    sumMany<__nv_bfloat16, double><<<4, 64>>>(win, 0, 16, comm);
}
#endif

static int check_teams(const ncclDevComm &comm)
{
    ncclTeam world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);
    int wrong = world.nRanks != 12 || world.rank != 6 || lsa.nRanks != 4 || lsa.rank != 2;
    wrong += rail.nRanks != 3 || rail.rank != 1 || rail.stride != 4;
    wrong += ncclTeamRankToWorld(comm, rail, 2) != 10 || ncclTeamRankToWorld(comm, lsa, 0) != 4;
    wrong += ncclTeamRankToTeam(world, rail, 0) != 2 || ncclTeamRankToTeam(lsa, world, 7) != 3;
    wrong += !ncclTeamRankIsMember(lsa, world, 4) || ncclTeamRankIsMember(lsa, world, 8);
    wrong += !ncclTeamRankIsMember(rail, world, 10) || ncclTeamRankIsMember(rail, world, 9);
    return wrong;
}

int main(int argc, char **argv)
{
    ncclDevComm comm = {};
    comm.rank = 6;
    comm.nRanks = 12;
    comm.lsaRank = 2;
    comm.lsaSize = 4;
    if (argc > 1 && !strcmp(argv[1], "sync")) {
        ncclLsaBarrierSession<ncclCoopCta> bar{ncclCoopCta(), comm, ncclTeamTagLsa(), 0};
        bar.sync(ncclCoopCta(), cuda::memory_order_relaxed);
    }
    if (argc > 1 && !strcmp(argv[1], "signal")) ncclGin(comm, 0).readSignal(0);
    int wrong = check_teams(comm);
    printf("teams: %d wrong\n", wrong);
    return wrong != 0;
}
