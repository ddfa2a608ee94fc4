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

/* Seven bits a byte, the lowest first; the highest bit says that more follow. */
static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

static void put_tag(struct proto *proto, int field, int wire)
{
    proto->used += put_varint(proto->bytes + proto->used, (uint64_t)field << 3 | (uint64_t)wire);
}

void proto_number(struct proto *proto, int field, uint64_t value)
{
    if (!reserve(proto, (size_t)2 * VARINT_BYTES)) return;
    put_tag(proto, field, WIRE_VARINT);
    proto->used += put_varint(proto->bytes + proto->used, value);
}

void proto_fixed(struct proto *proto, int field, uint64_t value)
{
    if (!reserve(proto, VARINT_BYTES + sizeof(value))) return;
    put_tag(proto, field, WIRE_FIXED64);
    for (size_t k = 0; k < sizeof(value); k++)
        proto->bytes[proto->used++] = (uint8_t)(value >> 8 * k);
}

void proto_text(struct proto *proto, int field, const char *text)
{
    size_t bytes = strlen(text);
    if (!reserve(proto, (size_t)2 * VARINT_BYTES + bytes)) return;
    put_tag(proto, field, WIRE_BYTES);
    proto->used += put_varint(proto->bytes + proto->used, bytes);
    memcpy(proto->bytes + proto->used, text, bytes);
    proto->used += bytes;
}

size_t proto_begin(struct proto *proto, int field)
{
    if (!reserve(proto, (size_t)2 * VARINT_BYTES)) return 0;
    put_tag(proto, field, WIRE_BYTES);
    return proto->used;
}

void proto_end(struct proto *proto, size_t begun)
{
    uint8_t length[VARINT_BYTES];
    if (!reserve(proto, sizeof(length))) return;
    size_t bytes = proto->used - begun, n = put_varint(length, bytes);
    memmove(proto->bytes + begun + n, proto->bytes + begun, bytes);
    memcpy(proto->bytes + begun, length, n);
    proto->used += n;
}
