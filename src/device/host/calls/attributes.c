/* Launch attributes of streams, kept to be asked for. */
#include "device/host/stream/attributes.h"

#include "device/host/stream/stream.h"

#include <string.h>

int tuttiHostStreamAttributeSet(struct CUstream_st *handle, int id, const void *value)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    pthread_mutex_lock(&stream->lock);
    bool good = tt_host_attributes_set(&stream->attributes, id, value);
    pthread_mutex_unlock(&stream->lock);
    return good ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tuttiHostStreamAttributeGet(struct CUstream_st *handle, int id, void *value)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    pthread_mutex_lock(&stream->lock);
    const void *kept = tt_host_attributes_get(stream->attributes, id);
    if (kept) memcpy(value, kept, TT_ATTRIBUTE_BYTES);
    pthread_mutex_unlock(&stream->lock);
    return TT_HOST_OK;
}

int tuttiHostStreamAttributesCopy(struct CUstream_st *to, struct CUstream_st *from)
{
    struct CUstream_st *stream = tt_host_stream_find(to);
    struct CUstream_st *source = tt_host_stream_find(from);
    struct tt_host_attribute *copy = NULL;
    if (!stream || !source) return tt_host_bad_handle();
    pthread_mutex_lock(&source->lock);
    bool good = tt_host_attributes_copy(&copy, source->attributes);
    pthread_mutex_unlock(&source->lock);
    pthread_mutex_lock(&stream->lock);
    good = good && tt_host_attributes_copy(&stream->attributes, copy);
    pthread_mutex_unlock(&stream->lock);
    tt_host_attributes_free(copy);
    return good ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}
