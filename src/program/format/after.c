/* See after.h. What a thread does after it took a message is: the posts of that transfer, and all
 * that follows it in the thread. A thread that takes one of these posts comes after the message as
 * well, and so on. A transfer posts slices as it takes them, so of that very transfer only the
 * slice of the same number is known to come after; of those that follow it all are. Other waits
 * (`await`, the barrier, the network) are not followed: then less is known. */
#include "after.h"

#include "step.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TRANSFERS = 4096, MOST_POSTS = 8192, MOST_EDGES = 16384 };
#define NONE UINT32_MAX

struct tt_after {
    const struct tt_program *program; /* borrowed */
    uint32_t nlanes;                  /* threads of all ranks; while a phase runs, as are */
    uint32_t ntransfers, nposts;      /* these: so many came before */
    uint32_t ntakes;                  /* of slots of the network none */
    uint32_t *lane_at;                /* by lane, and the end: its first transfer */
    uint32_t *lane_of;                /* by transfer */
    uint32_t *post_at;                /* by transfer, and the end: its first post */
    uint32_t *taker;                  /* by post: the transfer that takes it, or NONE */
    uint32_t *next;                   /* by post: the next one over its edge, plus 1 */
    uint32_t *head, *tail;            /* by edge: first post that was not taken, last one; plus 1 */
    uint32_t *since;                  /* by lane: transfers from here on come after, or NONE */
    uint32_t *todo;                   /* transfers whose lanes are not updated yet */
};

enum phase { COUNTS, POSTS, TAKES };

/* No rank takes an operand of the network. */
static void note_post(struct tt_after *after, int rank, const struct tt_location *location)
{
    uint32_t n = (uint32_t)after->program->nranks, post = after->nposts;
    uint32_t channel = (uint32_t)location->edge / n;
    uint32_t edge = (channel * n + (uint32_t)rank) * n + (uint32_t)location->rank;
    after->taker[post] = NONE;
    after->next[post] = 0;
    if (location->space != TT_SPACE_SLOT) return;
    if (after->tail[edge]) after->next[after->tail[edge] - 1] = post + 1;
    if (!after->head[edge]) after->head[edge] = post + 1;
    after->tail[edge] = post + 1;
}

static void note_take(struct tt_after *after, int rank, const struct tt_location *location)
{
    uint32_t n = (uint32_t)after->program->nranks;
    uint32_t channel = (uint32_t)location->edge / n;
    uint32_t edge = (channel * n + (uint32_t)location->rank) * n + (uint32_t)rank;
    uint32_t post = after->head[edge];
    if (location->space != TT_SPACE_SLOT) return;
    after->ntakes++;
    if (!post) return;
    after->taker[post - 1] = after->ntransfers;
    after->head[edge] = after->next[post - 1];
}

static void note_transfer(struct tt_after *after, const struct tt_stepper *stepper,
                          enum phase phase)
{
    struct tt_side side = {.sends = phase != TAKES};
    struct tt_location location;
    if (phase == POSTS) {
        after->lane_of[after->ntransfers] = after->nlanes;
        after->post_at[after->ntransfers] = after->nposts;
    }
    while (tt_stepper_location(stepper, &side, &location)) {
        if (!tt_location_is_slot(&location)) continue;
        if (phase == POSTS) note_post(after, stepper->rank, &location);
        if (phase == TAKES) note_take(after, stepper->rank, &location);
        if (phase != TAKES) after->nposts++;
    }
    after->ntransfers++;
}

/* The transfers of a thread. False: there are too many. */
static bool walk_lane(struct tt_after *after, int rank, int thread, enum phase phase)
{
    struct tt_stepper stepper;
    enum tt_next next;
    if (phase == POSTS) after->lane_at[after->nlanes] = after->ntransfers;
    tt_stepper_start(&stepper, after->program, rank, thread, 1);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        if (next == TT_NEXT_MOVE) note_transfer(after, &stepper, phase);
        if (after->ntransfers > MOST_TRANSFERS || after->nposts > MOST_POSTS) return false;
    }
    after->nlanes++;
    return true;
}

