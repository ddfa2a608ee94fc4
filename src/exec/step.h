/* Functions of works that work.c (creation) and step.c (running) call of each other. Private to the
 * room. */
#pragma once

#include "exec/exec.h"

/* The item's function: one slice of the work, or its release. */
enum tt_step tt_work_step(struct tt_item *item, enum tt_item_call call);

/* The first step of a work whose turn has come. DONE: it is idle again; otherwise it goes on with
 * tt_work_step(). hot */
enum tt_step tt_work_start(struct tt_work *work);

/* work.c: tt_work_create() but for the item's function, which is the caller's to set. */
ncclResult_t tt_work_make(const struct tt_work_spec *spec, struct tt_work **work_out);

/* Handle TT_ITEM_RELEASE: no step follows. */
void tt_work_release(struct tt_work *work);

/* Put a work that ended into its queue's spares, or free it. Touches the queue last. */
void tt_work_recycle(struct tt_work *work);

/* touches.c: report to the race checker the user's buffers, and that ranks of one process
 * synchronise in each collective, also where another rank has a work of its own for it. */
void tt_work_report_touches(const struct tt_work *work);
