/* Domains and endpoints of libfabric, and the requests that are under way on them. An endpoint
 * takes only as many connections as its queues have room for, if each has OFI_IN_FLIGHT messages
 * under way; then there is another one. So posting is refused for a while at most. */
#include "ofi.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLETIONS = 16 };

static ncclResult_t failed(const struct ofi_device *device, const char *function, ssize_t rc)
{
    return ofi_fail(ncclSystemError, "%s failed for device %s over %s: %s", function, device->name,
                    device->provider, fi_strerror((int)-rc));
}

/* ---- domains ---- */

static void domain_close(struct ofi_domain *domain)
{
    if (domain->domain) fi_close(&domain->domain->fid);
    if (domain->fabric) fi_close(&domain->fabric->fid);
    pthread_mutex_destroy(&domain->lock);
    free(domain);
}

static ncclResult_t domain_open(const struct ofi_device *device, struct ofi_domain **domain_out)
{
    struct ofi_domain *domain = calloc(1, sizeof(*domain));
    if (!domain) return ofi_fail(ncclSystemError, "out of memory");
    domain->device = device;
    domain->next_key = 1;
    pthread_mutex_init(&domain->lock, NULL);
    const char *function = "fi_fabric";
    int rc = fi_fabric(device->info->fabric_attr, &domain->fabric, NULL);
    if (!rc) {
        function = "fi_domain";
        rc = fi_domain(domain->fabric, device->info, &domain->domain, NULL);
    }
    if (!rc) {
        *domain_out = domain;
        return ncclSuccess;
    }
    domain_close(domain);
    return failed(device, function, rc);
}

ncclResult_t ofi_domain_acquire(struct ofi_net *net, int dev, struct ofi_domain **domain_out)
{
    ncclResult_t rc = ncclSuccess;
    struct ofi_domain *domain = NULL;
    pthread_mutex_lock(&ofi_process.lock);
    if (dev < 0 || dev >= ofi_process.ndevices) {
        rc = ofi_fail(ncclInvalidArgument, "there is no device %d", dev);
    } else if (!net->domains[dev]) {
        rc = domain_open(&ofi_process.devices[dev], &domain);
        if (!rc && domain) {
            domain->net = net;
            net->domains[dev] = domain;
        }
    }
    if (!rc) {
        domain = net->domains[dev];
        domain->users++;
        *domain_out = domain;
    }
    pthread_mutex_unlock(&ofi_process.lock);
    return rc;
}

void ofi_domain_share(struct ofi_domain *domain)
{
    pthread_mutex_lock(&ofi_process.lock);
    domain->users++;
    pthread_mutex_unlock(&ofi_process.lock);
}

/* The process's lock is held. */
static void domain_retire(struct ofi_domain *domain)
{
    struct ofi_domain **entry = &domain->net->domains[domain->device - ofi_process.devices];
    if (*entry == domain) *entry = NULL;
}

void ofi_domain_release(struct ofi_domain *domain)
{
    pthread_mutex_lock(&ofi_process.lock);
    if (--domain->users == 0) {
        domain_retire(domain);
        if (domain->left) {
            domain->next = ofi_process.left;
            ofi_process.left = domain;
        } else {
            domain_close(domain);
        }
    }
    pthread_mutex_unlock(&ofi_process.lock);
}

/* ---- endpoints ---- */

/* libfabric's tcp touches memory in its calls alone, and closing its endpoint in the middle of a
 * large message is a crash in libfabric 1.17: it is left as it is, and so is all that might be
 * moved by the same calls. Devices write by themselves until they are closed. */
void ofi_endpoint_break(struct ofi_endpoint *endpoint)
{
    struct ofi_domain *domain = endpoint->domain;
    if (!endpoint->ep) return;
    if (strncmp(domain->device->provider, "tcp", 3) != 0) {
        fi_close(&endpoint->ep->fid);
        endpoint->ep = NULL;
        return;
    }
    domain->left = true;
    for (struct ofi_endpoint *one = domain->endpoints; one; one = one->next) {
        one->left_ep = one->ep;
        one->ep = NULL;
    }
    pthread_mutex_lock(&ofi_process.lock);
    domain_retire(domain); /* who connects next gets another one */
    pthread_mutex_unlock(&ofi_process.lock);
}

static void endpoint_close(struct ofi_endpoint *endpoint)
{
    if (endpoint->ep) fi_close(&endpoint->ep->fid);
    if (endpoint->cq) fi_close(&endpoint->cq->fid);
    if (endpoint->av) fi_close(&endpoint->av->fid);
    while (endpoint->memory) {
        struct ofi_requests *memory = endpoint->memory;
        endpoint->memory = memory->next;
        free(memory);
    }
    free(endpoint->peers);
    free(endpoint);
}

/* Failures are reported with the name of the function. */
static ncclResult_t endpoint_open(struct ofi_domain *domain, struct ofi_endpoint *endpoint)
{
    struct fi_info *info = domain->device->info;
    size_t address_bytes = sizeof(endpoint->address);
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED,
                               .wait_obj = FI_WAIT_NONE,
                               .size = info->tx_attr->size + info->rx_attr->size};
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    int rc = fi_endpoint(domain->domain, info, &endpoint->ep, NULL);
    if (rc) return failed(domain->device, "fi_endpoint", rc);
    rc = fi_cq_open(domain->domain, &queue, &endpoint->cq, NULL);
    if (rc) return failed(domain->device, "fi_cq_open", rc);
    rc = fi_av_open(domain->domain, &addresses, &endpoint->av, NULL);
    if (rc) return failed(domain->device, "fi_av_open", rc);
    rc = fi_ep_bind(endpoint->ep, &endpoint->cq->fid, FI_TRANSMIT | FI_RECV);
    if (!rc) rc = fi_ep_bind(endpoint->ep, &endpoint->av->fid, 0);
    if (rc) return failed(domain->device, "fi_ep_bind", rc);
    rc = fi_enable(endpoint->ep);
    if (rc) return failed(domain->device, "fi_enable", rc);
    rc = fi_getname(&endpoint->ep->fid, endpoint->address, &address_bytes);
    return rc ? failed(domain->device, "fi_getname", rc) : ncclSuccess;
}

