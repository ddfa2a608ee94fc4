/* Events that a profiler frees at their stop. The block is taken from malloc at once, so that
 * it is not given out again, and filled: a write to it afterwards is a write to memory that is
 * ours. */
#include "profiler_drive.h"

#include <stdlib.h>
#include <string.h>

enum { FILL = 0xa5, LEAST_BYTES = 24, GRAIN_BYTES = 16, CLASSES = 64, CACHED = 8 };
enum { MOST_BLOCKS = 8192 };

struct drive_freed {
    void *(*volatile allocate)(size_t); /* malloc; a compiler would take its result for new */
    int nblocks;
    struct {
        void *block;
        size_t bytes;
    } blocks[MOST_BLOCKS];
};

static size_t class_bytes(int number)
{
    return LEAST_BYTES + (size_t)number * GRAIN_BYTES;
}

struct drive_freed *drive_freed_create(void)
{
    struct drive_freed *freed = calloc(1, sizeof(*freed));
    if (!freed) abort();
    freed->allocate = malloc;
    for (int k = 0; k < CLASSES * CACHED; k++) { /* empty malloc's cache of this thread for good */
        void *volatile lost = freed->allocate(class_bytes(k % CLASSES));
        (void)lost;
    }
    return freed;
}

void drive_freed_take(struct drive_freed *freed, const void *event)
{
    void *others[CLASSES];
    for (int k = 0; k < CLASSES; k++) {
        others[k] = freed->allocate(class_bytes(k));
        if (!others[k] || others[k] != event || freed->nblocks == MOST_BLOCKS) continue;
        memset(others[k], FILL, class_bytes(k));
        freed->blocks[freed->nblocks].block = others[k];
        freed->blocks[freed->nblocks++].bytes = class_bytes(k);
        others[k] = NULL;
    }
    for (int k = CLASSES - 1; k >= 0; k--)
        free(others[k]);
}

bool drive_freed_written(const struct drive_freed *freed)
{
    for (int k = 0; k < freed->nblocks; k++) {
        const unsigned char *bytes = freed->blocks[k].block;
        for (size_t i = 0; i < freed->blocks[k].bytes; i++) {
            if (bytes[i] != FILL) return true;
        }
    }
    return false;
}
