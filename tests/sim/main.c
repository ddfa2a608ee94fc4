/* sim-network [SEEDS [FIRST [seconds [cut|busy|rails|every [STEP [VICTIM calls|turns N]]]]]]: plays
 * that many jobs, or as many as the time allows, and says which seeds ended otherwise than
 * promised: with a wrong byte, a hang, a crash, or an error without need or that has no sentence. A
 * failing seed plays again with `1 SEED`. With `cut` a process of each job is apart for 2 to 8 s
 * early in the init, and nothing else happens; with `busy` its threads wait for a processor again
 * and again; with `rails` each has two interfaces, of which one is cut. With `every` a job of 3 or
 * 4 ranks is played again and again: each process is killed at each turn, and before each of its
 * calls (at one in STEP); or at the one moment that is named. */
#include "simulation.h"

#include "base/mem.h"
#include "bootstrap/tree/blocks.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct sim_world *sim;

#define LONG_CUT_NSEC (200 * SIM_SEC) /* longer than a job takes */

static const char *const fault_names[SIM_FAULT_COUNT_] = {"none",
                                                          "killed",
                                                          "no power",
                                                          "stopped",
                                                          "apart",
                                                          "a link cut",
                                                          "a bit flipped",
                                                          "a connection reset",
                                                          "no descriptor left",
                                                          "no memory now and then",
                                                          "busy",
                                                          "an interface cut"};

/* ---- the plan of a seed ---- */

/* Who makes the ids; the first ranks of their blocks do. */
static void plan_ids(struct sim_plan *plan)
{
    plan->nids = sim_chance(2) ? 1 : 1 + (int)sim_chance(SIM_IDS);
    if (plan->nids > plan->nranks) plan->nids = plan->nranks;
    const struct tt_blocks blocks = {plan->nranks, plan->nids};
    for (int i = 0; i < plan->nids; i++)
        plan->maker[i] = tt_blocks_start(&blocks, i);
    plan->sealed = sim_chance(3) == 0;
}

/* One interface of up to two processes is cut, the same one, and maybe again. */
static void plan_rails(struct sim_plan *plan)
{
    const int way = (int)sim_chance(SIM_PATHS);
    for (int t = 0; t < SIM_FAULTS; t++) {
        struct sim_trouble *trouble = &plan->troubles[t];
        if (t && sim_chance(2)) continue;
        trouble->fault = SIM_FAULT_RAIL;
        trouble->way = way;
        trouble->turn = 200 + sim_chance(3000);
        trouble->nsec = sim_chance(2) ? LONG_CUT_NSEC : 1 + sim_chance(20 * SIM_SEC);
    }
}

/* The only fault is one that ends, early in the init; or interfaces are cut. */
static void plan_alone(enum sim_fault fault)
{
    struct sim_plan *plan = &sim->plan;
    for (int t = 0; t < SIM_FAULTS; t++)
        plan->troubles[t].fault = SIM_FAULT_NONE;
    if (fault == SIM_FAULT_RAIL) {
        plan_rails(plan);
        return;
    }
    plan->troubles[0].fault = fault;
    plan->troubles[0].turn = 1 + sim_chance(200);
    plan->troubles[0].nsec = 2 * SIM_SEC + sim_chance(6 * SIM_SEC);
}

struct moment { /* of a death; the job's only fault */
    bool is_call;
    int victim;
    uint64_t number;
};

struct options {
    enum sim_fault alone;       /* NONE: any */
    const struct moment *death; /* NULL: none */
};

/* All ranks are alone in their processes. */
static void plan_death(const struct moment *death)
{
    struct sim_plan *plan = &sim->plan;
    plan->nprocs = plan->nranks = 3 + (int)(plan->seed % 2);
    for (int r = 0; r < plan->nranks; r++)
        plan->proc_of[r] = r;
    for (int t = 0; t < SIM_FAULTS; t++)
        plan->troubles[t].fault = SIM_FAULT_NONE;
    struct sim_trouble *trouble = &plan->troubles[0];
    trouble->fault = SIM_FAULT_KILL;
    trouble->victim = death->victim;
    trouble->turn = death->is_call ? 0 : death->number;
    trouble->call = death->is_call ? death->number : 0;
}