ncclResult_t ofi_endpoint_acquire(struct ofi_domain *domain, bool sending,
                                  struct ofi_endpoint **endpoint_out)
{
    const struct fi_info *info = domain->device->info;
    struct ofi_endpoint *endpoint = domain->endpoints;
    if (domain->left) {
        return ofi_fail(ncclInternalError, "device %s: its connections have ended",
                        domain->device->name);
    }
    while (endpoint && (!endpoint->ep || endpoint->users[sending] == endpoint->most))
        endpoint = endpoint->next;
    if (!endpoint) {
        size_t room =
            info->rx_attr->size < info->tx_attr->size ? info->rx_attr->size : info->tx_attr->size;
        endpoint = calloc(1, sizeof(*endpoint));
        if (!endpoint) return ofi_fail(ncclSystemError, "out of memory");
        endpoint->domain = domain;
        endpoint->most = room > OFI_IN_FLIGHT ? (int)(room / OFI_IN_FLIGHT) : 1;
        ncclResult_t rc = endpoint_open(domain, endpoint);
        if (rc) {
            endpoint_close(endpoint);
            return rc;
        }
        endpoint->next = domain->endpoints;
        domain->endpoints = endpoint;
    }
    endpoint->users[sending]++;
    *endpoint_out = endpoint;
    return ncclSuccess;
}

void ofi_endpoint_release(struct ofi_endpoint *endpoint, bool sending)
{
    struct ofi_endpoint **at = &endpoint->domain->endpoints;
    if (--endpoint->users[sending] || endpoint->users[!sending]) return;
    while (*at != endpoint)
        at = &(*at)->next;
    *at = endpoint->next;
    if (endpoint->domain->left) {
        endpoint->next = endpoint->domain->left_endpoints;
        endpoint->domain->left_endpoints = endpoint;
    } else {
        endpoint_close(endpoint);
    }
}

ncclResult_t ofi_endpoint_peer(struct ofi_endpoint *endpoint, const char *address,
                               fi_addr_t *number)
{
    for (int i = 0; i < endpoint->npeers; i++) {
        const struct ofi_peer *known = &endpoint->peers[i];
        if (memcmp(known->address, address, OFI_ADDRESS_BYTES) != 0) continue;
        *number = known->number;
        return ncclSuccess;
    }
    struct ofi_peer *more =
        realloc(endpoint->peers, (size_t)(endpoint->npeers + 1) * sizeof(*more));
    if (!more) return ofi_fail(ncclSystemError, "out of memory");
    endpoint->peers = more;
    struct ofi_peer *peer = &more[endpoint->npeers];
    memcpy(peer->address, address, OFI_ADDRESS_BYTES);
    int rc = fi_av_insert(endpoint->av, peer->address, 1, &peer->number, 0, NULL);
    if (rc != 1) return failed(endpoint->domain->device, "fi_av_insert", rc < 0 ? rc : -FI_EINVAL);
    endpoint->npeers++;
    *number = peer->number;
    return ncclSuccess;
}

/* ---- requests ---- */

struct ofi_request *ofi_request_take(struct ofi_endpoint *endpoint)
{
    if (!endpoint->free) {
        struct ofi_requests *memory = calloc(1, sizeof(*memory));
        if (!memory) return NULL;
        memory->next = endpoint->memory;
        endpoint->memory = memory;
        for (size_t i = 0; i < sizeof(memory->list) / sizeof(*memory->list); i++)
            ofi_request_give(endpoint, &memory->list[i]);
    }
    struct ofi_request *request = endpoint->free;
    endpoint->free = request->next;
    return request;
}

void ofi_request_give(struct ofi_endpoint *endpoint, struct ofi_request *request)
{
    request->next = endpoint->free;
    endpoint->free = request;
}

static void finish(void *context, size_t len, int error)
{
    const struct ofi_op *op = context;
    struct ofi_request *request = op->request;
    if (!request->comm->sending) request->sizes[op->part] = (int)len;
    if (error) request->error = error < 0 ? -error : error; /* providers differ */
    request->left--;
}

/* hot */
void ofi_endpoint_progress(struct ofi_endpoint *endpoint)
{
    struct fi_cq_tagged_entry entries[COMPLETIONS];
    struct fi_cq_err_entry error;
    ssize_t n = COMPLETIONS;
    while (endpoint->ep && n == COMPLETIONS) {
        n = fi_cq_read(endpoint->cq, entries, COMPLETIONS);
        for (ssize_t i = 0; i < n; i++)
            finish(entries[i].op_context, entries[i].len, 0);
        if (n != -FI_EAVAIL) continue;
        memset(&error, 0, sizeof(error));
        if (fi_cq_readerr(endpoint->cq, &error, 0) != 1) return;
        if (error.op_context) finish(error.op_context, error.len, error.err);
        n = COMPLETIONS;
    }
}
