/* The search for good programs: machines, what a collective moves, formulas that a SAT solver
 * answers, and the files that come out.
 *
 * A schedule moves C chunks per block in S steps and R rounds: a step is one or more rounds, and in
 * a round a link of width w carries at most w chunks. What a rank sends in a step it held before
 * the step (the formulation of SCCL, PPoPP 2021). */
#pragma once

#include "program/program.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SEARCH_MOST_RANKS = 32,
    SEARCH_MOST_LINKS = SEARCH_MOST_RANKS * (SEARCH_MOST_RANKS - 1),
    SEARCH_MOST_CHUNKS = 64, /* of a block */
    SEARCH_MOST_ROUNDS = 64,
    SEARCH_MOST_MIB = 256, /* of a formula; a solver needs several times that */
};

struct search_machine {
    char name[64];
    int nranks, nlinks;
    struct search_link {
        int from, to, width;
    } links[SEARCH_MOST_LINKS];
    int port;         /* chunks that a rank may send in a round, and receive; 0: any number */
    double unit_gbps; /* of a link of width 1 */
    int distance[SEARCH_MOST_RANKS][SEARCH_MOST_RANKS];
};

/* A machine by its name (ring, line, hypercube, fully-connected, dgx1v) or from a machine file: its
 * NVLinks. nranks 0: what the machine has. False: refused, and said. */
bool search_machine_open(const char *name, int nranks, struct search_machine *machine);
/* The same with all links the other way. */
void search_machine_turn(struct search_machine *machine);
bool search_machine_is_symmetric(const struct search_machine *machine);

/* Chunks that are copied from where they begin to all ranks of a set. Sums are the same in reverse
 * (`sums`): every contribution goes the way back. An AllReduce is a ReduceScatter and then the
 * AllGather that it was turned from. */
struct search_goal {
    enum tt_func func;
    bool sums, gathers; /* AllReduce: both */
    bool exchanges; /* an AllReduce whose ranks add what comes to what they have, or replace it */
    int nranks, nkinds;
    struct search_kind {
        int from, block; /* block: number in the buffer of those that have one for each rank */
        uint32_t to;     /* ranks */
    } kinds[SEARCH_MOST_LINKS];
};
bool search_goal_make(enum tt_func func, int nranks, struct search_goal *goal);
/* An AllReduce that is not composed: each rank has one sum of each chunk and passes that on. */
void search_goal_exchange(int nranks, struct search_goal *goal);

enum { SEARCH_MOST_GROUPS = 12 };
/* Ways to exchange ranks after which the machine and the goal are the same; the first changes
 * nothing. */
struct search_group {
    int count;
    int images[SEARCH_MOST_RANKS][SEARCH_MOST_RANKS];
};
struct search_symmetry {
    struct search_group group;
    /* Each makes of a kind's first chunk the one that many on, and so on: chunks of a kind are a
     * multiple of `group.count`. Otherwise it makes of a chunk the same one of another kind. */
    bool turns;
    int kinds[SEARCH_MOST_RANKS][SEARCH_MOST_LINKS]; /* what each makes of kinds and links */
    int links[SEARCH_MOST_RANKS][SEARCH_MOST_LINKS];
};
/* Groups, the largest first; their number. Where each rank is the source of a kind one group, in
 * which only the first element leaves a rank in its place; else up to SEARCH_MOST_GROUPS, one of an
 * order, in which only the first leaves a link in its place. */
int search_symmetry_find(const struct search_goal *goal, const struct search_machine *machine,
                         struct search_group *groups);
/* What a group does to kinds and links. */
void search_symmetry_use(const struct search_goal *goal, const struct search_machine *machine,
                         const struct search_group *group, struct search_symmetry *symmetry);

struct search_bounds {
    int steps;          /* no schedule has fewer */
    int rounds, chunks; /* nor fewer rounds per chunk than this fraction, which is reduced */
};
struct search_bounds search_bounds(const struct search_goal *goal,
                                   const struct search_machine *machine);

struct search_size {
    int steps, rounds, chunks;
};
struct search_move {
    int kind, chunk, from, to, step; /* chunk: of the block; step: from 1 */
    bool adds;                       /* `exchanges`: to what the receiver has; else in its place */
};
struct search_schedule {
    struct search_move *moves; /* owned; in the order of steps */
    int nmoves;
};

/* ---- formulas ---- */

struct search_formula { /* in conjunctive normal form, as the solvers read it */
    int *words;         /* owned; clauses, each ends with 0 */
    size_t nwords, capacity;
    int nvariables, nclauses;
    bool full; /* memory is short, or it is larger than any solver would answer */
};
int search_variable(struct search_formula *formula);
/* At least one of `count` literals. */
void search_clause(struct search_formula *formula, const int *literals, int count);
/* Variables that are true where at least 1, 2, ... `most` of the literals are; as many as written
 * to `atleast`. */
int search_count(struct search_formula *formula, const int *literals, int count, int *atleast,
                 int most);
void search_formula_fini(struct search_formula *formula);

enum search_answer {
    SEARCH_FOUND,
    SEARCH_NONE,    /* proved: there is none */
    SEARCH_OPEN,    /* no answer in time */
    SEARCH_STOPPED, /* a signal came */
    SEARCH_BROKEN,  /* said */
};

struct search_solver {
    const char *program; /* borrowed; NULL: the first that is installed */
    const char *doing;   /* for the line of progress; borrowed */
    int signal_fd;
    double began_sec; /* when the line of progress may come after two seconds */
    bool reported;    /* the line of progress stands */
    bool too_large;   /* a formula was not asked for its size */
};
/* *values_out (owned by the caller): truth of variables from 1, when it is satisfiable. */
enum search_answer search_solve(struct search_solver *solver, const struct search_formula *formula,
                                double limit_sec, char **values_out);
/* The solver that will be asked; NULL: none is installed. */
const char *search_solver_find(const char *wanted);
double search_now(void);

struct search_question {
    const struct search_goal *goal;
    const struct search_machine *machine;
    const struct search_symmetry *symmetry; /* NULL: any; else one that looks the same after each */
    struct search_size size;
};
/* Is there a schedule of that size? *schedule_out (moves owned by the caller) when FOUND. */
enum search_answer search_schedule(const struct search_question *question,
                                   struct search_solver *solver, double limit_sec,
                                   struct search_schedule *schedule_out);

/* The schedule as MSCCL's XML; the caller frees it. NULL: memory is short. */
char *search_write(const struct search_goal *goal, const struct search_schedule *schedule,
                   struct search_size size, const char *name, size_t *bytes_out);
