/* What device code declares: a list of symbols and of the pointers among them. */
#include "read.h"

#include <stdlib.h>

/* For one more element in a list of n; NULL without memory. */
static void *room_for_one(void *list, size_t n, size_t element_bytes)
{
    if (n & (n - 1)) return list; /* room doubles at powers of two */
    return reallocarray(list, n ? n * 2 : 1, element_bytes);
}

struct tt_host_image_symbol *tt_host_image_add(struct tt_host_image *image, const char *name,
                                               size_t len)
{
    size_t n = image->nsymbols;
    struct tt_host_image_symbol *grown = room_for_one(image->symbols, n, sizeof(*grown));
    if (!grown) return NULL;
    image->symbols = grown;
    struct tt_host_image_symbol *symbol = &image->symbols[n];
    *symbol = (struct tt_host_image_symbol){.name = strndup(name, len)};
    if (!symbol->name) return NULL;
    image->nsymbols++;
    return symbol;
}

bool tt_host_image_point(struct tt_host_image *image, const struct tt_host_image_pointer *pointer)
{
    size_t n = image->npointers;
    struct tt_host_image_pointer *grown = room_for_one(image->pointers, n, sizeof(*grown));
    if (!grown) return false;
    image->pointers = grown;
    image->pointers[image->npointers++] = *pointer;
    return true;
}

bool tt_host_image_merge(struct tt_host_image *image, struct tt_host_image *from)
{
    const size_t before = image->nsymbols;
    for (size_t i = 0; i < from->nsymbols; i++) {
        struct tt_host_image_symbol *grown =
            room_for_one(image->symbols, image->nsymbols, sizeof(*grown));
        if (!grown) return false;
        image->symbols = grown;
        image->symbols[image->nsymbols++] = from->symbols[i];
        from->symbols[i] = (struct tt_host_image_symbol){0}; /* it owns its strings no more */
    }
    for (size_t i = 0; i < from->npointers; i++) {
        struct tt_host_image_pointer pointer = from->pointers[i];
        pointer.in += before;
        pointer.to += before;
        if (!tt_host_image_point(image, &pointer)) return false;
    }
    tt_host_image_clear(from);
    return true;
}

void tt_host_image_clear(struct tt_host_image *image)
{
    for (size_t i = 0; i < image->nsymbols; i++) {
        free(image->symbols[i].name);
        free(image->symbols[i].initial);
    }
    free(image->symbols);
    free(image->pointers);
    *image = (struct tt_host_image){0};
}

void tt_host_image_close(struct tt_host_image *image)
{
    if (image) tt_host_image_clear(image);
    free(image);
}

const struct tt_host_image_symbol *tt_host_image_find(const struct tt_host_image *image,
                                                      const char *name, bool is_kernel)
{
    for (size_t i = 0; i < image->nsymbols; i++) {
        const struct tt_host_image_symbol *symbol = &image->symbols[i];
        if (symbol->is_kernel == is_kernel && !strcmp(symbol->name, name)) return symbol;
    }
    return NULL;
}