static void plan_troubles(struct sim_plan *plan)
{
    static const enum sim_fault faults[] = {
        SIM_FAULT_NONE, SIM_FAULT_KILL,  SIM_FAULT_KILL,  SIM_FAULT_KILL, SIM_FAULT_POWER,
        SIM_FAULT_STOP, SIM_FAULT_STOP,  SIM_FAULT_PART,  SIM_FAULT_PART, SIM_FAULT_FLIP,
        SIM_FAULT_FLIP, SIM_FAULT_RESET, SIM_FAULT_RESET, SIM_FAULT_NONE, SIM_FAULT_FLIP,
        SIM_FAULT_CUT,  SIM_FAULT_CUT,   SIM_FAULT_FULL,  SIM_FAULT_FULL, SIM_FAULT_POOR,
        SIM_FAULT_POOR, SIM_FAULT_BUSY,  SIM_FAULT_RAIL};
    for (int t = 0; t < SIM_FAULTS; t++) {
        struct sim_trouble *trouble = &plan->troubles[t];
        trouble->victim = (int)sim_chance((uint64_t)plan->nprocs);
        trouble->turn = 1 + sim_chance(sim_chance(4) ? 700 : 60);
        trouble->nsec = 1 + sim_chance(sim_chance(8) ? SIM_SEC : 20 * SIM_SEC);
        trouble->other = trouble->way = -1;
        if (sim_chance((uint64_t)t + 1)) continue; /* a quarter of the jobs has one at most */
        trouble->fault = faults[sim_chance(TT_LEN(faults))];
        if (trouble->fault == SIM_FAULT_RAIL && plan->nways > 1) {
            trouble->way = (int)sim_chance(SIM_PATHS);
            if (sim_chance(2)) trouble->nsec = LONG_CUT_NSEC;
        }
        if (trouble->fault == SIM_FAULT_CUT)
            trouble->other =
                (trouble->victim + 1 + (int)sim_chance((uint64_t)plan->nprocs - 1)) % plan->nprocs;
        if (t > 0 && sim_chance(2)) /* while the others act on the first */
            trouble->turn = plan->troubles[0].turn + sim_chance(60);
    }
}

static void make_plan(uint64_t seed, const struct options *options)
{
    struct sim_plan *plan = &sim->plan;
    memset(sim, 0, offsetof(struct sim_world, sockets));
    for (int i = 0; i < SIM_SOCKETS; i++)
        sim->sockets[i].kind = SIM_NOTHING;
    sim->random = seed * 0x9e3779b97f4a7c15u + 1;
    sim->now = SIM_SEC;
    sim->next_port = 20000;
    plan->seed = seed;
    plan->nprocs = 2 + (int)sim_chance(SIM_PROCS - 1);
    plan->nranks = plan->nprocs + (int)sim_chance(SIM_RANKS - SIM_PROCS + 1);
    for (int r = 0; r < plan->nranks; r++)
        plan->proc_of[r] = r % plan->nprocs;
    static const uint64_t latencies[] = {20000, 200000, 5000000, 50000000};
    plan->latency_nsec = latencies[sim_chance(4)];
    plan->short_one_in = sim_chance(2) ? 3 : 1000000;
    plan->switch_one_in = sim_chance(2) ? 4 : 1000000;
    plan->nways = options->alone == SIM_FAULT_RAIL || sim_chance(4) == 0 ? SIM_PATHS : 1;
    plan_troubles(plan);
    if (options->alone) plan_alone(options->alone);
    if (options->death) plan_death(options->death);
    plan_ids(plan);
    for (int p = 0; p < plan->nprocs; p++) {
        sim->procs[p].random = seed + (uint64_t)p * 7919;
        sim_thread_new(p);
    }
}

static const char *describe(char *text, size_t bytes)
{
    const struct sim_plan *plan = &sim->plan;
    int len = snprintf(text, bytes, "seed %llu: %d ranks, %d processes, %llu turns",
                       (unsigned long long)plan->seed, plan->nranks, plan->nprocs,
                       (unsigned long long)sim->turns);
    for (int t = 0; t < SIM_FAULTS && len >= 0 && (size_t)len < bytes; t++) {
        const struct sim_trouble *trouble = &plan->troubles[t];
        if (trouble->fault == SIM_FAULT_NONE) continue;
        len += snprintf(text + len, bytes - (size_t)len, ", %s%s: process %d at %s %llu",
                        fault_names[trouble->fault], sim->injected[t] ? "" : " (not reached)",
                        trouble->victim, trouble->call ? "call" : "turn",
                        (unsigned long long)(trouble->call ? trouble->call : trouble->turn));
    }
    return text;
}

