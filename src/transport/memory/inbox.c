/* Where the parts of a control block lie. All ranks of a communicator compute the same layout. */
#include "transport/memory/inbox.h"

#define PAGE_BYTES 4096
#define NRINGS 2 /* of TT_CONN_COLL and TT_CONN_P2P */

struct tt_inbox_layout tt_inbox_layout(int nranks, int nchannels, size_t slice_bytes)
{
    size_t nrings = (size_t)nranks * (size_t)nchannels * NRINGS;
    struct tt_inbox_layout layout = {.nranks = nranks, .nchannels = nchannels};
    layout.slot_bytes = tt_round_up(slice_bytes, TT_LINE_BYTES);
    layout.ring_bytes = tt_round_up(TT_SLOTS * layout.slot_bytes, PAGE_BYTES);
    const size_t stream_bytes = TT_STREAM_LINES * sizeof(struct tt_slot_line);
    layout.streams =
        tt_round_up(TT_BARRIER_BYTES + nrings * sizeof(struct tt_ring_lines), PAGE_BYTES);
    layout.payloads =
        tt_round_up(layout.streams + (size_t)nranks * (size_t)nchannels * stream_bytes, PAGE_BYTES);
    layout.bytes = layout.payloads + nrings * layout.ring_bytes;
    return layout;
}

size_t tt_transport_inbox_bytes(int nranks, int nchannels, size_t slice_bytes)
{
    return tt_inbox_layout(nranks, nchannels, slice_bytes).bytes;
}

uint64_t tt_range_offset(const struct tt_peer_reach *self, const void *ptr, size_t bytes)
{
    size_t offset = (size_t)((const char *)ptr - self->range_base);
    if (self->view && offset > self->range_bytes) {
        const size_t at = (size_t)((const char *)ptr - self->view);
        offset = at <= self->range_bytes - self->view_offset ? self->view_offset + at : SIZE_MAX;
    }
    bool fits = self->range_base && offset <= self->range_bytes;
    return fits && bytes <= self->range_bytes - offset ? offset : TT_NO_OFFSET;
}

struct tt_barrier *tt_inbox_barrier(void *inbox)
{
    return inbox;
}

size_t tt_inbox_ring(const struct tt_inbox_layout *layout, int peer, int channel, int conn)
{
    return ((size_t)peer * (size_t)layout->nchannels + (size_t)channel) * NRINGS + (size_t)conn;
}

struct tt_ring_lines *tt_inbox_lines(void *inbox, size_t ring)
{
    return (struct tt_ring_lines *)(void *)((char *)inbox + TT_BARRIER_BYTES) + ring;
}

struct tt_slot_line *tt_inbox_stream(const struct tt_inbox_layout *layout, void *inbox, int peer,
                                     int channel)
{
    return (struct tt_slot_line *)(void *)((char *)inbox + layout->streams) +
           ((size_t)peer * (size_t)layout->nchannels + (size_t)channel) * TT_STREAM_LINES;
}

char *tt_inbox_payload(const struct tt_inbox_layout *layout, void *inbox, size_t ring)
{
    return (char *)inbox + layout->payloads + ring * layout->ring_bytes;
}
