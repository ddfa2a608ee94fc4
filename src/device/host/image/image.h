/* Device code as compilers make it (fat binary, cubin, PTX): which kernels and variables it names,
 * and what the variables start with. Pure functions over bytes that nobody vouches for; formats:
 * docs/rooms/device.md. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_image_symbol {
    char *name; /* owned */
    bool is_kernel;
    bool is_managed; /* variables only, as the rest */
    bool is_unread;  /* has an initial value that was not understood */
    size_t bytes;
    unsigned char *initial; /* owned; NULL: zeros */
    size_t initial_bytes;   /* at most `bytes`; zeros follow */
};

struct tt_host_image_pointer { /* eight bytes of a variable that hold the address of another one */
    size_t in, offset;         /* symbol, byte of it */
    size_t to, addend;         /* symbol, bytes behind its start */
};

struct tt_host_image {
    struct tt_host_image_symbol *symbols; /* owned */
    size_t nsymbols;
    struct tt_host_image_pointer *pointers; /* owned */
    size_t npointers;
};

/* Read device code of at most `limit` bytes (SIZE_MAX: its headers say, PTX ends with a zero byte).
 * Returns NULL, with *why a literal that completes "cannot be read: ...". */
struct tt_host_image *tt_host_image_open(const void *code, size_t limit, const char **why);
void tt_host_image_close(struct tt_host_image *image); /* accepts NULL */
/* The symbol of that name and sort, or NULL. */
const struct tt_host_image_symbol *tt_host_image_find(const struct tt_host_image *image,
                                                      const char *name, bool is_kernel);

/* Several pieces of device code as one, which tt_host_image_open() reads as well: a header, then
 * the pieces one behind the other, each behind its length. */
struct tt_host_linked_header {
    uint32_t magic, count; /* of pieces */
    uint64_t bytes;        /* behind the header */
};
enum { TT_HOST_LINKED_MAGIC = 0x6b6e6c74 };
