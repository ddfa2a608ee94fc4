/* The driver interface: what happens on a stream. Compiled twice, for the legacy and the per-thread
 * default stream. */
#include "../shared/shared.h"
#include "driver.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"

#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

CUresult cuStreamSynchronize(CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostStreamSynchronize(tt_driver_stream(stream)));
}

CUresult cuStreamQuery(CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostStreamQuery(tt_driver_stream(stream)));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags & ~1U) return CUDA_ERROR_INVALID_VALUE;
    if (flags) return tt_driver_done(tuttiHostStreamWaitExternal(tt_driver_stream(stream), event));
    return tt_driver_done(tuttiHostStreamWaitEvent(tt_driver_stream(stream), event));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostEventRecord(event, tt_driver_stream(stream)));
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user_data)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!fn) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostCall(tt_driver_stream(stream), fn, user_data));
}

/* ---- copies ---- */

static int check_copy(const void *dst, const void *src, size_t len)
{
    return len && (!dst || !src) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static int copy(CUstream stream, void *dst, const void *src, size_t len)
{
    int rc = check_copy(dst, src, len);
    return rc ? rc : tuttiHostCopyBytes(tt_driver_stream(stream), dst, src, len);
}

static CUresult copy_now(void *dst, const void *src, size_t len)
{
    int rc = tuttiHostCaptureUnsafe() ? (int)CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    if (!rc) rc = check_copy(dst, src, len);
    return tt_driver_done(rc ? rc : tuttiHostCopyBytesNow(tt_driver_stream(NULL), dst, src, len));
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_now(tt_driver_ptr(dst), tt_driver_ptr(src), len);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_now(tt_driver_ptr(dst), src, len);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_now(dst, tt_driver_ptr(src), len);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_now(tt_driver_ptr(dst), tt_driver_ptr(src), len);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(copy(stream, tt_driver_ptr(dst), tt_driver_ptr(src), len));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(copy(stream, tt_driver_ptr(dst), src, len));
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(copy(stream, dst, tt_driver_ptr(src), len));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(copy(stream, tt_driver_ptr(dst), tt_driver_ptr(src), len));
}

/* ---- words in memory: written and waited for in stream order ---- */

struct word {
    struct tt_item item;
    struct tt_word what;
};

static enum tt_step word_step(struct tt_item *item, enum tt_item_call call)
{
    struct word *word = (struct word *)item;
    if (call == TT_ITEM_RELEASE) {
        free(word);
        return TT_STEP_DONE;
    }
    const struct tt_word *what = &word->what;
    if (call == TT_ITEM_TOUCH) {
        tuttiHostTouchWord(what);
        return TT_STEP_DONE;
    }
    if (what->waits)
        return tuttiHostWordHolds(what, tuttiHostWordNow(what)) ? TT_STEP_DONE : TT_STEP_WAIT;
    void *at = tuttiHostView(what->address);
    if (what->wide) {
        __atomic_store_n((uint64_t *)at, what->value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t *)at, (uint32_t)what->value, __ATOMIC_RELEASE);
    }
    return TT_STEP_DONE;
}

/* What no library of ours knows must at least be memory. */
static bool is_memory(const struct tt_word *what, size_t bytes)
{
    struct tt_pointer where = {.kind = TT_MEMORY_FOREIGN};
    tuttiHostLocate(what->address, &where);
    return where.kind != TT_MEMORY_FOREIGN || tuttiHostIsThere(what->address, bytes);
}

