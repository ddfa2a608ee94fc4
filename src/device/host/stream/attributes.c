/* Launch attributes: values by number, and those of streams. None of them changes how work runs. */
#include "attributes.h"

#include "stream.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

static struct host_attribute *find(struct host_attribute *list, int id)
{
    while (list && list->id != id) {
        list = list->next;
    }
    return list;
}

bool host_attributes_set(struct host_attribute **list, int id, const void *value)
{
    struct host_attribute *one = find(*list, id);
    if (!one) {
        one = calloc(1, sizeof(*one));
        if (!one) return false;
        one->id = id;
        one->next = *list;
        *list = one;
    }
    memcpy(one->value, value, sizeof(one->value));
    return true;
}

const void *host_attributes_get(const struct host_attribute *list, int id)
{
    while (list && list->id != id) {
        list = list->next;
    }
    return list ? list->value : NULL;
}

bool host_attributes_copy(struct host_attribute **to, const struct host_attribute *from)
{
    bool good = true;
    for (; from && good; from = from->next) {
        good = host_attributes_set(to, from->id, from->value);
    }
    return good;
}

void host_attributes_free(struct host_attribute *list)
{
    while (list) {
        struct host_attribute *next = list->next;
        free(list);
        list = next;
    }
}

/* ---- of streams ---- */

int tuttiHostStreamAttributeSet(struct CUstream_st *handle, int id, const void *value)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    pthread_mutex_lock(&stream->lock);
    bool good = host_attributes_set(&stream->attributes, id, value);
    pthread_mutex_unlock(&stream->lock);
    return good ? HOST_OK : HOST_OUT_OF_MEMORY;
}

int tuttiHostStreamAttributeGet(struct CUstream_st *handle, int id, void *value)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    pthread_mutex_lock(&stream->lock);
    const void *kept = host_attributes_get(stream->attributes, id);
    if (kept) memcpy(value, kept, TT_ATTRIBUTE_BYTES);
    pthread_mutex_unlock(&stream->lock);
    return HOST_OK;
}

int tuttiHostStreamAttributesCopy(struct CUstream_st *to, struct CUstream_st *from)
{
    struct CUstream_st *stream = host_stream_find(to);
    struct CUstream_st *source = host_stream_find(from);
    struct host_attribute *copy = NULL;
    if (!stream || !source) return host_bad_handle();
    pthread_mutex_lock(&source->lock);
    bool good = host_attributes_copy(&copy, source->attributes);
    pthread_mutex_unlock(&source->lock);
    pthread_mutex_lock(&stream->lock);
    good = good && host_attributes_copy(&stream->attributes, copy);
    pthread_mutex_unlock(&stream->lock);
    host_attributes_free(copy);
    return good ? HOST_OK : HOST_OUT_OF_MEMORY;
}