/* ---- what is promised ---- */

static int complain(const char *what, int rank)
{
    char text[300];
    printf("WRONG %s: rank %d: %s: '%s' (code %d, step %d, at %.3f s)\n",
           describe(text, sizeof(text)), rank, what, rank < 0 ? "" : sim->reports[rank].sentence,
           rank < 0 ? 0 : (int)sim->reports[rank].rc, rank < 0 ? 0 : sim->reports[rank].step,
           rank < 0 ? 0 : (double)sim->reports[rank].at / 1e9);
    return 1;
}

/* Faults that a job may not notice. */
static bool is_short(void)
{
    uint64_t nsec = 0;
    for (int t = 0; t < SIM_FAULTS; t++) {
        const struct sim_trouble *trouble = &sim->plan.troubles[t];
        bool lasts = trouble->fault == SIM_FAULT_STOP || trouble->fault == SIM_FAULT_PART ||
                     trouble->fault == SIM_FAULT_CUT || trouble->fault == SIM_FAULT_BUSY ||
                     trouble->fault == SIM_FAULT_RAIL;
        if (sim->injected[t]) nsec += lasts ? trouble->nsec : SIM_SEC;
    }
    return nsec < SIM_SEC;
}

static bool is_death(int t)
{
    enum sim_fault fault = sim->plan.troubles[t].fault;
    return sim->injected[t] && (fault == SIM_FAULT_KILL || fault == SIM_FAULT_POWER);
}

/* The process ended in the middle of the job; -1: any did. */
static bool died(int proc)
{
    for (int t = 0; t < SIM_FAULTS; t++) {
        if (is_death(t) && (proc < 0 || sim->plan.troubles[t].victim == proc)) return true;
    }
    return false;
}

/* Nothing but deaths happened, so that no other rank is to be named. */
static bool only_deaths(void)
{
    for (int t = 0; t < SIM_FAULTS; t++) {
        if (sim->injected[t] && !is_death(t)) return false;
    }
    return died(-1);
}

/* As the word itself, or in a list of those that are missing; a root's process by its pid. */
static bool names(const char *sentence, int rank)
{
    const char *list = strstr(sentence, "missing ");
    char word[16];
    snprintf(word, sizeof(word), "%d", rank);
    for (const char *at = strstr(sentence, word); at; at = strstr(at + 1, word)) {
        bool whole = at > sentence && at[-1] == ' ' && !strchr("0123456789", at[strlen(word)]);
        bool as_rank = at - sentence >= 5 && !strncmp(at - 5, "rank ", 5);
        if ((whole || !at[strlen(word)]) && (as_rank || (list && at > list))) return true;
    }
    return false;
}

static bool names_victim(const struct sim_report *report)
{
    const struct sim_plan *plan = &sim->plan;
    char pid[32];
    for (int r = 0; r < plan->nranks; r++) {
        int proc = plan->proc_of[r];
        snprintf(pid, sizeof(pid), "pid %d", (int)sim->procs[proc].pid);
        if (died(proc) && (names(report->sentence, r) || strstr(report->sentence, pid)))
            return true;
    }
    return false;
}

/* One that failed itself, and then left while this rank waited for it. */
static bool names_leaving(const struct sim_report *report)
{
    for (int r = 0; r < sim->plan.nranks; r++) {
        const struct sim_report *other = &sim->reports[r];
        if (other != report && other->ended && other->rc && names(report->sentence, r) &&
            strstr(report->sentence, "has left the communicator"))
            return true;
    }
    return false;
}

/* Nothing but one interface was cut, of whatever processes, after the inits: all goes by the other.
 */
