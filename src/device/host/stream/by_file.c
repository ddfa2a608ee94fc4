/* Copies and fills of memory that the program registered, while the race checker may have closed
 * its pages: the kernel moves the bytes (/proc/self/mem), which does not ask how pages are
 * protected. Closed pages have no second mapping there, as the memory is the program's own. */
#include "by_file.h"

#include "base/mem.h"
#include "device/host/host_face.h"
#include "device/host/memory/memory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 4096 };

struct way {
    int file;
    bool to, from; /* which ends are the program's own */
};

static bool put(int file, void *to, const void *from, size_t bytes)
{
    for (ssize_t n = 1; bytes && n > 0;) {
        n = pwrite(file, from, bytes, (off_t)(uintptr_t)to);
        if (n <= 0) break;
        to = (char *)to + n;
        from = (const char *)from + n;
        bytes -= (size_t)n;
    }
    return bytes == 0;
}

static bool get(int file, void *to, const void *from, size_t bytes)
{
    for (ssize_t n = 1; bytes && n > 0;) {
        n = pread(file, to, bytes, (off_t)(uintptr_t)from);
        if (n <= 0) break;
        to = (char *)to + n;
        from = (const char *)from + n;
        bytes -= (size_t)n;
    }
    return bytes == 0;
}

static bool move_piece(const struct way *way, char *to, const char *from, size_t bytes)
{
    char piece[PIECE_BYTES];
    return get(way->file, piece, from, bytes) && put(way->file, to, piece, bytes);
}

/* As memmove() does. */
static void move(const struct way *way, char *to, const char *from, size_t bytes)
{
    bool done = false;
    if (way->to && way->from) {
        bool backwards = to > from && to < from + bytes;
        size_t piece = PIECE_BYTES;
        done = true;
        for (size_t at = 0; done && at < bytes; at += piece) {
            piece = tt_min_size(PIECE_BYTES, bytes - at);
            size_t where = backwards ? bytes - at - piece : at;
            done = move_piece(way, to + where, from + where, piece);
        }
    } else if (way->to) {
        done = put(way->file, to, tt_host_view(from), bytes);
    } else {
        done = get(way->file, tt_host_view(to), from, bytes);
    }
    if (!done) memmove(tt_host_view(to), tt_host_view(from), bytes); /* no such file */
}

static void copy_rows(const struct way *way, const struct tt_copy *copy)
{
    size_t height = copy->height ? copy->height : 1;
    size_t depth = copy->depth ? copy->depth : 1;
    for (size_t z = 0; z < depth; z++) {
        for (size_t y = 0; y < height; y++) {
            move(way, (char *)copy->dst + z * copy->dst_slice + y * copy->dst_pitch,
                 (const char *)copy->src + z * copy->src_slice + y * copy->src_pitch, copy->width);
        }
    }
}

static void set_rows(const struct way *way, const struct tt_set *set)
{
    char piece[PIECE_BYTES];
    size_t width = set->width * set->elem_bytes, part;
    for (size_t i = 0; i < sizeof(piece); i += set->elem_bytes)
        memcpy(piece + i, &set->value, set->elem_bytes); /* its low bytes */
    for (size_t y = 0; y < set->height; y++) {
        for (size_t at = 0; at < width; at += part) {
            char *to = (char *)set->ptr + y * set->pitch + at;
            part = tt_min_size(sizeof(piece), width - at);
            if (!put(way->file, to, piece, part)) memcpy(to, piece, part);
        }
    }
}

bool tt_host_step_by_file(const struct tt_host_op *op)
{
    struct tt_registered range;
    bool copies = op->kind == TT_HOST_OP_COPY;
    struct way way = {.to = tuttiHostRegistered(copies ? op->copy.dst : op->set.ptr, &range),
                      .from = copies && tuttiHostRegistered(op->copy.src, &range)};
    if (!way.to && !way.from) return false;
    way.file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (way.file < 0) return false;
    if (copies) {
        copy_rows(&way, &op->copy);
    } else {
        set_rows(&way, &op->set);
    }
    close(way.file);
    return true;
}
