/* Versions of the collnet ABI, one file each: versions/collnet_v<N>.c has what differs between N
 * and N + 1, and calls version N + 1 for the rest. Private to the room. */
#pragma once

#include "nccl/collnet_v7.h"
#include "nccl/collnet_v8.h"
#include "plugin/net/collnet.h"

#define TT_COLLNET_UNKNOWN_BYTES                                                                   \
    ((size_t)512 << 20) /* limit for versions up to 8, which name none */

enum { TT_COLLNET_OLDEST = 3, TT_COLLNET_NEWEST = 12 };

/* Functions where a later version has them; NULL where their types differ. */
struct tt_collnet_old {
    ncclCollNet_v7_t v7; /* of versions 3 to 7 */
    ncclCollNet_v8_t v8; /* the same */
};

/* Fill the table for plugins of a version. */
void tt_collnet_v12(struct tt_collnet_ops *ops);
void tt_collnet_v11(struct tt_collnet_ops *ops);
void tt_collnet_v10(struct tt_collnet_ops *ops);
void tt_collnet_v9(struct tt_collnet_ops *ops);
void tt_collnet_v8(struct tt_collnet_ops *ops);
void tt_collnet_v7(struct tt_collnet_ops *ops);
void tt_collnet_v6(struct tt_collnet_ops *ops);
void tt_collnet_v5(struct tt_collnet_ops *ops);
void tt_collnet_v4(struct tt_collnet_ops *ops);
void tt_collnet_v3(struct tt_collnet_ops *ops);

/* Complete the functions of versions 3 to 7 from old->v7. */
void tt_collnet_adapt_v7(struct tt_collnet_plugin *self);

/* Initialise `self` with `object`, a table of the given version. Errors: ncclSystemError (out of
 * memory). */
ncclResult_t tt_collnet_adopt(struct tt_collnet_plugin *self, int version, const void *object);
/* Name of a required function of this version that is missing; NULL: none is. Call it after init.
 */
const char *tt_collnet_missing(const struct tt_collnet_plugin *self);
/* Convert a size or count to the int of older versions. Errors: ncclInternalError naming function
 * and version when it does not fit. */
ncclResult_t tt_collnet_narrow(const struct tt_collnet_plugin *self, const char *function,
                               size_t size, int *narrow_out);
