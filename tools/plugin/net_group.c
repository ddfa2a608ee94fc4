/* Receives of several messages in one request. The sender's tags choose among them, so they need
 * not come in the order of the list; each has a size of its own, and room for more. */
#include "base/mem.h"
#include "net_drive.h"

#include <stdio.h>
#include <string.h>

enum { ROOM = 20480 }; /* of each receive */

static const size_t sizes[TT_NET_GROUP] = {5000, 1, 0, 4096, 17, 20000, 3, 900};

struct grouped {
    struct net_end *ends; /* sender, receiver */
    unsigned char *sent, *got;
    void *mhandles[2];
    struct net_message sends[TT_NET_GROUP];
    struct tt_net_part parts[TT_NET_GROUP];
    size_t lens[TT_NET_GROUP]; /* of the messages */
    int count;
};

static unsigned char byte_of(int message, size_t at)
{
    return (unsigned char)((size_t)message * 41 + at * 3 + 1);
}

/* Message k of the list is sent as number k, or the last one first. */
static void lay_out(struct grouped *all, size_t most, bool backwards)
{
    size_t at = 0;
    for (int k = 0; k < all->count; k++) {
        size_t bytes = tt_min_size(sizes[k], most);
        struct net_message *message = &all->sends[backwards ? all->count - 1 - k : k];
        for (size_t i = 0; i < bytes; i++)
            all->sent[at + i] = byte_of(k, i);
        all->lens[k] = bytes;
        *message = (struct net_message){.end = &all->ends[0], .bytes = bytes};
        message->part = (struct tt_net_part){
            .data = all->sent + at, .bytes = bytes, .tag = 70 + k, .mhandle = all->mhandles[0]};
        all->parts[k] = (struct tt_net_part){.data = all->got + at,
                                             .bytes = tt_min_size(ROOM, most),
                                             .tag = 70 + k,
                                             .mhandle = all->mhandles[1]};
        at += ROOM;
    }
}

static bool compare(const struct grouped *all, const int *came)
{
    char *note = all->ends[1].drive->state->note;
    const size_t room = sizeof(all->ends[1].drive->state->note);
    for (int k = 0; k < all->count; k++) {
        const unsigned char *data = all->parts[k].data;
        size_t bytes = all->lens[k];
        for (size_t i = 0; i < bytes; i++) {
            if (data[i] == byte_of(k, i)) continue;
            snprintf(note, room, "irecv: the message with tag %d is not where its receive is",
                     all->parts[k].tag);
            return false;
        }
        if (came[k] != (int)bytes) {
            snprintf(note, room, "test: message %d of a request is %d bytes, and %zu were sent", k,
                     came[k], bytes);
            return false;
        }
    }
    return true;
}

static bool exchange(struct grouped *all)
{
    void *request = NULL;
    int came[TT_NET_GROUP];
    bool done = false, sent = false, good = true;
    for (int k = 0; k < TT_NET_GROUP; k++)
        came[k] = -1;
    while (good && !(done && sent)) {
        if (!request) {
            good = net_drive_post_group(&all->ends[1], all->parts, all->count, &request);
        } else if (!done) {
            good = net_drive_test_group(&all->ends[1], request, all->count, came, &done);
        }
        sent = good && net_drive_advance(all->sends, all->count, &good);
        good = good && net_drive_goes_on(all->ends[1].drive);
    }
    return good && compare(all, came);
}

bool net_transfer_grouped(struct net_end ends[2], int count, bool backwards)
{
    unsigned char sent[TT_NET_GROUP * ROOM], got[TT_NET_GROUP * ROOM];
    struct grouped all = {.ends = ends, .sent = sent, .got = got, .count = count};
    memset(got, 0, sizeof(got));
    if (!net_drive_register(&ends[0], sent, sizeof(sent), &all.mhandles[0]) ||
        !net_drive_register(&ends[1], got, sizeof(got), &all.mhandles[1]))
        return false;
    lay_out(&all, net_drive_most(ends[1].drive, ROOM), backwards);
    return exchange(&all) && net_drive_deregister(&ends[0], all.mhandles[0]) &&
           net_drive_deregister(&ends[1], all.mhandles[1]);
}
