/* Reads device code (fat binary, cubin, PTX): the names of its kernels and variables, and the
 * initial values of variables. Pure functions; the input is not trusted. Formats:
 * docs/rooms/device.md. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_image_symbol {
    char *name; /* owned */
    bool is_kernel;
    bool is_managed; /* this and the following: of variables only */
    bool is_unread;  /* its initial value could not be read */
    size_t bytes;
    unsigned char *initial; /* owned; NULL: zeros */
    size_t initial_bytes;   /* at most `bytes`; zeros follow */
};

struct tt_host_image_pointer { /* a pointer in a variable to another variable */
    size_t in, offset;         /* symbol and offset of the pointer */
    size_t to, addend;         /* symbol and offset that it points to */
};

struct tt_host_image {
    struct tt_host_image_symbol *symbols; /* owned */
    size_t nsymbols;
    struct tt_host_image_pointer *pointers; /* owned */
    size_t npointers;
};

/* Read device code of at most `limit` bytes (SIZE_MAX: unknown; the headers give the length, and
 * PTX ends with a zero byte). NULL: failed; *why is a literal that completes "cannot be read: ...".
 */
struct tt_host_image *tt_host_image_open(const void *code, size_t limit, const char **why);
void tt_host_image_close(struct tt_host_image *image); /* accepts NULL */
/* The kernel or variable of that name, or NULL. */
const struct tt_host_image_symbol *tt_host_image_find(const struct tt_host_image *image,
                                                      const char *name, bool is_kernel);

/* Several pieces of device code in one, which tt_host_image_open() reads as well: this header, then
 * each piece, preceded by its length. */
struct tt_host_linked_header {
    uint32_t magic, count; /* of pieces */
    uint64_t bytes;        /* after the header */
};
enum { TT_HOST_LINKED_MAGIC = 0x6b6e6c74 };
