/* Values as numbers: what a program computes from random inputs, modulo 2^64, twice. */
#include "verify_state.h"

static uint64_t mix(uint64_t word)
{
    word ^= word >> 30;
    word *= 0xbf58476d1ce4e5b9ull;
    word ^= word >> 27;
    word *= 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

struct tt_verify_value tt_verify_value_input(int rank, enum tt_verify_buffer buffer, size_t unit)
{
    uint64_t seed = mix(((uint64_t)rank * 2 + (uint64_t)buffer + 1) * 0x9e3779b97f4a7c15ull) ^
                    mix((uint64_t)unit + 0x243f6a8885a308d3ull);
    return (struct tt_verify_value){.lane = {mix(seed), mix(seed + 0x9e3779b97f4a7c15ull)},
                                    .known = true};
}

uint64_t tt_verify_scalar(int rank)
{
    return mix((uint64_t)rank + 0x13198a2e03707344ull) | 1;
}

void tt_verify_value_scale(struct tt_verify_value *value, int rank)
{
    value->lane[0] *= tt_verify_scalar(rank);
    value->lane[1] *= tt_verify_scalar(rank);
}

void tt_verify_value_add(struct tt_verify_value *value, const struct tt_verify_value *other)
{
    value->lane[0] += other->lane[0];
    value->lane[1] += other->lane[1];
}

void tt_verify_value_take(struct tt_verify_value *value, const struct tt_verify_value *other)
{
    value->lane[0] -= other->lane[0];
    value->lane[1] -= other->lane[1];
}

bool tt_verify_value_equal(const struct tt_verify_value *a, const struct tt_verify_value *b)
{
    if (a->known != b->known) return false;
    return !a->known ||
           (a->lane[0] == b->lane[0] && a->lane[1] == b->lane[1] && a->post == b->post);
}
