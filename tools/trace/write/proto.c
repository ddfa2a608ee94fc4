/* The wire format: a tag (field and kind), then a varint, eight bytes, or a length and bytes. */
#include "proto.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };
enum { VARINT_BYTES = 10, LEAST_ROOM = 1024 };

void proto_clear(struct proto *proto)
{
    proto->used = 0;
}

void proto_fini(struct proto *proto)
{
    free(proto->bytes);
    memset(proto, 0, sizeof(*proto));
}

static bool reserve(struct proto *proto, size_t bytes)
{
    if (proto->failed) return false;
    if (proto->room - proto->used >= bytes) return true;
    size_t room = proto->room ? proto->room * 2 : LEAST_ROOM;
    while (room - proto->used < bytes)
        room *= 2;
    uint8_t *grown = realloc(proto->bytes, room);
    proto->failed = !grown;
    if (!grown) return false;
    proto->bytes = grown;
    proto->room = room;
    return true;
}

/* Seven bits a byte, the lowest first; the highest bit says that more follow. Returns its end: a
 * place that stays in a register, which proto->used cannot while bytes are written. */
static inline uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static inline uint8_t *put_tag(const struct proto *proto, int field, int wire)
{
    return put_varint(proto->bytes + proto->used, (uint64_t)field << 3 | (uint64_t)wire);
}

static inline void set_end(struct proto *proto, const uint8_t *end)
{
    proto->used = (size_t)(end - proto->bytes);
}

void proto_number(struct proto *proto, int field, uint64_t value)
{
    if (!reserve(proto, (size_t)2 * VARINT_BYTES)) return;
    set_end(proto, put_varint(put_tag(proto, field, WIRE_VARINT), value));
}

void proto_fixed(struct proto *proto, int field, uint64_t value)
{
    if (!reserve(proto, VARINT_BYTES + sizeof(value))) return;
    uint8_t *to = put_tag(proto, field, WIRE_FIXED64);
    for (size_t k = 0; k < sizeof(value); k++)
        *to++ = (uint8_t)(value >> 8 * k);
    set_end(proto, to);
}

void proto_text(struct proto *proto, int field, const char *text)
{
    size_t bytes = strlen(text);
    if (!reserve(proto, (size_t)2 * VARINT_BYTES + bytes)) return;
    set_end(proto, put_varint(put_tag(proto, field, WIRE_BYTES), bytes));
    memcpy(proto->bytes + proto->used, text, bytes);
    proto->used += bytes;
}

size_t proto_begin(struct proto *proto, int field)
{
    if (!reserve(proto, (size_t)2 * VARINT_BYTES)) return 0;
    set_end(proto, put_tag(proto, field, WIRE_BYTES) + 1);
    return proto->used; /* most messages are so short that one byte says their length */
}

void proto_end(struct proto *proto, size_t begun)
{
    uint8_t length[VARINT_BYTES];
    size_t bytes = proto->used - begun;
    if (!reserve(proto, sizeof(length))) return;
    uint8_t *at = proto->bytes + begun;
    if (bytes <= 0x7f) {
        at[-1] = (uint8_t)bytes;
        return;
    }
    size_t n = (size_t)(put_varint(length, bytes) - length);
    memmove(at - 1 + n, at, bytes);
    memcpy(at - 1, length, n);
    proto->used += n - 1;
}
