/* Versions of the collnet ABI, one file each: collnet_v<N>.c says in what N differs from N + 1 and
 * leaves the rest to it. Private to the room. */
#pragma once

#include "nccl/collnet_v7.h"
#include "nccl/collnet_v8.h"
#include "plugin/collnet.h"

#define TT_COLLNET_UNKNOWN_BYTES ((size_t)512 << 20) /* what versions up to 8 do not say */

enum { TT_COLLNET_OLDEST = 3, TT_COLLNET_NEWEST = 12 };

struct tt_collnet_old {  /* functions where a later version has them; NULL where their types differ
                          */
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

/* Become the collective network that `object` is, a table of the given version. Error: no memory.
 */
ncclResult_t tt_collnet_adopt(struct tt_collnet_plugin *self, int version, const void *object);
/* Name of a function that every one of this version must have and this one has not; NULL: it is
 * complete. After init. */
const char *tt_collnet_missing(const struct tt_collnet_plugin *self);
/* A size or count as older versions say it, or an error that names the function and the version. */
ncclResult_t tt_collnet_narrow(const struct tt_collnet_plugin *self, const char *function,
                               size_t size, int *narrow_out);
