/* Streams and events as objects: made, destroyed, asked. What happens on a stream is in
 * stream_calls.c. */
#include "../shared/face.h"

static int create_stream(cudaStream_t *stream, unsigned flags, int priority)
{
    int rc = tt_face_device(tuttiHostGetDevice());
    if (!rc && (!stream || (flags & ~(unsigned)cudaStreamNonBlocking))) rc = cudaErrorInvalidValue;
    if (priority > 0) priority = 0;
    if (priority < -5) priority = -5;
    return rc ? rc : tuttiHostStreamCreate(flags, priority, stream);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return tt_face_done(create_stream(stream, cudaStreamDefault, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return tt_face_done(create_stream(stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return tt_face_done(create_stream(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    bool is_default = !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    return tt_face_done(is_default ? cudaErrorInvalidResourceHandle
                                   : tuttiHostStreamDestroy(stream));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    int rc = tt_face_device(tuttiHostGetDevice());
    if (!rc && !event) rc = cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : tuttiHostEventCreate(flags, event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return tt_face_done(tuttiHostEventDestroy(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return tt_face_done(tuttiHostEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return tt_face_done(tuttiHostEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *msec, cudaEvent_t start, cudaEvent_t end)
{
    if (!msec) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostEventElapsed(msec, start, end));
}
