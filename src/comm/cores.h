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

/* The mask of this process, and the tightest CPU quota of the control groups that it is in
 * (cpu.max, or cpu.cfs_quota_us of version 1), in whole cores. */
void tt_cores_mask(int cores, struct tt_core_limit *limit_out);
void tt_cores_quota(struct tt_core_limit *limit_out);

/* The quota in a control group's folder; INT32_MAX when there is none. */
int32_t tt_cores_quota_at(const char *folder);

/* Cores that the ranks can use at one time: of each set as many as it has, or has ranks. Reorders
 * `users`. cores  nnodes; a smaller value that stands there stays */
void tt_cores_together(struct tt_core_user *users, size_t nusers, int *cores, int nnodes);
