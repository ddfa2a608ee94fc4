/* Random programs of all ranks of a communicator, sound and unsound. A set is written as one global
 * order of transfers, so that it cannot deadlock while slots suffice; then, half of the time, a few
 * things are changed at random. */
#pragma once

#include "program/program.h"

#define RANDOM_RANKS 9

struct random_set {
    int nranks;
    bool changed; /* not as it was written: may deadlock, race, or mean nothing */
    int ring[RANDOM_RANKS];
    struct tt_program *block; /* owned; NULL: a change made it no program at all */
};

/* The set of that seed; the same on every machine. */
void random_set_make(uint64_t seed, struct random_set *set);
