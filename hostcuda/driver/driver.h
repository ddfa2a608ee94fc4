/* What the files of the driver interface share. The interface is built into every face, so that a
 * runtime finds its functions without opening a library by name. */
#pragma once

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <stdbool.h>

/* The driver's name for a result of the device room: the same number but for a few. */
CUresult tt_driver_done(int rc);

static inline void *tt_driver_ptr(CUdeviceptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

/* cuInit() or a call of the runtime has come: until then the driver's functions answer 3. */
static inline bool tt_driver_started(void)
{
    return tuttiHostStarted();
}

/* 0 when `device` is one, else 100 or 101. */
int tt_driver_device(CUdevice device);

/* The stream that a caller means; files that use it are compiled twice (see face.h). */
static inline struct CUstream_st *tt_driver_stream(CUstream stream)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    return stream ? stream : CU_STREAM_PER_THREAD;
#else
    return stream;
#endif
}
