/* sim-network [SEEDS [FIRST [seconds [cut|busy]]]]: plays that many jobs, or as many as the time
 * allows, and says which seeds ended otherwise than promised: with a wrong byte, a hang, a crash,
 * or an error without need or that has no sentence. A failing seed plays again with `1 SEED`. With
 * `cut` a process of each job is apart for 2 to 8 s early in the init, and nothing else happens;
 * with `busy` its threads wait for a processor again and again. */
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
                                                          "busy"};

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

static void make_plan(uint64_t seed)
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
    static const enum sim_fault faults[] = {
        SIM_FAULT_NONE, SIM_FAULT_KILL,  SIM_FAULT_KILL,  SIM_FAULT_KILL, SIM_FAULT_POWER,
        SIM_FAULT_STOP, SIM_FAULT_STOP,  SIM_FAULT_PART,  SIM_FAULT_PART, SIM_FAULT_FLIP,
        SIM_FAULT_FLIP, SIM_FAULT_RESET, SIM_FAULT_RESET, SIM_FAULT_NONE, SIM_FAULT_FLIP,
        SIM_FAULT_CUT,  SIM_FAULT_CUT,   SIM_FAULT_FULL,  SIM_FAULT_FULL, SIM_FAULT_POOR,
        SIM_FAULT_POOR, SIM_FAULT_BUSY};
    for (int t = 0; t < SIM_FAULTS; t++) {
        struct sim_trouble *trouble = &plan->troubles[t];
        trouble->victim = (int)sim_chance((uint64_t)plan->nprocs);
        trouble->turn = 1 + sim_chance(sim_chance(4) ? 700 : 60);
        trouble->nsec = 1 + sim_chance(sim_chance(8) ? SIM_SEC : 20 * SIM_SEC);
        trouble->other = -1;
        if (sim_chance((uint64_t)t + 1)) continue; /* a quarter of the jobs has one at most */
        trouble->fault = faults[sim_chance(TT_LEN(faults))];
        if (trouble->fault == SIM_FAULT_CUT)
            trouble->other =
                (trouble->victim + 1 + (int)sim_chance((uint64_t)plan->nprocs - 1)) % plan->nprocs;
        if (t > 0 && sim_chance(2)) /* while the others act on the first */
            trouble->turn = plan->troubles[0].turn + sim_chance(60);
    }
    plan_ids(plan);
    for (int p = 0; p < plan->nprocs; p++) {
        sim->procs[p].random = seed + (uint64_t)p * 7919;
        sim_thread_new(p);
    }
}

/* The only fault is one that ends, early in the init. */
static void plan_alone(enum sim_fault fault)
{
    struct sim_plan *plan = &sim->plan;
    for (int t = 0; t < SIM_FAULTS; t++)
        plan->troubles[t].fault = SIM_FAULT_NONE;
    plan->troubles[0].fault = fault;
    plan->troubles[0].turn = 1 + sim_chance(200);
    plan->troubles[0].nsec = 2 * SIM_SEC + sim_chance(6 * SIM_SEC);
}

static const char *describe(char *text, size_t bytes)
{
    const struct sim_plan *plan = &sim->plan;
    int len = snprintf(text, bytes, "seed %llu: %d ranks, %d processes, %llu turns",
                       (unsigned long long)plan->seed, plan->nranks, plan->nprocs,
                       (unsigned long long)sim->turns);
    for (int t = 0; t < SIM_FAULTS && len >= 0 && (size_t)len < bytes; t++) {
        const struct sim_trouble *trouble = &plan->troubles[t];
        len += snprintf(text + len, bytes - (size_t)len, ", %s%s: process %d at turn %llu",
                        fault_names[trouble->fault], sim->injected[t] ? "" : " (not reached)",
                        trouble->victim, (unsigned long long)trouble->turn);
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
                     trouble->fault == SIM_FAULT_CUT || trouble->fault == SIM_FAULT_BUSY;
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

static int play_seed(uint64_t seed, enum sim_fault alone)
{
    make_plan(seed);
    if (alone) plan_alone(alone);
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
static int play_twice(uint64_t seed, enum sim_fault alone)
{
    int wrong = play_seed(seed, alone);
    uint64_t hash = sim->hash;
    if (wrong) return wrong;
    wrong = play_seed(seed, alone);
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

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300, turns = 0;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed = first;
    time_t seconds = argc > 3 ? (time_t)strtol(argv[3], NULL, 10) : 0, begin = time(NULL);
    enum sim_fault alone = SIM_FAULT_NONE;
    if (argc > 4) alone = strcmp(argv[4], "cut") ? SIM_FAULT_BUSY : SIM_FAULT_PART;
    int wrong = 0, both = 0, injected[SIM_FAULT_COUNT_] = {0};
    sim = mmap(NULL, sizeof(*sim), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sim == MAP_FAILED) return 2;
    setenv("NCCL_DEBUG", "NONE", 0);
    one_processor();
    for (; seed < first + seeds && (!seconds || time(NULL) - begin < seconds); seed++) {
        wrong += seed % 64 == 1 ? play_twice(seed, alone) : play_seed(seed, alone);
        turns += sim->turns;
        int n = 0;
        for (int t = 0; t < SIM_FAULTS; t++) {
            injected[sim->plan.troubles[t].fault] += sim->injected[t];
            n += sim->injected[t];
        }
        both += n > 1;
    }
    printf("%llu jobs from seed %llu, %llu turns in %lld s: %d wrong\n",
           (unsigned long long)(seed - first), (unsigned long long)first, (unsigned long long)turns,
           (long long)(time(NULL) - begin), wrong);
    for (int f = 1; f < SIM_FAULT_COUNT_; f++)
        printf("  %s: %d\n", fault_names[f], injected[f]);
    printf("  jobs with two and more faults: %d\n", both);
    return wrong != 0;
}
