/* A set of programs, run step by step under schedules of the test's choice. Nothing is computed:
 * what counts is which access to memory comes before which. What the verifier refuses for a race is
 * shown here by two schedules, both legal, in which two accesses to the same elements come in
 * different orders; that schedules exist is no word of the verifier's: its clocks are not used. */
#pragma once

#include "program/program.h"

struct schedules_set {
    const struct tt_program *program; /* of all ranks; borrowed as all here */
    const uint8_t *const *refs;       /* per rank, of tt_program_find_refs() */
    struct tt_geometry geometry;
    size_t slice;  /* elements */
    int nslots;    /* per edge */
    bool in_place; /* IN and OUT share elements at all ranks */
};

struct schedules_where {
    int rank, pc; /* instruction of the block */
    uint32_t pass;
};
/* What a fault of the verifier is about; false: about no instruction (`rank` may be set). */
bool schedules_where(const char *fault, struct schedules_where *where_out);

/* Two legal schedules in which what that instruction (of the block) of the rank reads or writes,
 * in that pass, comes once before and once after an access of another thread to the same elements,
 * one of them a write. */
bool schedules_flip(const struct schedules_set *set, int rank, int pc, uint32_t pass);

/* A legal schedule in which that instruction touches the memory of a rank that its own one has
 * not seen enter. */
bool schedules_touch_early(const struct schedules_set *set, int rank, int pc, uint32_t pass);

/* A legal schedule in which all threads of the rank are over before another rank's last access to
 * its memory. */
bool schedules_touch_late(const struct schedules_set *set, int rank);

/* True when every schedule ends with all threads over: one decides, as waits never choose. */
bool schedules_end(const struct schedules_set *set);
