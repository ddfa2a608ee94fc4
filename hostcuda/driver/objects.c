/* The driver interface: streams and events as objects, and the thread's capture mode. */
#include "driver.h"

#include "device/host/host_graph.h"

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = tt_driver_device(tuttiHostGetDevice());
    if (!rc && !stream) rc = CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(rc ? rc : tuttiHostStreamCreate(flags, priority, stream));
}

CUresult cuStreamDestroy(CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    bool is_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    return tt_driver_done(is_default ? (int)CUDA_ERROR_INVALID_HANDLE
                                     : tuttiHostStreamDestroy(stream));
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(event ? tuttiHostEventCreate(flags, event)
                                : (int)CUDA_ERROR_INVALID_VALUE);
}

CUresult cuEventDestroy(CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostEventDestroy(event));
}

CUresult cuEventQuery(CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostEventQuery(event));
}

CUresult cuEventSynchronize(CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostEventSynchronize(event));
}

CUresult cuEventElapsedTime(float *msec, CUevent start, CUevent end)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!msec) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostEventElapsed(msec, start, end));
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int number = mode ? (int)*mode : -1;
    int rc = mode ? tuttiHostCaptureMode(&number) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *mode = (CUstreamCaptureMode)number;
    return tt_driver_done(rc);
}
