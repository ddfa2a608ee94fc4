/* Kernel side of the device API, so that existing sources compile with nvcc, with clang for the
 * host and with a plain C++ compiler. Teams work, and so do addresses of windows in host
 * implementations of kernels. Barriers, signals, puts and multicast need a device communicator,
 * which ncclDevCommCreate() does not make: a kernel that calls one prints an error and aborts the
 * process (device code traps). C++11. */
#ifndef NCCL_DEVICE_KERNELS_H_
#define NCCL_DEVICE_KERNELS_H_

#include "core.h"

#ifdef __cplusplus

#include <stdio.h>
#include <stdlib.h>
#if defined(__has_include)
#if __has_include(<cuda/atomic>)
#include <cuda/atomic>
#define NCCL_DEVICE_HAS_CUDA_ATOMIC 1
#endif
#endif

#ifndef NCCL_DEVICE_INLINE
#if defined(__CUDACC__) || defined(__CUDA__)
#define NCCL_DEVICE_INLINE __device__ inline
#define NCCL_HOST_DEVICE_INLINE __host__ __device__ inline
#else
#define NCCL_DEVICE_INLINE inline
#define NCCL_HOST_DEVICE_INLINE inline
#endif
#endif

#ifndef NCCL_DEVICE_HAS_CUDA_ATOMIC
namespace cuda
{
enum memory_order {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
};
enum thread_scope {
    thread_scope_system,
    thread_scope_device,
    thread_scope_block,
    thread_scope_thread
};
} // namespace cuda
#endif

/* End the process: the kernel has called something that needs a device communicator. */
NCCL_HOST_DEVICE_INLINE void tuttiNoDeviceCall(const char *name)
{
#if defined(__CUDA_ARCH__)
    (void)name;
    __trap();
#else
    fprintf(stderr, "tutti: %s needs a device communicator, which a host device does not have\n",
            name);
    abort();
#endif
}

/* ---- cooperative groups: the threads that make a call together ---- */

struct ncclCoopThread {
    NCCL_HOST_DEVICE_INLINE int thread_rank() const { return 0; }
    NCCL_HOST_DEVICE_INLINE int size() const { return 1; }
    NCCL_HOST_DEVICE_INLINE int num_threads() const { return 1; }
    NCCL_HOST_DEVICE_INLINE void sync() {}
};

/* A host implementation of a kernel runs each block in one host thread, so a tile has one thread.
 */
template <int nThreads> struct ncclCoopTile {
#if defined(__CUDA_ARCH__)
    NCCL_DEVICE_INLINE int thread_rank() const
    {
        return (int)(threadIdx.x % nThreads);
    }
    NCCL_DEVICE_INLINE int size() const
    {
        return nThreads;
    }
    NCCL_DEVICE_INLINE int num_threads() const
    {
        return nThreads;
    }
    NCCL_DEVICE_INLINE void sync()
    {
        __syncwarp();
    }
#else
    NCCL_HOST_DEVICE_INLINE int thread_rank() const
    {
        return 0;
    }
    NCCL_HOST_DEVICE_INLINE int size() const
    {
        return 1;
    }
    NCCL_HOST_DEVICE_INLINE int num_threads() const
    {
        return 1;
    }
    NCCL_HOST_DEVICE_INLINE void sync() {}
#endif
};
typedef ncclCoopTile<32> ncclCoopWarp;

struct ncclCoopCta {
#if defined(__CUDA_ARCH__)
    NCCL_DEVICE_INLINE int thread_rank() const
    {
        return (int)threadIdx.x;
    }
    NCCL_DEVICE_INLINE int size() const
    {
        return (int)blockDim.x;
    }
    NCCL_DEVICE_INLINE int num_threads() const
    {
        return (int)blockDim.x;
    }
    NCCL_DEVICE_INLINE void sync()
    {
        __syncthreads();
    }
#else
    NCCL_HOST_DEVICE_INLINE int thread_rank() const
    {
        return 0;
    }
    NCCL_HOST_DEVICE_INLINE int size() const
    {
        return 1;
    }
    NCCL_HOST_DEVICE_INLINE int num_threads() const
    {
        return 1;
    }
    NCCL_HOST_DEVICE_INLINE void sync() {}
#endif
};