static int check_word(const struct tt_word *what)
{
    size_t bytes = what->wide ? 8 : 4;
    bool good = what->address && (uintptr_t)what->address % bytes == 0 && tuttiHostWordFits(what) &&
                is_memory(what, bytes);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int submit_word(CUstream stream, const struct tt_word *what)
{
    int rc = check_word(what);
    if (rc) return rc;
    struct word *word = malloc(sizeof(*word));
    if (!word) return CUDA_ERROR_OUT_OF_MEMORY;
    *word = (struct word){.item = {.step = word_step, .reports_touches = true}, .what = *what};
    rc = tuttiHostSubmit(tt_driver_stream(stream), &word->item, true);
    if (rc) free(word);
    return rc;
}

static int write_of(CUdeviceptr ptr, uint64_t value, unsigned flags, struct tt_word *word)
{
    if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
    word->address = tt_driver_ptr(ptr);
    word->value = value;
    return CUDA_SUCCESS;
}

static int wait_of(CUdeviceptr ptr, uint64_t value, unsigned flags, struct tt_word *word)
{
    unsigned compare = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    if (compare > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
    word->address = tt_driver_ptr(ptr);
    word->value = value;
    word->compare = compare;
    word->waits = true;
    return CUDA_SUCCESS;
}

static CUresult write_word(CUstream stream, CUdeviceptr ptr, uint64_t value, bool wide,
                           unsigned flags)
{
    struct tt_word word = {.wide = wide};
    int rc = write_of(ptr, value, flags, &word);
    return tt_driver_done(rc ? rc : submit_word(stream, &word));
}

static CUresult wait_word(CUstream stream, CUdeviceptr ptr, uint64_t value, bool wide,
                          unsigned flags)
{
    struct tt_word word = {.wide = wide};
    int rc = wait_of(ptr, value, flags, &word);
    return tt_driver_done(rc ? rc : submit_word(stream, &word));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value,
                              unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return write_word(stream, ptr, value, false, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value,
                              unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return write_word(stream, ptr, value, true, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return wait_word(stream, ptr, value, false, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return wait_word(stream, ptr, value, true, flags);
}

/* 0 without an address: the operation is none on words, since stores are ordered. */
static int batch_word(const CUstreamBatchMemOpParams *op, struct tt_word *word)
{
    *word = (struct tt_word){.wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                                     op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64};
    int rc = CUDA_ERROR_INVALID_VALUE;
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        rc = wait_of(op->waitValue.address, op->waitValue.value, op->waitValue.flags, word);
        break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        rc = wait_of(op->waitValue.address, op->waitValue.value64, op->waitValue.flags, word);
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        rc = write_of(op->writeValue.address, op->writeValue.value, op->writeValue.flags, word);
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        rc = write_of(op->writeValue.address, op->writeValue.value64, op->writeValue.flags, word);
        break;
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_SUCCESS;
    }
    return rc ? rc : check_word(word);
}

/* One that is refused leaves nothing on the stream. */
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
                            unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_word word;
    int rc = ops && !flags && count <= 256 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !rc && i < count; i++) {
        rc = batch_word(&ops[i], &word);
    }
    for (unsigned i = 0; !rc && i < count; i++) {
        rc = batch_word(&ops[i], &word);
        if (!rc && word.address) rc = submit_word(stream, &word);
    }
    return tt_driver_done(rc);
}

/* ---- capture ---- */

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    enum cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
    struct tt_face_capture out = {.status = &found};
    int rc = status ? tt_face_capture_info(tt_driver_stream(stream), &out)
                    : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *status = (CUstreamCaptureStatus)found;
    return tt_driver_done(rc);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **dependencies,
                                const CUgraphEdgeData **edges, size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    enum cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
    const cudaGraphEdgeData *data = NULL;
    unsigned long long number = 0;
    struct tt_face_capture out = {&found, &number, graph, dependencies, &data, count};
    int rc = status ? tt_face_capture_info(tt_driver_stream(stream), &out)
                    : (int)CUDA_ERROR_INVALID_VALUE;
    if (rc) return tt_driver_done(rc);
    *status = (CUstreamCaptureStatus)found;
    if (id) *id = number;
    if (edges) *edges = (const CUgraphEdgeData *)data;
    return CUDA_SUCCESS;
}
/* NOLINTEND(readability-non-const-parameter): as above */
