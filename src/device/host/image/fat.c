/* Fat binaries: one program for several processors, as cubins and as PTX, each perhaps packed.
 * What variables start with is the same in all of them, so the first part that can be read counts:
 * cubins before PTX, plain before packed. */
#include "read.h"

#include <stdlib.h>

struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* behind the header */
};

enum { FAT_PTX = 1, FAT_ELF = 2 };
enum { FAT_LZ4 = 0x2000, FAT_ZSTD = 0x8000 };

struct fat_part {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* behind the header, filling included */
    uint32_t packed_bytes, options;
    uint16_t minor, major;
    uint32_t arch, name, name_bytes;
    uint64_t flags, unused, unpacked_bytes;
};
_Static_assert(sizeof(struct fat_part) == 64, "layout of the format");

enum { UNPACKED_MOST = 1 << 30, LZ4_MOST = 255 }; /* LZ4_MOST: bytes that one byte stands for */

static bool read_kind(struct tt_host_image *image, unsigned kind, struct image_view code,
                      const char **why)
{
    return kind == FAT_ELF ? tt_host_image_read_elf(image, code, why)
                           : tt_host_image_read_ptx(image, code, why);
}

static bool read_packed(struct tt_host_image *image, const struct fat_part *part,
                        struct image_view code, const char **why)
{
    *why = "a part of it is packed in a way or to a size that is not known";
    bool lz4 = part->flags & FAT_LZ4, zstd = part->flags & FAT_ZSTD;
    if (lz4 == zstd || part->unpacked_bytes - 1 >= UNPACKED_MOST) return false;
    if (!image_part(code, 0, part->packed_bytes, &code)) return false;
    if (lz4 && part->unpacked_bytes / LZ4_MOST > part->packed_bytes) return false;
    size_t len = (size_t)part->unpacked_bytes;
    unsigned char *unpacked = malloc(len);
    if (!unpacked) return false;
    *why = "a part of it does not unpack";
    bool read = lz4 ? tt_host_image_unpack_lz4(code, unpacked, len)
                    : tt_host_image_unpack_zstd(code, unpacked, len, why);
    if (read) read = read_kind(image, part->kind, (struct image_view){unpacked, len}, why);
    free(unpacked);
    return read;
}

/* Read the first part that is of this sort and can be read. */
static bool read_first(struct tt_host_image *image, unsigned kind, bool packed,
                       struct image_view code, const char **why)
{
    struct fat_part part;
    struct image_view body;
    uint64_t at = 0;
    while (image_get(code, at, &part, sizeof(part)) && part.header_bytes >= sizeof(part) &&
           image_part(code, at + part.header_bytes, part.bytes, &body)) {
        at += part.header_bytes + part.bytes;
        bool is_packed = part.flags & (FAT_LZ4 | FAT_ZSTD);
        if (part.kind != kind || packed != is_packed) continue;
        bool read =
            packed ? read_packed(image, &part, body, why) : read_kind(image, kind, body, why);
        if (read) return true;
        tt_host_image_clear(image);
    }
    return false;
}

bool tt_host_image_read_fat(struct tt_host_image *image, struct image_view code, const char **why)
{
    struct fat_header header;
    if (!image_get(code, 0, &header, sizeof(header))) return false;
    if (!image_part(code, header.header_bytes, header.bytes, &code)) return false;
    *why = "it has neither a cubin nor PTX";
    return read_first(image, FAT_ELF, false, code, why) ||
           read_first(image, FAT_ELF, true, code, why) ||
           read_first(image, FAT_PTX, false, code, why) ||
           read_first(image, FAT_PTX, true, code, why);
}
