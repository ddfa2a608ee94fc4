/* Which ranks are members of an MPI communicator in an archive: those that did something, each with
 * a rank of its own and lanes of its own. */
#include "otf2_archive.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static int by_rank(const void *left, const void *right)
{
    const struct otf2_rank *a = left, *b = right;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

/* The lanes of a member are those of its operations; the first of a rank's stands for it. */
static void find_groups(struct otf2_archive *archive, uint32_t *group_of)
{
    const struct timeline *run = archive->run;
    for (uint32_t p = 0; p < run->nparts; p++) {
        uint32_t event = run->parts[p].event, lane = archive->lanes.of_event[event];
        uint32_t group = archive->lanes.lanes[lane].group;
        if (archive->station[group] > lane) archive->station[group] = lane;
        group_of[run->events[event].member] = group;
    }
}

/* Without those whose rank or lanes another member of the communicator has. `taken` is zero. */
static void close_group(struct otf2_archive *archive, uint32_t *taken)
{
    uint32_t kept = 0, first = 0;
    for (uint32_t s = 0; s < archive->nranks; s++) {
        const struct otf2_rank own = archive->ranks[s];
        if (kept > first && archive->ranks[first].comm != own.comm) first = kept;
        bool twice = kept > first && archive->ranks[kept - 1].rank == own.rank;
        if (twice || taken[own.group] == own.comm + 1) continue;
        taken[own.group] = own.comm + 1;
        archive->comm_rank[own.member] = kept - first;
        archive->ranks[kept++] = own;
    }
    archive->nranks = kept;
}

bool otf2_make_ranks(struct otf2_archive *archive)
{
    const struct timeline *run = archive->run;
    size_t groups = archive->lanes.ngroups + (size_t)1, members = run->nmembers + (size_t)1;
    uint32_t *group_of = tt_calloc(members, sizeof(*group_of));
    uint32_t *taken = tt_calloc(groups, sizeof(*taken));
    archive->ranks = tt_calloc(members, sizeof(archive->ranks[0]));
    archive->comm_rank = tt_calloc(members, sizeof(archive->comm_rank[0]));
    archive->station = tt_calloc(groups, sizeof(archive->station[0]));
    bool good = group_of && taken && archive->ranks && archive->comm_rank && archive->station;
    if (good) {
        memset(archive->comm_rank, 0xff, members * sizeof(archive->comm_rank[0]));
        memset(archive->station, 0xff, groups * sizeof(archive->station[0]));
        memset(group_of, 0xff, members * sizeof(*group_of));
        find_groups(archive, group_of);
        for (uint32_t m = 0; m < run->nmembers; m++) {
            const struct timeline_member *member = &run->members[m];
            bool there = member->comm != TIMELINE_NONE && group_of[m] != TIMELINE_NONE;
            if (!there || member->rank < 0) continue;
            archive->ranks[archive->nranks++] =
                (struct otf2_rank){member->comm, member->rank, m, group_of[m]};
        }
        if (archive->nranks)
            qsort(archive->ranks, archive->nranks, sizeof(archive->ranks[0]), by_rank);
        close_group(archive, taken);
    }
    free(group_of);
    free(taken);
    return good;
}
