/* A trial of the agreement test: a set of random programs that runs in the executor, over one kind
 * of edge, from memory that the proof started from (agreement.c). Failures end the test. */
#pragma once

#include "random_program.h"
#include "ranks.h"

#include "program/verify/verify.h"

enum { SLICE_BYTES = 16384, ELEM_BYTES = 8, KINDS = 4, RUNS = 2, CHANNELS = 2, POST_DIV = 3 };
struct size { /* of one trial, in elements */
    size_t chunk, count, grain;
    bool in_place;
    bool captured; /* each rank's work is made once and launched RUNS times, as graphs do */
    int nchannels, nruns;
};

struct trial {
    const struct random_set *set;
    const struct tt_program *program; /* with the flags that are in force */
    const uint8_t *refs[RANDOM_RANKS];
    const char *mode; /* what of the flags is in force */
    bool scales;      /* PRE and POST do something */
    bool keep_order;  /* of the proof */
    struct size size;
    uint64_t seed;
    enum world_kind kind;
    struct world *world;
    uint64_t *in[RUNS][RANDOM_RANKS], *out[RUNS][RANDOM_RANKS];
    size_t in_count, out_count;
};

/* What the set that runs was proved to do. */
struct trial_proved {
    struct tt_proof_unit *unit; /* owned */
    size_t count, capacity;
};
extern struct trial_proved trial_proved;

/* Ends the test: what is wrong, with the seed and the program. */
void trial_fail(const struct trial *trial, const char *what);
struct tt_geometry trial_geometry(const struct trial *trial, int channel);

/* All memory holds what the proof starts from; where nothing is proved, words of its own. */
void trial_fill(const struct trial *trial);
uint64_t trial_word(const struct trial *trial, size_t rank, bool out, size_t k);
/* All memory holds what the proof ends with. */
void trial_compare(const struct trial *trial);

/* Each rank's work is made, and put on its stream unless it is captured. */
void trial_start(struct trial *trial);
/* Of what is captured: all ranks' work on their streams, as often as wanted; then its end. */
void trial_launch(const struct trial *trial);
void trial_release(const struct trial *trial);
/* Steps the ranks in random order. False: a rank is stuck. */
bool trial_play(const struct trial *trial);
bool trial_failed(const struct trial *trial);
bool trial_left_full(const struct trial *trial);
/* A world in which something got stuck is not used again. */
void trial_abandon(const struct trial *trial);
void trial_destroy_worlds(void);
