/* The calls of the soak: by chance from a seed, and what each must give. All elements are unsigned,
 * so that sums and products are exact. */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOAK_MOST_COUNT = 80008 };

enum soak_func {
    SOAK_ALL_REDUCE,
    SOAK_REDUCE,
    SOAK_REDUCE_SCATTER,
    SOAK_BROADCAST,
    SOAK_ALL_GATHER,
    SOAK_ALL_TO_ALL,
    SOAK_GATHER,
    SOAK_SCATTER,
    SOAK_MESSAGES,
    SOAK_FUNC_COUNT_
};

struct soak_call {
    enum soak_func func;
    uint64_t seed;
    size_t count;
    int width; /* bytes of an element, all unsigned: sums and products are exact */
    ncclRedOp_t op;
    int root; /* of messages: how far they go */
    bool in_place;
};

/* Random numbers: a hash, and one of 0 .. n - 1 that advances the state. */
uint64_t soak_mix(uint64_t z);
int soak_pick(uint64_t *state, int n);

struct soak_call soak_call_random(uint64_t *state, int n);
ncclDataType_t soak_type(const struct soak_call *call);
/* Elements of a rank's buffers; 0 out: what is there does not count. */
size_t soak_in_count(const struct soak_call *call, int n);
size_t soak_out_count(const struct soak_call *call, int rank, int n);
/* Element i of a rank's input, and of its result among n ranks. */
uint64_t soak_input(const struct soak_call *call, int rank, size_t i);
uint64_t soak_expected(const struct soak_call *call, int rank, int n, size_t i);
void soak_put(unsigned char *to, int width, size_t i, uint64_t value);
uint64_t soak_get(const unsigned char *from, int width, size_t i);
