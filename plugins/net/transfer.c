/* Messages. One of a connection is fi_tsend and fi_trecv with the tag <number of the connection at
 * its receiver, tag of the message>: messages of a tag stay in order. */
#include "ofi.h"

#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

static void *desc_of(void *mhandle)
{
    return mhandle ? fi_mr_desc(mhandle) : NULL;
}

ncclResult_t ofi_reg(void *opaque, void *data, size_t bytes, int type, void **mhandle)
{
    struct ofi_comm *comm = opaque;
    struct ofi_domain *domain = comm->domain;
    struct fid_mr *mr = NULL;
    if (type != NCCL_PTR_HOST)
        return ofi_fail(ncclInvalidUsage, "memory of the host only; this is of type %d", type);
    pthread_mutex_lock(&domain->lock);
    int rc = fi_mr_reg(domain->domain, data, bytes, FI_SEND | FI_RECV, 0, domain->next_key++, 0,
                       &mr, NULL);
    pthread_mutex_unlock(&domain->lock);
    if (rc) {
        return ofi_fail(ncclSystemError, "%s over %s: registration of %zu bytes: %s",
                        domain->device->name, domain->device->provider, bytes, fi_strerror(-rc));
    }
    *mhandle = mr;
    return ncclSuccess;
}

ncclResult_t ofi_dereg(void *opaque, void *mhandle)
{
    const struct ofi_comm *comm = opaque;
    struct fid_mr *mr = mhandle;
    if (!mr) return ncclSuccess;
    pthread_mutex_lock(&comm->domain->lock);
    int rc = fi_close(&mr->fid);
    pthread_mutex_unlock(&comm->domain->lock);
    return rc ? ofi_fail(ncclSystemError, "a registration cannot be ended: %s", fi_strerror(-rc))
              : ncclSuccess;
}

/* NULL with *rc at success: ask again. */
static struct ofi_request *begin(struct ofi_comm *comm, int parts, ncclResult_t *rc)
{
    *rc = comm->failed;
    if (!*rc && !comm->endpoint->ep) *rc = ofi_comm_look(comm);
    if (*rc || comm->in_flight + parts > OFI_IN_FLIGHT) return NULL;
    struct ofi_request *request = ofi_request_take(comm->endpoint);
    if (!request) {
        *rc = ofi_fail(ncclSystemError, "out of memory");
        return NULL;
    }
    request->comm = comm;
    request->parts = request->left = parts;
    request->error = 0;
    return request;
}

static void start(struct ofi_comm *comm, struct ofi_request *request)
{
    request->next = comm->requests;
    comm->requests = request;
    comm->in_flight += request->parts;
}

/* libfabric did not take it. */
static ncclResult_t refused(struct ofi_comm *comm, struct ofi_request *request, ssize_t posted)
{
    ofi_request_give(comm->endpoint, request);
    if (posted != -FI_EAGAIN)
        return ofi_comm_fail(comm, ncclRemoteError, fi_strerror((int)-posted));
    ofi_endpoint_progress(comm->endpoint); /* that is how there will be room */
    return ofi_comm_look(comm);
}

/* hot */
ncclResult_t ofi_isend(void *opaque, void *data, size_t bytes, int tag, void *mhandle,
                       void **request_out)
{
    struct ofi_comm *comm = opaque;
    ncclResult_t rc = ncclSuccess;
    *request_out = NULL;
    if (bytes > MAX_NET_SIZE)
        return ofi_fail(ncclInvalidArgument, "a message of %zu bytes, at most 1 GiB", bytes);
    pthread_mutex_lock(&comm->domain->lock);
    struct ofi_request *request = begin(comm, 1, &rc);
    if (request && !ofi_comm_may_send(comm, tag)) {
        rc = refused(comm, request, -FI_EAGAIN);
    } else if (request) {
        request->tags[0] = tag;
        request->sizes[0] = (int)bytes;
        ssize_t posted = ofi_comm_post(comm, request, 0, data, bytes, desc_of(mhandle));
        if (!posted) {
            start(comm, request);
            ofi_comm_count(comm, tag);
            *request_out = request;
        } else {
            rc = refused(comm, request, posted);
        }
    }
    pthread_mutex_unlock(&comm->domain->lock);
    return rc;
}

/* hot */
ncclResult_t ofi_irecv(void *opaque, const struct ofi_group *group, void **request_out)
{
    struct ofi_comm *comm = opaque;
    ncclResult_t rc = ncclSuccess;
    *request_out = NULL;
    if (group->n < 1 || group->n > OFI_PARTS) {
        return ofi_fail(ncclInvalidArgument, "%d receives in a group, at most %d", group->n,
                        OFI_PARTS);
    }
    pthread_mutex_lock(&comm->domain->lock);
    struct ofi_request *request = begin(comm, group->n, &rc);
    ssize_t posted = 0;
    int part = 0;
    while (request && !posted && part < group->n) {
        void *mhandle = group->mhandles ? group->mhandles[part] : NULL;
        request->tags[part] = group->tags[part];
        posted = ofi_comm_post(comm, request, part, group->data[part], group->sizes[part],
                               desc_of(mhandle));
        if (!posted) ofi_comm_posted(comm, group->tags[part++]);
    }
    if (request && posted && !part) {
        rc = refused(comm, request, posted);
    } else if (request) {
        request->left -= group->n - part;
        start(comm, request);
        *request_out = request;
    }
    /* cannot be: an endpoint has room for all messages of its connections */
    if (request && posted && part) rc = ofi_comm_fail(comm, ncclInternalError, "part of a group");
    if (rc) *request_out = NULL;
    pthread_mutex_unlock(&comm->domain->lock);
    return rc;
}

static void take_out(struct ofi_comm *comm, struct ofi_request *request)
{
    struct ofi_request **at = &comm->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    comm->in_flight -= request->parts;
    ofi_request_give(comm->endpoint, request);
}

static ncclResult_t finish(struct ofi_comm *comm, struct ofi_request *request, int *sizes)
{
    if (request->error == FI_ETRUNC)
        return ofi_comm_fail(comm, ncclInvalidUsage, "a message is larger than its receive");
    if (request->error) return ofi_comm_fail(comm, ncclRemoteError, fi_strerror(request->error));
    for (int i = 0; i < request->parts; i++) {
        if (sizes) sizes[i] = request->sizes[i];
        if (!comm->sending) ofi_comm_count(comm, request->tags[i]);
    }
    take_out(comm, request);
    return ncclSuccess;
}

/* hot */
ncclResult_t ofi_test(void *opaque, int *done, int *sizes)
{
    struct ofi_request *request = opaque;
    struct ofi_comm *comm = request->comm;
    struct ofi_domain *domain = comm->domain;
    *done = 0;
    pthread_mutex_lock(&domain->lock);
    if (request->left) ofi_endpoint_progress(comm->endpoint);
    ncclResult_t rc = comm->failed;
    if (!rc && request->left) {
        rc = ofi_comm_look(comm);
    } else if (!rc) {
        rc = finish(comm, request, sizes);
        *done = !rc;
    }
    pthread_mutex_unlock(&domain->lock);
    return rc;
}
