/* Helpers of the format readers. Private to this folder. */
#pragma once

#include "image.h"

#include <stdint.h>
#include <string.h>

struct image_view { /* a range of readable bytes */
    const unsigned char *at;
    size_t len;
};

/* A part of a view. False: it is not inside the view. */
static inline bool image_part(struct image_view view, uint64_t offset, uint64_t len,
                              struct image_view *part)
{
    if (offset > view.len || len > view.len - offset) return false;
    *part = (struct image_view){view.at + offset, (size_t)len};
    return true;
}

/* Copy bytes out of a view, which need not be aligned. False: they are not inside it. */
static inline bool image_get(struct image_view view, uint64_t offset, void *out, size_t len)
{
    struct image_view part;
    if (!image_part(view, offset, len, &part)) return false;
    memcpy(out, part.at, len);
    return true;
}

/* Add a symbol; its name is copied. The pointer is valid until the next call. NULL: out of memory.
 */
struct tt_host_image_symbol *tt_host_image_add(struct tt_host_image *image, const char *name,
                                               size_t len);
/* Remove all symbols and pointers. */
void tt_host_image_clear(struct tt_host_image *image);
bool tt_host_image_point(struct tt_host_image *image, const struct tt_host_image_pointer *pointer);
/* Move all symbols and pointers of `from` here. False: out of memory. */
bool tt_host_image_merge(struct tt_host_image *image, struct tt_host_image *from);

/* Each adds the symbols of the code. False: it cannot be read; *why says so. */
bool tt_host_image_read_elf(struct tt_host_image *image, struct image_view code, const char **why);
bool tt_host_image_read_ptx(struct tt_host_image *image, struct image_view code, const char **why);
bool tt_host_image_read_fat(struct tt_host_image *image, struct image_view code, const char **why);

/* Unpack into exactly `len` bytes. */
bool tt_host_image_unpack_lz4(struct image_view from, unsigned char *to, size_t len);
bool tt_host_image_unpack_zstd(struct image_view from, unsigned char *to, size_t len,
                               const char **why);
