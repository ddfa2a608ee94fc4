/* What the answers to an inquiry have brought: communicators, the state of their ranks, settings of
 * processes. Where memory is short an entry is left out: its rank has then not answered. */
#include "watch/inquiry/inquiry_found.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COMMS = 4096, MAX_RANKS = 1 << 20, SETTINGS_LIMIT_BYTES = 1 << 18 };

static struct tt_inquiry_comm *comm_of(const struct tt_inquiry *inquiry, uint64_t comm_id)
{
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        if (inquiry->comms[i].comm_id == comm_id) return &inquiry->comms[i];
    }
    return NULL;
}

const struct tt_inquiry_comm *tt_inquiry_comm(const struct tt_inquiry *inquiry, uint64_t comm_id)
{
    return comm_of(inquiry, comm_id);
}

static struct tt_inquiry_comm *add_comm(struct tt_inquiry *inquiry, const struct tt_status *status,
                                        const struct tt_inquiry_hop *hops, int nhops)
{
    if (inquiry->ncomms == MAX_COMMS || status->nranks > MAX_RANKS) return NULL;
    struct tt_inquiry_comm *grown =
        realloc(inquiry->comms, (inquiry->ncomms + 1) * sizeof(*inquiry->comms));
    if (!grown) return NULL;
    inquiry->comms = grown;
    struct tt_inquiry_comm *comm = &grown[inquiry->ncomms];
    *comm = (struct tt_inquiry_comm){.comm_id = status->comm_id,
                                     .nranks = status->nranks,
                                     .rank = tt_calloc((size_t)status->nranks, 1),
                                     .at = tt_calloc((size_t)status->nranks, sizeof(*comm->at)),
                                     .in_init = true,
                                     .nhops = nhops,
                                     .from = status->rank};
    if (!comm->rank || !comm->at) {
        free(comm->rank);
        free(comm->at);
        return NULL;
    }
    for (int i = 0; i < comm->nhops; i++)
        comm->hops[i] = hops[i];
    inquiry->ncomms++;
    return comm;
}

void tt_inquiry_add_status(struct tt_inquiry *inquiry, const struct tt_status *status,
                           const struct tt_inquiry_hop *hops, int nhops)
{
    struct tt_inquiry_comm *comm = comm_of(inquiry, status->comm_id);
    if (!comm) comm = add_comm(inquiry, status, hops, nhops);
    if (!comm || status->rank >= comm->nranks || comm->rank[status->rank] & TT_INQUIRY_FOUND)
        return;
    if (inquiry->nfound == inquiry->room) {
        size_t more = inquiry->room ? 2 * inquiry->room : 16;
        struct tt_status *grown = realloc(inquiry->found, more * sizeof(*grown));
        if (!grown) return;
        inquiry->found = grown;
        inquiry->room = more;
    }
    comm->rank[status->rank] |= TT_INQUIRY_FOUND;
    comm->nfound++;
    comm->in_init &= status->init != 0;
    inquiry->found[inquiry->nfound++] = *status;
    comm->at[status->rank] = (uint32_t)inquiry->nfound;
}

const struct tt_status *tt_inquiry_find(const struct tt_inquiry *inquiry, uint64_t comm_id,
                                        int rank)
{
    const struct tt_inquiry_comm *comm = comm_of(inquiry, comm_id);
    if (!comm || rank < 0 || rank >= comm->nranks || !comm->at[rank]) return NULL;
    return &inquiry->found[comm->at[rank] - 1];
}

void tt_inquiry_add_settings(struct tt_inquiry *inquiry, uint64_t key, const char *text,
                             size_t bytes)
{
    struct tt_inquiry_settings *at = inquiry->settings;
    size_t i = 0, had = 0;
    while (i < inquiry->nsettings && at[i].key != key)
        i++;
    if (i == inquiry->nsettings) {
        at = realloc(inquiry->settings, (i + 1) * sizeof(*at));
        if (!at) return;
        at[i] = (struct tt_inquiry_settings){.key = key};
        inquiry->settings = at;
        inquiry->nsettings++;
    }
    if (at[i].text) had = strlen(at[i].text);
    char *grown = had < SETTINGS_LIMIT_BYTES ? realloc(at[i].text, had + bytes + 1) : NULL;
    if (!grown) return;
    memcpy(grown + had, text, bytes);
    grown[had + bytes] = 0;
    at[i].text = grown;
    for (char *c = grown + had; *c; c++) {
        if (*c != '\n' && (*c < ' ' || *c > '~')) *c = '?';
    }
}

const char *tt_inquiry_settings(const struct tt_inquiry *inquiry, uint64_t key)
{
    for (size_t i = 0; i < inquiry->nsettings; i++) {
        if (inquiry->settings[i].key == key) return inquiry->settings[i].text;
    }
    return NULL;
}

bool tt_inquiry_is_complete(const struct tt_inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        const struct tt_inquiry_comm *comm = &inquiry->comms[i];
        if (comm->nfound < comm->nranks && !comm->in_init) return false;
    }
    return true;
}

void tt_inquiry_reset(struct tt_inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        free(inquiry->comms[i].rank);
        free(inquiry->comms[i].at);
    }
    for (size_t i = 0; i < inquiry->nsettings; i++)
        free(inquiry->settings[i].text);
    free(inquiry->comms);
    free(inquiry->found);
    free(inquiry->settings);
    inquiry->comms = NULL;
    inquiry->found = NULL;
    inquiry->settings = NULL;
    inquiry->nsettings = 0;
    inquiry->ncomms = inquiry->nfound = inquiry->room = 0;
    inquiry->open = false;
}