/* ---- teams ---- */

struct ncclTeamTagWorld {
};
struct ncclTeamTagLsa {
};
struct ncclTeamTagRail {
};

NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamWorld(const ncclDevComm &comm)
{
    ncclTeam team = {comm.nRanks, comm.rank, 1};
    return team;
}
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamLsa(const ncclDevComm &comm)
{
    ncclTeam team = {comm.lsaSize, comm.lsaRank, 1};
    return team;
}
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamRail(const ncclDevComm &comm)
{
    int stride = comm.lsaSize > 0 ? comm.lsaSize : 1;
    ncclTeam team = {comm.nRanks / stride, comm.rank / stride, stride};
    return team;
}
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToWorld(const ncclDevComm &comm, ncclTeam team, int rank)
{
    return comm.rank + (rank - team.rank) * team.stride;
}
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToLsa(const ncclDevComm &comm, ncclTeam team, int rank)
{
    return comm.lsaRank + (rank - team.rank) * team.stride;
}
/* The rank in team `to` of the process that is `rank` in team `from`. Both are teams of the calling
 * rank, and it must be a member of `to` (ncclTeamRankIsMember). */
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToTeam(ncclTeam to, ncclTeam from, int rank)
{
    return to.rank + (rank - from.rank) * from.stride / to.stride;
}
NCCL_HOST_DEVICE_INLINE bool ncclTeamRankIsMember(ncclTeam to, ncclTeam from, int rank)
{
    int distance = (rank - from.rank) * from.stride;
    int target = to.rank + distance / to.stride;
    return distance % to.stride == 0 && target >= 0 && target < to.nRanks;
}
/* The parent's ranks in blocks of `size`: the team of the own block (inner), and the team of the
 * ranks that have the same position in their blocks (outer). */
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamInnerFactor(ncclTeam parent, int size)
{
    ncclTeam team = {size, parent.rank % size, parent.stride};
    return team;
}
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamOuterFactor(ncclTeam parent, int size)
{
    ncclTeam team = {parent.nRanks / size, parent.rank / size, parent.stride * size};
    return team;
}

/* ---- addresses ---- */

/* The address of byte `offset` of a window's memory at rank `peer` of ncclTeamLsa(); NULL: this
 * process cannot reach it. */
NCCL_HOST_DEVICE_INLINE void *ncclGetLsaPointer(ncclWindow_t window, size_t offset, int peer)
{
    void *pointer = NULL;
#if defined(__CUDA_ARCH__)
    (void)window, (void)offset, (void)peer;
    tuttiNoDeviceCall("ncclGetLsaPointer");
#else
    if (ncclGetLsaDevicePointer(window, offset, peer, &pointer)) return NULL;
#endif
    return pointer;
}
/* The same for a rank of the communicator. The form with a team ends as device calls do that have
 * no meaning on a host (tuttiNoDeviceCall). */
