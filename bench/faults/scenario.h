/* One job that something happens to, and what became of it. */
#pragma once

#include "shared.h"

struct fault_result {
    bool injected;
    int well, reported,
        named;             /* ranks that ended well; with an error; whose error names the rank */
    int asked;             /* of these, such as need to name it */
    int64_t reported_usec; /* from the fault to the last error */
    const char *wrong;     /* NULL: all is as it must be */
    int wrong_rank;
    int64_t usec; /* from the barrier to the end */
};

struct fault_word {
    const char *word, *text; /* of the command line; of the table */
    bool is_harmless;        /* all ranks must end well */
    bool is_timed;           /* the moment is a time */
    bool needs_link, needs_disk;
    bool is_slow; /* takes much longer than the job */
};
extern const struct fault_word fault_words[FAULT_KINDS];
extern const char *const fault_media[FAULT_MEDIA];

/* Run it; the shared memory keeps what the ranks reported. `fd` is its, `hooks` the library. */
struct fault_result fault_play(struct fault_shared *shared, int fd, const char *hooks,
                               const struct fault_scenario *scenario);
