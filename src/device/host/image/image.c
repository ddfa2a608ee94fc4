/* Device code: which format it is. */
#include "read.h"

#include <stdlib.h>

struct host_image *host_image_open(const void *code, size_t limit, const char **why)
{
    struct image_view view = {code, limit};
    struct host_image *image = calloc(1, sizeof(*image));
    bool read = false;
    uint32_t magic = 0;
    *why = "out of memory";
    if (!image) return NULL;
    *why = "it is empty";
    if (view.len && *view.at) { /* PTX may be shorter than a magic number */
        size_t len = strnlen(code, sizeof(magic) < limit ? sizeof(magic) : limit);
        memcpy(&magic, code, len);
        *why = "it ends too early";
        read = magic == 0xba55ed50   ? host_image_read_fat(image, view, why)
               : magic == 0x464c457f ? host_image_read_elf(image, view, why)
                                     : host_image_read_ptx(image, view, why);
    }
    if (read) return image;
    host_image_close(image);
    return NULL;
}
