/* Fields of messages: little-endian, bounds known. Reading past the end yields zeros and sets
 * `bad`; the reader tests it once at the end. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tt_wire {
    unsigned char *at;         /* writing */
    const unsigned char *from; /* reading */
    size_t left;
    bool bad;
};

static inline void tt_wire_init(struct tt_wire *wire, unsigned char *bytes, size_t len_bytes)
{
    memset(wire, 0, sizeof(*wire));
    wire->at = bytes;
    wire->left = len_bytes;
}

static inline void tt_wire_read(struct tt_wire *wire, const unsigned char *bytes, size_t len_bytes)
{
    *wire = (struct tt_wire){.from = bytes, .left = len_bytes};
}

static inline void tt_wire_put(struct tt_wire *wire, const void *bytes, size_t len_bytes)
{
    if (len_bytes > wire->left) {
        wire->bad = true;
        return;
    }
    if (len_bytes) memcpy(wire->at, bytes, len_bytes);
    wire->at += len_bytes;
    wire->left -= len_bytes;
}

static inline void tt_wire_get(struct tt_wire *wire, void *bytes, size_t len_bytes)
{
    if (len_bytes > wire->left) {
        memset(bytes, 0, len_bytes);
        wire->bad = true;
        return;
    }
    if (len_bytes) memcpy(bytes, wire->from, len_bytes);
    wire->from += len_bytes;
    wire->left -= len_bytes;
}

static inline void tt_wire_put32(struct tt_wire *wire, uint32_t value)
{
    value = htole32(value);
    tt_wire_put(wire, &value, sizeof(value));
}

static inline uint32_t tt_wire_get32(struct tt_wire *wire)
{
    uint32_t value;
    tt_wire_get(wire, &value, sizeof(value));
    return le32toh(value);
}

static inline void tt_wire_put64(struct tt_wire *wire, uint64_t value)
{
    value = htole64(value);
    tt_wire_put(wire, &value, sizeof(value));
}

static inline uint64_t tt_wire_get64(struct tt_wire *wire)
{
    uint64_t value;
    tt_wire_get(wire, &value, sizeof(value));
    return le64toh(value);
}

/* Text of at most `len_bytes` - 1 characters in a field of `len_bytes`; always ended when read. */
static inline void tt_wire_put_text(struct tt_wire *wire, const char *text, size_t len_bytes)
{
    char field[1024] = {0};
    if (len_bytes > sizeof(field)) len_bytes = sizeof(field);
    strncpy(field, text ? text : "", len_bytes - 1);
    tt_wire_put(wire, field, len_bytes);
}

static inline void tt_wire_get_text(struct tt_wire *wire, char *text, size_t len_bytes)
{
    tt_wire_get(wire, text, len_bytes);
    text[len_bytes - 1] = 0;
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p < ' ') *p = '?'; /* a peer's text goes into our log */
    }
}
