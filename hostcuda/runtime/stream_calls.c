/* What happens on a stream: waiting, host functions, event records, questions. Compiled twice, for
 * the legacy and the per-thread default stream. */
#include "../shared/face.h"

#include <stdlib.h>
#include <string.h>

/* hot */
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const int rc = tuttiHostStreamSynchronize(tt_face_stream(stream));
    return rc ? tt_face_done(rc) : cudaSuccess;
}

/* hot */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const int rc = tuttiHostStreamQuery(tt_face_stream(stream));
    return rc ? tt_face_done(rc) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    if (flags & ~(unsigned)cudaEventWaitExternal) return tt_face_done(cudaErrorInvalidValue);
    if (flags & cudaEventWaitExternal)
        return tt_face_done(tuttiHostStreamWaitExternal(tt_face_stream(stream), event));
    return tt_face_done(tuttiHostStreamWaitEvent(tt_face_stream(stream), event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user_data)
{
    if (!fn) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostCall(tt_face_stream(stream), fn, user_data));
}

struct callback {
    cudaStreamCallback_t fn;
    cudaStream_t stream;
    void *user_data;
};

static void run_callback(void *arg)
{
    struct callback *callback = arg;
    callback->fn(callback->stream, cudaSuccess, callback->user_data);
    free(callback);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t fn, void *user_data,
                                  unsigned int flags)
{
    struct tt_stream_info info;
    if (!fn || flags) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostStreamInfo(tt_face_stream(stream), &info);
    if (!rc && info.capturing) rc = tuttiHostStreamQuery(tt_face_stream(stream)); /* refuses */
    if (rc) return tt_face_done(rc);
    struct callback *callback = malloc(sizeof(*callback));
    if (!callback) return tt_face_done(cudaErrorMemoryAllocation);
    *callback = (struct callback){fn, stream, user_data};
    rc = tuttiHostCall(tt_face_stream(stream), run_callback, callback);
    if (rc) free(callback);
    return tt_face_done(rc);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return tt_face_done(tuttiHostEventRecord(event, tt_face_stream(stream)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    if (flags & ~(unsigned)cudaEventRecordExternal) return tt_face_done(cudaErrorInvalidValue);
    if (flags & cudaEventRecordExternal)
        return tt_face_done(tuttiHostEventRecordExternal(event, tt_face_stream(stream)));
    return tt_face_done(tuttiHostEventRecord(event, tt_face_stream(stream)));
}

/* ---- questions ---- */

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    if (!flags) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostStreamFlags(tt_face_stream(stream), flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    if (!priority) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostStreamPriority(tt_face_stream(stream), priority));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    struct tt_stream_info info;
    int rc = id ? tuttiHostStreamInfo(tt_face_stream(stream), &info) : cudaErrorInvalidValue;
    if (!rc) *id = info.stream_id;
    return tt_face_done(rc);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    struct tt_stream_info info;
    int rc = device ? tuttiHostStreamInfo(tt_face_stream(stream), &info) : cudaErrorInvalidValue;
    if (!rc) *device = info.device;
    return tt_face_done(rc);
}

/* ---- attributes: kept, and but for the priority they change nothing ---- */

_Static_assert(sizeof(cudaLaunchAttributeValue) == TT_ATTRIBUTE_BYTES, "a value is kept whole");

static bool of_streams(cudaLaunchAttributeID attr)
{
    return attr == cudaLaunchAttributeSynchronizationPolicy ||
           attr == cudaLaunchAttributePriority || attr == cudaLaunchAttributeAccessPolicyWindow ||
           attr == cudaLaunchAttributeMemSyncDomainMap || attr == cudaLaunchAttributeMemSyncDomain;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaLaunchAttributeID attr,
                                   cudaLaunchAttributeValue *value)
{
    struct CUstream_st *stream = tt_face_stream(handle);
    cudaLaunchAttributeValue found = {0};
    if (!value || !of_streams(attr)) return tt_face_done(cudaErrorInvalidValue);
    if (attr == cudaLaunchAttributeSynchronizationPolicy) found.syncPolicy = cudaSyncPolicyAuto;
    if (attr == cudaLaunchAttributeMemSyncDomainMap) found.memSyncDomainMap.remote = 1;
    int rc = tuttiHostStreamAttributeGet(stream, (int)attr, &found);
    if (!rc && attr == cudaLaunchAttributePriority)
        rc = tuttiHostStreamPriority(stream, &found.priority);
    if (!rc) *value = found;
    return tt_face_done(rc);
}

static bool is_policy(enum cudaSynchronizationPolicy policy)
{
    return policy >= cudaSyncPolicyAuto && policy <= cudaSyncPolicyBlockingSync;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaLaunchAttributeID attr,
                                   const cudaLaunchAttributeValue *value)
{
    struct CUstream_st *stream = tt_face_stream(handle);
    if (!value || !of_streams(attr)) return tt_face_done(cudaErrorInvalidValue);
    if (attr == cudaLaunchAttributeSynchronizationPolicy && !is_policy(value->syncPolicy))
        return tt_face_done(cudaErrorInvalidValue);
    if (attr == cudaLaunchAttributePriority)
        return tt_face_done(tuttiHostStreamPrioritySet(stream, value->priority));
    return tt_face_done(tuttiHostStreamAttributeSet(stream, (int)attr, value));
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    struct CUstream_st *to = tt_face_stream(dst);
    struct CUstream_st *from = tt_face_stream(src);
    int priority = 0;
    int rc = tuttiHostStreamPriority(from, &priority);
    if (!rc) rc = tuttiHostStreamPrioritySet(to, priority);
    return tt_face_done(rc ? rc : tuttiHostStreamAttributesCopy(to, from));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t len, unsigned int flags)
{
    struct tt_stream_info info;
    struct tt_pointer found = {.kind = TT_MEMORY_FOREIGN};
    int rc = tuttiHostStreamInfo(tt_face_stream(stream), &info);
    if (!rc && info.capturing) rc = cudaErrorStreamCaptureUnsupported;
    if (!rc) rc = tuttiHostPointer(ptr, &found);
    bool whole =
        found.kind == TT_MEMORY_MANAGED && found.base == ptr && (len == 0 || len == found.bytes);
    bool known =
        flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
    if (!rc && (!whole || !known)) rc = cudaErrorInvalidValue;
    return tt_face_done(rc);
}
