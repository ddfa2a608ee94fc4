/* Memory for an array that grows to gigabytes and never moves: addresses for all of the machine's
 * memory, of which the kernel gives what is touched, in huge pages where it has some. */
#pragma once

#include <stddef.h>

enum { RESERVE_LEAST_BYTES = 4 << 20 }; /* a smaller array is better in malloc()'s memory */

struct reserve { /* zeroed: none */
    char *base;  /* of the array; owned */
    size_t bytes;
    void *map; /* what munmap() gets; `base` lies on the border of a huge page in it */
    size_t map_bytes;
};

/* Room for `bytes`, of which the first `used` are those of *array: from malloc() at first, whose
 * memory is freed then, and from now on the reserve's. Returns where they are; NULL: the system has
 * no such addresses, and nothing has changed. */
void *reserve_grow(struct reserve *reserve, void *array, size_t used, size_t bytes);
/* Free the array, wherever it is. */
void reserve_free(struct reserve *reserve, void *array);
