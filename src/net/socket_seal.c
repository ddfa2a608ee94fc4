/* A sealed lane: its bytes travel as records that are hidden and numbered. A part counts as moved
 * when the record that holds it has left, or was opened, as a whole. */
#include "base/error.h"
#include "base/mem.h"
#include "net/socket.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    RECORD_MOST = 16384,
    HEAD_BYTES = 4,
    WIRE_MOST = HEAD_BYTES + RECORD_MOST + TT_SEAL_TAG_BYTES
};

/*   record:  length of the text 4 | text, hidden | tag 16                                       */
struct socket_seal {
    unsigned char key[TT_SEAL_KEY_BYTES];
    uint64_t number;          /* of the record under way */
    uint32_t wire_at, wire;   /* bytes moved and bytes of the record; sending: 0: none */
    uint32_t clear_at, clear; /* sending: text in it; receiving: text that waits to be taken */
    unsigned char record[WIRE_MOST];
};

struct socket_seal *tt_socket_seal_create(const unsigned char key[TT_SEAL_KEY_BYTES])
{
    struct socket_seal *seal = tt_calloc(1, sizeof(*seal));
    if (seal) memcpy(seal->key, key, sizeof(seal->key));
    return seal;
}

void tt_socket_seal_destroy(struct socket_seal *seal)
{
    if (!seal) return;
    sodium_memzero(seal, sizeof(*seal));
    free(seal);
}

/* ---- sending ---- */

static void record_shut(struct socket_seal *seal, const struct iovec *pieces, int npieces)
{
    uint32_t length = 0;
    for (int i = 0; i < npieces && length < RECORD_MOST; i++) {
        size_t step = tt_min_size(pieces[i].iov_len, RECORD_MOST - length);
        memcpy(seal->record + HEAD_BYTES + length, pieces[i].iov_base, step);
        length += (uint32_t)step;
    }
    uint32_t head = htole32(length);
    memcpy(seal->record, &head, HEAD_BYTES);
    const struct tt_seal_text text = {seal->record, HEAD_BYTES, seal->record + HEAD_BYTES, length};
    tt_seal_shut(seal->key, seal->number++, &text, seal->record + HEAD_BYTES);
    seal->clear = length;
    seal->wire = HEAD_BYTES + length + TT_SEAL_TAG_BYTES;
    seal->wire_at = 0;
}

ssize_t tt_socket_seal_send(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces)
{
    if (!seal->wire) record_shut(seal, pieces, npieces);
    while (seal->wire_at < seal->wire) {
        ssize_t n = send(fd, seal->record + seal->wire_at, seal->wire - seal->wire_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) return n;
        seal->wire_at += (uint32_t)n;
    }
    seal->wire = 0;
    return (ssize_t)seal->clear;
}

/* ---- receiving ---- */

/* Read up to `wanted` bytes of the record in all. As recv(), but > 0 only when they are there. */
static ssize_t record_read(struct socket_seal *seal, int fd, uint32_t wanted)
{
    while (seal->wire_at < wanted) {
        ssize_t n = recv(fd, seal->record + seal->wire_at, wanted - seal->wire_at, MSG_DONTWAIT);
        if (n <= 0) return n;
        seal->wire_at += (uint32_t)n;
    }
    return 1;
}

/* The next record, whole and open. */
static ssize_t record_open(struct socket_seal *seal, int fd)
{
    uint32_t length;
    ssize_t n = record_read(seal, fd, HEAD_BYTES);
    if (n <= 0) return n;
    memcpy(&length, seal->record, HEAD_BYTES);
    length = le32toh(length);
    errno = EBADMSG;
    if (length == 0 || length > RECORD_MOST) return -1;
    n = record_read(seal, fd, HEAD_BYTES + length + TT_SEAL_TAG_BYTES);
    if (n <= 0) return n;
    const struct tt_seal_text text = {seal->record, HEAD_BYTES, seal->record + HEAD_BYTES,
                                      length + TT_SEAL_TAG_BYTES};
    errno = EBADMSG;
    if (!tt_seal_open(seal->key, seal->number, &text, seal->record + HEAD_BYTES)) return -1;
    seal->number++;
    seal->wire_at = 0;
    seal->clear_at = 0;
    seal->clear = length;
    return 1;
}

ssize_t tt_socket_seal_recv(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces)
{
    size_t moved = 0;
    if (seal->clear_at == seal->clear) {
        ssize_t n = record_open(seal, fd);
        if (n <= 0) return n;
    }
    for (int i = 0; i < npieces; i++) {
        size_t step = tt_min_size(pieces[i].iov_len, seal->clear - seal->clear_at);
        memcpy(pieces[i].iov_base, seal->record + HEAD_BYTES + seal->clear_at, step);
        seal->clear_at += (uint32_t)step;
        moved += step;
    }
    return (ssize_t)moved;
}
