/* What the readers of formats share. Private to this folder. */
#pragma once

#include "image.h"

#include <stdint.h>
#include <string.h>

struct image_view { /* bytes that may be looked at */
    const unsigned char *at;
    size_t len;
};

/* The part of a view, or false where it does not lie inside. */
static inline bool image_part(struct image_view view, uint64_t offset, uint64_t len,
                              struct image_view *part)
{
    if (offset > view.len || len > view.len - offset) return false;
    *part = (struct image_view){view.at + offset, (size_t)len};
    return true;
}

/* Copy a header out of a view: no alignment is promised. */
static inline bool image_get(struct image_view view, uint64_t offset, void *out, size_t len)
{
    struct image_view part;
    if (!image_part(view, offset, len, &part)) return false;
    memcpy(out, part.at, len);
    return true;
}

/* A new symbol, its name copied, or NULL without memory. Valid until the next one. */
struct tt_host_image_symbol *tt_host_image_add(struct tt_host_image *image, const char *name,
                                               size_t len);
/* Forget what was read. */
void tt_host_image_clear(struct tt_host_image *image);
bool tt_host_image_point(struct tt_host_image *image, const struct tt_host_image_pointer *pointer);
/* Add all that `from` declares and leave that empty. False without memory. */
bool tt_host_image_merge(struct tt_host_image *image, struct tt_host_image *from);

/* Each adds what the code declares; false, with *why, for what cannot be read. */
bool tt_host_image_read_elf(struct tt_host_image *image, struct image_view code, const char **why);
bool tt_host_image_read_ptx(struct tt_host_image *image, struct image_view code, const char **why);
bool tt_host_image_read_fat(struct tt_host_image *image, struct image_view code, const char **why);

/* Unpack into exactly `len` bytes. */
bool tt_host_image_unpack_lz4(struct image_view from, unsigned char *to, size_t len);
bool tt_host_image_unpack_zstd(struct image_view from, unsigned char *to, size_t len,
                               const char **why);
