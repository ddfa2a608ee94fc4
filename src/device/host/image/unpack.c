/* The two ways in which fat binaries are packed: blocks of LZ4, undone here, and Zstandard, undone
 * by its own library where that is installed. */
#include "read.h"

#include <dlfcn.h>

/* A length of LZ4 goes on in further bytes while they are 255. */
static bool long_length(const struct image_view *from, size_t *at, size_t *len)
{
    unsigned char more = 255;
    if (*len != 15) return true;
    while (more == 255) {
        if (*at == from->len) return false;
        more = from->at[(*at)++];
        *len += more;
    }
    return true;
}

/* https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md */
bool tt_host_image_unpack_lz4(struct image_view from, unsigned char *to, size_t len)
{
    size_t at = 0, done = 0;
    while (at < from.len) {
        unsigned char token = from.at[at++];
        size_t plain = token >> 4, match = token & 15;
        if (!long_length(&from, &at, &plain)) return false;
        if (plain > from.len - at || plain > len - done) return false;
        memcpy(to + done, from.at + at, plain);
        at += plain;
        done += plain;
        if (at == from.len) break; /* the last piece has no match */
        if (from.len - at < 2) return false;
        size_t back = from.at[at] | (size_t)from.at[at + 1] << 8;
        at += 2;
        if (!long_length(&from, &at, &match)) return false;
        match += 4;
        if (back == 0 || back > done || match > len - done) return false;
        for (size_t end = done + match; done < end; done++) { /* the two may overlap */
            to[done] = to[done - back];
        }
    }
    return done == len;
}

bool tt_host_image_unpack_zstd(struct image_view from, unsigned char *to, size_t len,
                               const char **why)
{
    size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "ZSTD_decompress") : NULL;
    bool done = false;
    if (found) {
        memcpy(&decompress, &found, sizeof(decompress));
        done = decompress(to, len, from.at, from.len) == len;
    } else {
        *why = "it is packed with Zstandard, and libzstd.so.1 is not installed";
    }
    if (library) dlclose(library);
    return done;
}
