/* Device code: which format it is. */
#include "read.h"

#include <stdlib.h>

static bool read_code(struct tt_host_image *image, struct image_view view, const char **why)
{
    uint32_t magic = 0;
    *why = "it is empty";
    if (!view.len || !*view.at) return false; /* PTX may be shorter than a magic number */
    size_t len =
        strnlen((const char *)view.at, sizeof(magic) < view.len ? sizeof(magic) : view.len);
    memcpy(&magic, view.at, len);
    *why = "it ends too early";
    return magic == 0xba55ed50   ? tt_host_image_read_fat(image, view, why)
           : magic == 0x464c457f ? tt_host_image_read_elf(image, view, why)
                                 : tt_host_image_read_ptx(image, view, why);
}

/* Each piece is read by itself, so that one which gives up forgets nothing of the others. */
static bool read_linked(struct tt_host_image *image, struct image_view view, const char **why)
{
    struct tt_host_linked_header header;
    struct image_view piece;
    uint64_t at = 0, bytes;
    *why = "it ends too early";
    if (!image_get(view, 0, &header, sizeof(header))) return false;
    if (!image_part(view, sizeof(header), header.bytes, &view)) return false;
    for (uint32_t i = 0; i < header.count; i++) {
        struct tt_host_image one = {0};
        *why = "it ends too early";
        if (!image_get(view, at, &bytes, sizeof(bytes))) return false;
        if (!image_part(view, at + sizeof(bytes), bytes, &piece)) return false;
        bool read = read_code(&one, piece, why) && tt_host_image_merge(image, &one);
        tt_host_image_clear(&one);
        if (!read) return false;
        at += sizeof(bytes) + bytes;
    }
    return true;
}

struct tt_host_image *tt_host_image_open(const void *code, size_t limit, const char **why)
{
    struct image_view view = {code, limit};
    struct tt_host_linked_header header = {0};
    struct tt_host_image *image = calloc(1, sizeof(*image));
    *why = "out of memory";
    if (!image) return NULL;
    size_t len = limit < sizeof(header.magic) ? 0 : strnlen(code, sizeof(header.magic));
    memcpy(&header.magic, code, len);
    bool read = header.magic == TT_HOST_LINKED_MAGIC ? read_linked(image, view, why)
                                                     : read_code(image, view, why);
    if (read) return image;
    tt_host_image_close(image);
    return NULL;
}
