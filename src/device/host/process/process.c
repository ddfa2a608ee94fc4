/* The one object behind the host device of a process, and how its parts begin: see process.h. It is
 * all zeros in the file, so that a program which never uses a device pays no page for it. */
#include "state.h"

struct tt_host tt_host = {
    .devices.once = PTHREAD_ONCE_INIT,
    .memory = {.once = PTHREAD_ONCE_INIT, .deferred.lock = PTHREAD_MUTEX_INITIALIZER},
    .streams = {.slab.lock = PTHREAD_MUTEX_INITIALIZER,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .once = PTHREAD_ONCE_INIT},
    .events.lock = PTHREAD_MUTEX_INITIALIZER,
    .chunks.lock = PTHREAD_MUTEX_INITIALIZER,
    .captures.lock = PTHREAD_MUTEX_INITIALIZER,
    .workers = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT},
    .graphs = {.graphs.lock = PTHREAD_MUTEX_INITIALIZER,
               .nodes.lock = PTHREAD_MUTEX_INITIALIZER,
               .execs.lock = PTHREAD_MUTEX_INITIALIZER,
               .objects.lock = PTHREAD_MUTEX_INITIALIZER,
               .endings_once = PTHREAD_ONCE_INIT},
    .graph_memory.lock = PTHREAD_MUTEX_INITIALIZER,
    .pools = {.slab.lock = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER},
    .vmm.lock = PTHREAD_MUTEX_INITIALIZER,
    .sharing.lock = PTHREAD_MUTEX_INITIALIZER,
    .hints.lock = PTHREAD_MUTEX_INITIALIZER,
    .registrations.lock = PTHREAD_RWLOCK_INITIALIZER,
    .kernels.lock = PTHREAD_MUTEX_INITIALIZER,
    .libraries.lock = PTHREAD_MUTEX_INITIALIZER,
    .variables.lock = PTHREAD_MUTEX_INITIALIZER,
    .notices.lock = PTHREAD_MUTEX_INITIALIZER,
};

__thread struct tt_host_thread tt_host_thread __attribute__((tls_model("initial-exec")));
