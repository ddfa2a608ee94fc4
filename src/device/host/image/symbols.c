/* What device code declares: a list of symbols and of the pointers among them. */
#include "read.h"

#include <stdlib.h>

struct host_image_symbol *host_image_add(struct host_image *image, const char *name, size_t len)
{
    size_t n = image->nsymbols;
    if (n == 0 || (n & (n - 1)) == 0) { /* room doubles at powers of two */
        size_t room = n ? n * 2 : 1;
        struct host_image_symbol *grown = reallocarray(image->symbols, room, sizeof(*grown));
        if (!grown) return NULL;
        image->symbols = grown;
    }
    struct host_image_symbol *symbol = &image->symbols[n];
    *symbol = (struct host_image_symbol){.name = strndup(name, len)};
    if (!symbol->name) return NULL;
    image->nsymbols++;
    return symbol;
}

bool host_image_point(struct host_image *image, const struct host_image_pointer *pointer)
{
    size_t n = image->npointers;
    if (n == 0 || (n & (n - 1)) == 0) {
        size_t room = n ? n * 2 : 1;
        struct host_image_pointer *grown = reallocarray(image->pointers, room, sizeof(*grown));
        if (!grown) return false;
        image->pointers = grown;
    }
    image->pointers[image->npointers++] = *pointer;
    return true;
}

void host_image_clear(struct host_image *image)
{
    for (size_t i = 0; i < image->nsymbols; i++) {
        free(image->symbols[i].name);
        free(image->symbols[i].initial);
    }
    free(image->symbols);
    free(image->pointers);
    *image = (struct host_image){0};
}

void host_image_close(struct host_image *image)
{
    if (image) host_image_clear(image);
    free(image);
}

const struct host_image_symbol *host_image_find(const struct host_image *image, const char *name,
                                                bool is_kernel)
{
    for (size_t i = 0; i < image->nsymbols; i++) {
        const struct host_image_symbol *symbol = &image->symbols[i];
        if (symbol->is_kernel == is_kernel && !strcmp(symbol->name, name)) return symbol;
    }
    return NULL;
}