/* All transfers, lane by lane; likewise. */
static bool walk(struct tt_after *after, enum phase phase)
{
    const struct tt_program *program = after->program;
    after->nlanes = after->ntransfers = after->nposts = 0;
    for (int rank = 0; rank < program->nranks; rank++) {
        for (int thread = 0; thread < tt_program_nthreads(program, rank); thread++)
            if (!walk_lane(after, rank, thread, phase)) return false;
    }
    return true;
}

/* Over each edge as many messages are taken as posted; else one pass takes what another posted. */
static bool is_even(const struct tt_after *after, size_t nedges)
{
    uint32_t ntaken = 0;
    for (uint32_t post = 0; post < after->post_at[after->ntransfers]; post++)
        ntaken += after->taker[post] != NONE;
    bool even = ntaken == after->ntakes;
    for (size_t edge = 0; edge < nedges; edge++)
        even = even && !after->head[edge];
    return even;
}

static uint32_t *take_words(uint32_t **words, size_t count)
{
    uint32_t *at = *words;
    *words += count;
    return at;
}

struct tt_after *tt_after_create(const struct tt_program *program)
{
    struct tt_after counted = {.program = program};
    size_t n = (size_t)program->nranks, nedges = (size_t)program->nchannels * n * n;
    if (n > MOST_EDGES || nedges > MOST_EDGES || !walk(&counted, COUNTS)) return NULL;
    size_t nlanes = counted.nlanes, ntransfers = counted.ntransfers, nposts = counted.nposts;
    size_t nwords = 2 * nlanes + 2 * ntransfers + 3 * nposts + 2 * nedges + 3;
    struct tt_after *after = tt_calloc(1, sizeof(*after) + nwords * sizeof(uint32_t));
    if (!after) return NULL;
    uint32_t *words = (uint32_t *)(void *)(after + 1);
    after->program = program;
    after->lane_at = take_words(&words, nlanes + 1);
    after->lane_of = take_words(&words, ntransfers);
    after->post_at = take_words(&words, ntransfers + 1);
    after->taker = take_words(&words, nposts);
    after->next = take_words(&words, nposts);
    after->head = take_words(&words, nedges);
    after->tail = take_words(&words, nedges);
    after->since = take_words(&words, nlanes);
    after->todo = take_words(&words, nposts + 1);
    walk(after, POSTS);
    after->lane_at[nlanes] = after->ntransfers;
    after->post_at[ntransfers] = after->nposts;
    walk(after, TAKES);
    if (is_even(after, nedges)) return after;
    free(after);
    return NULL;
}

void tt_after_destroy(struct tt_after *after)
{
    free(after);
}

/* ---- what comes after ---- */

static uint32_t lane_number(const struct tt_after *after, int rank, int thread)
{
    uint32_t lane = (uint32_t)thread;
    for (int r = 0; r < rank; r++)
        lane += (uint32_t)tt_program_nthreads(after->program, r);
    return lane;
}

/* From that transfer on its lane comes after the message; so do those that take what it posts. */
static void spread(struct tt_after *after, uint32_t transfer)
{
    uint32_t ntodo = 0;
    memset(after->since, 0xff, after->nlanes * sizeof(*after->since)); /* NONE */
    after->todo[ntodo++] = transfer;
    while (ntodo > 0) {
        uint32_t first = after->todo[--ntodo];
        uint32_t *since = &after->since[after->lane_of[first]];
        uint32_t end = after->lane_at[after->lane_of[first] + 1];
        if (first >= *since) continue;
        if (end > *since) end = *since;
        *since = first;
        /* each post is looked at once in all, so there is room */
        for (uint32_t post = after->post_at[first]; post < after->post_at[end]; post++) {
            if (after->taker[post] != NONE) after->todo[ntodo++] = after->taker[post];
        }
    }
}

bool tt_after_taken(struct tt_after *after, const struct tt_after_transfer *posted, uint32_t later)
{
    uint32_t lane = lane_number(after, posted->rank, posted->thread);
    uint32_t first = after->lane_at[lane] - 1; /* numbers count from 1 */
    uint32_t transfer = first + posted->number;
    for (uint32_t post = after->post_at[transfer]; post < after->post_at[transfer + 1]; post++) {
        if (after->taker[post] == NONE) return false;
        spread(after, after->taker[post]);
        if (after->since[lane] > first + later) return false;
    }
    return true;
}