static bool has_a_way(void)
{
    int way = -1;
    for (int t = 0; t < SIM_FAULTS; t++) {
        const struct sim_trouble *trouble = &sim->plan.troubles[t];
        if (!sim->injected[t]) continue;
        if (trouble->fault != SIM_FAULT_RAIL || (way >= 0 && trouble->way != way)) return false;
        way = trouble->way;
    }
    for (int r = 0; r < sim->plan.nranks && sim->injected_soon; r++)
        if (strstr(sim->reports[r].sentence, " is gone: ")) return false; /* as documented */
    return way >= 0 && !sim->injected_early;
}

/* The other one is there, and its link as well. */
static bool blames_the_living(const struct sim_report *report)
{
    const struct sim_trouble *first = &sim->plan.troubles[0];
    bool passes = (first->fault == SIM_FAULT_PART || first->fault == SIM_FAULT_BUSY) &&
                  first->nsec < 8 * SIM_SEC;
    for (int t = 1; t < SIM_FAULTS; t++)
        passes &= !sim->injected[t];
    return passes && strstr(report->sentence, " is gone: ");
}

/* Nothing but a lack of that happened, and a rank says neither this nor which other rank, of the
 * process that lacks it, or that failed for that and left, it waited for in vain. */
static bool hides_lack(int rank, enum sim_fault fault, const char *word)
{
    const struct sim_plan *plan = &sim->plan;
    const char *sentence = sim->reports[rank].sentence;
    char pid[32];
    bool lacks = false, named = strstr(sentence, word) || names_leaving(&sim->reports[rank]);
    for (int t = 0; t < SIM_FAULTS; t++) {
        const int victim = plan->troubles[t].victim;
        if (!sim->injected[t]) continue;
        if (plan->troubles[t].fault != fault) return false;
        lacks = true;
        snprintf(pid, sizeof(pid), "pid %d", (int)sim->procs[victim].pid);
        named |= strstr(sentence, pid) != NULL;
        for (int r = 0; r < plan->nranks; r++)
            named |= r != rank && plan->proc_of[r] == victim && names(sentence, r);
    }
    return lacks && !named;
}

static int judge_rank(int rank)
{
    const struct sim_report *report = &sim->reports[rank];
    if (report->wrong) return complain("wrong data", rank);
    if (died(sim->plan.proc_of[rank]) || (died(-1) && !sim_has_ids())) return 0;
    if (!report->ended) return complain("no end", rank);
    if (!report->rc) return 0;
    if (!*report->sentence) return complain("no sentence", rank);
    if (is_short()) return complain("an error without need", rank);
    if (has_a_way()) return complain("an error, although the other interface was there", rank);
    if (blames_the_living(report)) return complain("a rank that is there is called gone", rank);
    if (hides_lack(rank, SIM_FAULT_FULL, "descriptor"))
        return complain("descriptors are not named", rank);
    if (hides_lack(rank, SIM_FAULT_POOR, "memory")) return complain("memory is not named", rank);
    const bool right = !only_deaths() || names_victim(report) || names_leaving(report);
    return right ? 0 : complain("another is named", rank);
}

static int judge(void)
{
    int wrong = 0;
    if (sim->stuck) return complain(sim->stuck, -1);
    for (int r = 0; r < sim->plan.nranks; r++)
        wrong += judge_rank(r);
    return wrong;
}

/* ---- a job ---- */

static int reap(void)
{
    int wrong = 0, status;
    for (int p = 0; p < sim->plan.nprocs; p++) {
        if (sim->stuck || died(p) || !atomic_load(&sim->over)) kill(sim->procs[p].pid, SIGKILL);
        waitpid(sim->procs[p].pid, &status, 0);
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) wrong += complain("crash", -1);
    }
    return wrong;
}

static int play_seed(uint64_t seed, const struct options *options)
{
    make_plan(seed, options);
    fflush(NULL);
    for (int p = 0; p < sim->plan.nprocs; p++) {
        pid_t pid = fork();
        if (pid == 0) sim_job(p);
        sim->procs[p].pid = pid;
    }
    int wrong = sim_run() ? 0 : complain("five minutes of real time", -1);
    wrong += reap();
    return wrong ? wrong : judge();
}

/* The same seed takes the same way. */
static int play_twice(uint64_t seed, const struct options *options)
{
    int wrong = play_seed(seed, options);
    uint64_t hash = sim->hash;
    if (wrong) return wrong;
    wrong = play_seed(seed, options);
    return sim->hash == hash ? wrong : wrong + complain("not the same twice", -1);
}

