/* Device code that a program links while it runs: pieces that can be read are put one behind the
 * other, which is all that a loader of ours needs, since kernels run what stands in for them. */
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/image/image.h"
#include "device/host/process/state.h"

#include <stdlib.h>
#include <string.h>

enum { TT_HOST_INVALID_IMAGE = 200 };

struct tt_host_link {
    struct tt_host_link *next;
    struct tt_host_linked_header *code; /* owned; the pieces lie behind it */
    bool complete;
};

/* Lock held. The link to it, or the one at the end. */
static struct tt_host_link **find_link(const struct tt_host_link *link)
{
    struct tt_host_link **at = &tt_host.libraries.links;
    while (*at && *at != link) {
        at = &(*at)->next;
    }
    return at;
}

int tuttiHostLinkCreate(struct tt_host_link **link_out)
{
    struct tt_host_link *link = calloc(1, sizeof(*link));
    if (link) link->code = calloc(1, sizeof(*link->code));
    if (!link || !link->code) {
        free(link);
        return TT_HOST_OUT_OF_MEMORY;
    }
    link->code->magic = TT_HOST_LINKED_MAGIC;
    pthread_mutex_lock(&tt_host.libraries.lock);
    link->next = tt_host.libraries.links;
    tt_host.libraries.links = link;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    *link_out = link;
    return TT_HOST_OK;
}

/* Lock held. */
static int append(struct tt_host_link *link, const void *code, uint64_t bytes)
{
    if (link->complete) return TT_HOST_INVALID_VALUE;
    size_t before = sizeof(*link->code) + link->code->bytes;
    char *wider = realloc(link->code, before + sizeof(bytes) + bytes);
    if (!wider) return TT_HOST_OUT_OF_MEMORY;
    link->code = (struct tt_host_linked_header *)(void *)wider;
    memcpy(wider + before, &bytes, sizeof(bytes));
    memcpy(wider + before + sizeof(bytes), code, bytes);
    link->code->bytes += sizeof(bytes) + bytes;
    link->code->count++;
    return TT_HOST_OK;
}

int tuttiHostLinkAdd(struct tt_host_link *link, const void *code, size_t bytes)
{
    const char *why = NULL;
    pthread_mutex_lock(&tt_host.libraries.lock);
    bool found = *find_link(link);
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    struct tt_host_image *image = tt_host_image_open(code, bytes, &why);
    if (!image) {
        tuttiHostWarn("tutti: device code cannot be read: %s", why);
        return TT_HOST_INVALID_IMAGE;
    }
    tt_host_image_close(image);
    pthread_mutex_lock(&tt_host.libraries.lock);
    int rc = *find_link(link) ? append(link, code, bytes) : TT_HOST_BAD_HANDLE;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    return rc;
}

int tuttiHostLinkComplete(struct tt_host_link *link, const void **code_out, size_t *bytes_out)
{
    pthread_mutex_lock(&tt_host.libraries.lock);
    bool found = *find_link(link);
    bool good = found && link->code->count;
    if (good) {
        link->complete = true;
        *code_out = link->code;
        *bytes_out = sizeof(*link->code) + link->code->bytes;
    }
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostLinkDestroy(struct tt_host_link *link)
{
    pthread_mutex_lock(&tt_host.libraries.lock);
    struct tt_host_link **at = find_link(link);
    bool found = *at;
    if (found) *at = link->next;
    pthread_mutex_unlock(&tt_host.libraries.lock);
    if (!found) return tt_host_bad_handle();
    free(link->code);
    free(link);
    return TT_HOST_OK;
}
