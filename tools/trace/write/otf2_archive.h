/* An archive of OTF2 while it is written. A location is a lane, a group of locations a rank. */
#pragma once

#include "otf2_library.h"
#include "slices.h"

/* A rank whose collectives and messages are written as those of an MPI communicator. */
struct otf2_rank {
    uint32_t comm;
    int rank;
    uint32_t member;
    uint32_t group; /* of lanes */
};

/* A state is a parameter of its event's region, with the value as an attribute behind the facts. */
enum { OTF2_STATE_PARAMETER = 0, OTF2_STATE_VALUE = FACT_KIND_COUNT_ };

struct otf2_archive {
    const struct timeline *run; /* borrowed */
    const char *folder;         /* borrowed */
    struct lanes lanes;
    struct slices slices;
    struct slice_names names;
    struct otf2 otf2;
    OTF2_Archive *archive;     /* owned */
    OTF2_AttributeList *facts; /* owned; of the next event */
    struct otf2_rank *ranks;   /* owned; by communicator and rank */
    uint32_t nranks;
    uint32_t
        *comm_rank;    /* owned; of a member: which of its communicator's ranks, or TIMELINE_NONE */
    uint32_t *station; /* owned; of a group of lanes: the lane that stands for it, or NONE */
    uint64_t *nevents; /* owned; of a lane */
    int64_t base_nsec; /* time 0 of the archive */
    bool failed;       /* said */
};

/* What a call of the library returned: anything but success ends the archive. */
void otf2_check(struct otf2_archive *archive, OTF2_ErrorCode code);
/* After the events. The words of the run are strings of the archive under their numbers, facts
 * attributes, names regions. */
void otf2_write_definitions(struct otf2_archive *archive);
/* otf2_ranks.c. False: memory is short. */
bool otf2_make_ranks(struct otf2_archive *archive);