NCCL_HOST_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, int peer)
{
    void *pointer = NULL;
#if defined(__CUDA_ARCH__)
    (void)window, (void)offset, (void)peer;
    tuttiNoDeviceCall("ncclGetPeerPointer");
#else
    if (ncclGetPeerDevicePointer(window, offset, peer, &pointer)) return NULL;
#endif
    return pointer;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, ncclTeam team,
                                                 int peer)
{
    (void)window, (void)offset, (void)team, (void)peer;
    tuttiNoDeviceCall("ncclGetPeerPointer with a team");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetLocalPointer(ncclWindow_t window, size_t offset)
{
    (void)window, (void)offset;
    tuttiNoDeviceCall("ncclGetLocalPointer");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetLsaMultimemPointer(ncclWindow_t window, size_t offset,
                                                        const ncclDevComm &comm)
{
    (void)window, (void)offset, (void)comm;
    tuttiNoDeviceCall("ncclGetLsaMultimemPointer");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetMultimemPointer(ncclWindow_t window, size_t offset,
                                                     ncclMultimemHandle handle)
{
    (void)window, (void)offset, (void)handle;
    tuttiNoDeviceCall("ncclGetMultimemPointer");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetResourceBufferLocalPointer(const ncclDevComm &comm,
                                                                ncclDevResourceHandle_t handle)
{
    (void)comm, (void)handle;
    tuttiNoDeviceCall("ncclGetResourceBufferLocalPointer");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *
ncclGetResourceBufferLsaPointer(const ncclDevComm &comm, ncclDevResourceHandle_t handle, int peer)
{
    (void)comm, (void)handle, (void)peer;
    tuttiNoDeviceCall("ncclGetResourceBufferLsaPointer");
    return NULL;
}
NCCL_HOST_DEVICE_INLINE void *ncclGetResourceBufferPeerPointer(const ncclDevComm &comm,
                                                               ncclDevResourceHandle_t handle,
                                                               ncclTeam team, int peer)
{
    (void)comm, (void)handle, (void)team, (void)peer;
    tuttiNoDeviceCall("ncclGetResourceBufferPeerPointer");
    return NULL;
}

/* ---- GIN: network operations that kernels start ---- */

enum class ncclGinFenceLevel { None, Relaxed, Put, Get };

enum ncclGinOptFlags {
    ncclGinOptFlagsDefault = 0,
    ncclGinOptFlagsMaySkipCreditCheck = 1,
    ncclGinOptFlagsAggregateRequests = 2
};

enum ncclGinResourceSharingMode {
    NCCL_GIN_RESOURCE_SHARING_THREAD,
    NCCL_GIN_RESOURCE_SHARING_WARP,
    NCCL_GIN_RESOURCE_SHARING_CTA,
    NCCL_GIN_RESOURCE_SHARING_GPU
};

struct ncclGin_None {
};
struct ncclGin_SignalInc {
    ncclGinSignal_t signal;
};
struct ncclGin_SignalAdd {
    ncclGinSignal_t signal;
    uint64_t value;
};
struct ncclGin_WeakSignalInc {
    ncclGinSignal_t signal;
};
struct ncclGin_CounterInc {
    ncclGinCounter_t counter;
};

/* Only the constructor works; every other call ends the process (tuttiNoDeviceCall). */
struct ncclGin {
    NCCL_HOST_DEVICE_INLINE
    ncclGin(const ncclDevComm &, int, ncclGinResourceSharingMode = NCCL_GIN_RESOURCE_SHARING_GPU) {}
    template <class Remote = ncclGin_None, class Local = ncclGin_None, class Coop = ncclCoopThread,
              class... Rest>
    NCCL_HOST_DEVICE_INLINE void put(ncclTeam, int, ncclWindow_t, size_t, ncclWindow_t, size_t,
                                     size_t, Remote = Remote(), Local = Local(), Coop = Coop(),
                                     Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::put");
    }
    template <class Value, class Remote = ncclGin_None, class Coop = ncclCoopThread, class... Rest>
    NCCL_HOST_DEVICE_INLINE void putValue(ncclTeam, int, ncclWindow_t, size_t, Value,
                                          Remote = Remote(), Coop = Coop(), Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::putValue");
    }
    template <class Coop = ncclCoopThread, class... Rest>
    NCCL_HOST_DEVICE_INLINE void get(ncclTeam, int, ncclWindow_t, size_t, ncclWindow_t, size_t,
                                     size_t, Coop = Coop(), Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::get");
    }
    template <class Remote, class Coop = ncclCoopThread, class... Rest>
    NCCL_HOST_DEVICE_INLINE void signal(ncclTeam, int, Remote, Coop = Coop(), Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::signal");
    }
    template <class Coop, class... Rest> NCCL_HOST_DEVICE_INLINE void flush(Coop, Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::flush");
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE uint64_t readSignal(ncclGinSignal_t, Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::readSignal");
        return 0;
    }
    template <class Coop, class... Rest>
    NCCL_HOST_DEVICE_INLINE void waitSignal(Coop, ncclGinSignal_t, uint64_t, Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::waitSignal");
    }
    NCCL_HOST_DEVICE_INLINE void resetSignal(ncclGinSignal_t) const
    {
        tuttiNoDeviceCall("ncclGin::resetSignal");
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE uint64_t readCounter(ncclGinCounter_t, Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::readCounter");
        return 0;
    }
    template <class Coop, class... Rest>
    NCCL_HOST_DEVICE_INLINE void waitCounter(Coop, ncclGinCounter_t, uint64_t, Rest...) const
    {
        tuttiNoDeviceCall("ncclGin::waitCounter");
    }
    NCCL_HOST_DEVICE_INLINE void resetCounter(ncclGinCounter_t) const
    {
        tuttiNoDeviceCall("ncclGin::resetCounter");
    }
};

/* ---- barriers between the kernels of ranks: only the constructors work ---- */

template <class Coop> struct ncclLsaBarrierSession {
    NCCL_HOST_DEVICE_INLINE ncclLsaBarrierSession(Coop, const ncclDevComm &, ncclTeam,
                                                  ncclLsaBarrierHandle, uint32_t, bool = false,
                                                  ncclMultimemHandle = ncclMultimemHandle())
    {
    }
    NCCL_HOST_DEVICE_INLINE ncclLsaBarrierSession(Coop, const ncclDevComm &, ncclTeamTagLsa,
                                                  uint32_t, bool = false)
    {
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE ncclResult_t sync(Coop, cuda::memory_order, Rest...)
    {
        tuttiNoDeviceCall("ncclLsaBarrierSession::sync");
        return ncclInvalidUsage;
    }
    NCCL_HOST_DEVICE_INLINE void arrive(Coop, cuda::memory_order)
    {
        tuttiNoDeviceCall("ncclLsaBarrierSession::arrive");
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE ncclResult_t wait(Coop, cuda::memory_order, Rest...)
    {
        tuttiNoDeviceCall("ncclLsaBarrierSession::wait");
        return ncclInvalidUsage;
    }
};

template <class Coop> struct ncclGinBarrierSession {
    NCCL_HOST_DEVICE_INLINE ncclGinBarrierSession(Coop, const ncclGin &, ncclTeam,
                                                  ncclGinBarrierHandle, uint32_t)
    {
    }
    template <class Tag>
    NCCL_HOST_DEVICE_INLINE ncclGinBarrierSession(Coop, const ncclGin &, Tag, uint32_t)
    {
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE ncclResult_t sync(Coop, cuda::memory_order, ncclGinFenceLevel, Rest...)
    {
        tuttiNoDeviceCall("ncclGinBarrierSession::sync");
        return ncclInvalidUsage;
    }
};

template <class Coop> struct ncclBarrierSession {
    template <class Tag>
    NCCL_HOST_DEVICE_INLINE ncclBarrierSession(Coop, Tag, const ncclGin &, uint32_t, bool = false)
    {
    }
    NCCL_HOST_DEVICE_INLINE ncclBarrierSession(Coop, ncclTeamTagLsa, const ncclDevComm &, uint32_t,
                                               bool = false)
    {
    }
    template <class... Rest>
    NCCL_HOST_DEVICE_INLINE ncclResult_t sync(Coop, cuda::memory_order, ncclGinFenceLevel, Rest...)
    {
        tuttiNoDeviceCall("ncclBarrierSession::sync");
        return ncclInvalidUsage;
    }
};

#endif /* __cplusplus */
#endif