static void one_processor(void)
{
    cpu_set_t set;
    int own = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(own < 0 ? 0 : own, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* ---- all jobs ---- */

struct sums {
    int wrong, both, injected[SIM_FAULT_COUNT_];
    uint64_t jobs, turns;
    uint64_t longest_nsec; /* from a fault after all inits to the last error */
    char longest[300];     /* of which job */
};

static void add_up(struct sums *sums)
{
    int n = 0;
    uint64_t last_at = 0;
    sums->jobs++;
    sums->turns += sim->turns;
    for (int t = 0; t < SIM_FAULTS; t++) {
        sums->injected[sim->plan.troubles[t].fault] += sim->injected[t];
        n += sim->injected[t];
    }
    sums->both += n > 1;
    for (int r = 0; r < sim->plan.nranks && n && !sim->injected_early; r++)
        if (sim->reports[r].rc && sim->reports[r].at > last_at) last_at = sim->reports[r].at;
    if (last_at < sim->injected_at + sums->longest_nsec) return;
    sums->longest_nsec = last_at - sim->injected_at;
    describe(sums->longest, sizeof(sums->longest));
}

/* One process dies at each of its calls, or at each turn. */
static void play_every(struct sums *sums, uint64_t seed, struct moment *death, uint64_t step)
{
    const struct options options = {.death = death};
    do {
        sums->wrong += play_seed(seed, &options);
        add_up(sums);
        death->number += step;
    } while (sim->injected[0]);
}

static void play_deaths(struct sums *sums, uint64_t seed, uint64_t step)
{
    for (int victim = 0; victim < 3 + (int)(seed % 2); victim++) {
        struct moment at_call = {true, victim, 1 + seed % step},
                      at_turn = {false, victim, 1 + seed % step};
        play_every(sums, seed, &at_call, step);
        play_every(sums, seed, &at_turn, step);
    }
}

static void play_one(struct sums *sums, uint64_t seed, const struct options *options)
{
    sums->wrong += seed % 64 == 1 ? play_twice(seed, options) : play_seed(seed, options);
    add_up(sums);
}

static uint64_t number(int argc, char **argv, int k, uint64_t otherwise)
{
    return argc > k ? strtoull(argv[k], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    const uint64_t seeds = number(argc, argv, 1, 300), first = number(argc, argv, 2, 1);
    const time_t seconds = (time_t)number(argc, argv, 3, 0), begin = time(NULL);
    const uint64_t step = number(argc, argv, 5, 1);
    const char *mode = argc > 4 ? argv[4] : "";
    struct sums sums = {0};
    struct moment death = {argc > 7 && !strcmp(argv[7], "calls"), (int)number(argc, argv, 6, 0),
                           number(argc, argv, 8, 1)};
    struct options options = {.death = argc > 8 ? &death : NULL};
    if (!strcmp(mode, "cut")) options.alone = SIM_FAULT_PART;
    if (!strcmp(mode, "busy")) options.alone = SIM_FAULT_BUSY;
    if (!strcmp(mode, "rails")) options.alone = SIM_FAULT_RAIL;
    sim = mmap(NULL, sizeof(*sim), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sim == MAP_FAILED) return 2;
    setenv("NCCL_DEBUG", "NONE", 0);
    one_processor();
    uint64_t seed = first;
    for (; seed < first + seeds && (!seconds || time(NULL) - begin < seconds); seed++) {
        if (!strcmp(mode, "every") && !options.death) {
            play_deaths(&sums, seed, step);
        } else {
            play_one(&sums, seed, &options);
        }
    }
    printf("%llu jobs from seed %llu, %llu turns in %lld s: %d wrong\n",
           (unsigned long long)sums.jobs, (unsigned long long)first, (unsigned long long)sums.turns,
           (long long)(time(NULL) - begin), sums.wrong);
    for (int f = 1; f < SIM_FAULT_COUNT_; f++)
        printf("  %s: %d\n", fault_names[f], sums.injected[f]);
    printf("  jobs with two and more faults: %d\n  the longest from a fault after the inits to the "
           "last error: "
           "%.1f s (%s)\n",
           sums.both, (double)sums.longest_nsec / 1e9, sums.longest);
    return sums.wrong != 0;
}
