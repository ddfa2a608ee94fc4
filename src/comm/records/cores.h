/* Which cores a rank may compute on, and how many the ranks of a host have together. Private to
 * comm/. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tt_core_limit { /* of one rank; ranks of a host with equal `set` share those cores */
    uint32_t set;      /* hash of what is shared: an affinity mask, or a control group */
    int32_t cores;     /* in it, at least 1; INT32_MAX: no limit */
};

struct tt_core_user { /* a rank */
    int node;         /* its host, from 0 */
    struct tt_core_limit limit;
};

/* Read the affinity mask of this process (`cores` are on the host), and the smallest CPU quota of
 * its control groups (cpu.max, or cpu.cfs_quota_us of version 1), in whole cores. */
void tt_cores_mask(int cores, struct tt_core_limit *limit_out);
void tt_cores_quota(struct tt_core_limit *limit_out);

/* The quota in a control group's folder; INT32_MAX when there is none. */
int32_t tt_cores_quota_at(const char *folder);

/* Cores that the ranks can use at one time: of each set its number of cores or of ranks, whichever
 * is less. Reorders `users`.
 * cores  one entry per host, nnodes of them; a smaller value that is there already stays */
void tt_cores_together(struct tt_core_user *users, size_t nusers, int *cores, int nnodes);
