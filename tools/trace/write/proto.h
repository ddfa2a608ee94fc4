/* A message of Protocol Buffers that is made field by field, messages inside of messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto {
    uint8_t *bytes; /* owned */
    size_t used, room;
    bool failed; /* memory was short: nothing is added any more */
};

/* Forget what is there; the memory is kept. */
void proto_clear(struct proto *proto);
void proto_fini(struct proto *proto);

void proto_number(struct proto *proto, int field, uint64_t value); /* varint: uint, bool, enum */
void proto_fixed(struct proto *proto, int field, uint64_t value);  /* fixed64 */
void proto_text(struct proto *proto, int field, const char *text);
/* What is added until proto_end() belongs to a message inside; give it what proto_begin() returned.
 */
size_t proto_begin(struct proto *proto, int field);
void proto_end(struct proto *proto, size_t begun);
