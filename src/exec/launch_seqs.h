/* Queue of sequence numbers that graph launches took for a captured work, and that its runs have
 * not used yet. The launching thread puts, the thread that runs the work takes. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_launch_seqs {
    _Atomic uint64_t next; /* the oldest one, plus 1; not in the ring; 0: none */
    _Atomic size_t count;  /* of the ring; changes under the lock */
    pthread_mutex_t lock;
    uint64_t *ring; /* owned; NULL until launches wait behind one another */
    size_t first, capacity;
};

void tt_launch_seqs_init(struct tt_launch_seqs *seqs);
void tt_launch_seqs_fini(struct tt_launch_seqs *seqs);

/* Append a number. False when out of memory. */
bool tt_launch_seqs_put(struct tt_launch_seqs *seqs, uint64_t seq);

/* Take the oldest; false when there is none. */
bool tt_launch_seqs_take(struct tt_launch_seqs *seqs, uint64_t *seq_out);
