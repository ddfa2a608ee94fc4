/* Whose turn it is. See simulation.h. */
#include "simulation.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TURNS = 3000000, REAL_SEC = 300 };
#define MOST_NSEC (300 * SIM_SEC)
#define MOST_HELD_NSEC (2 * SIM_SEC) /* of a busy host's thread, at a time */

static _Thread_local struct sim_thread *own;

struct sim_thread *sim_self(void)
{
    return own;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t word = *state += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

uint64_t sim_chance(uint64_t n)
{
    return next_random(&sim->random) % n;
}

/* ---- the baton ---- */

static void futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *limit)
{
    syscall(SYS_futex, word, what, value, limit, NULL, 0);
}

static void give(struct sim_thread *thread)
{
    atomic_store(&thread->baton, 1);
    if (thread != own) futex(&thread->baton, FUTEX_WAKE, INT32_MAX, NULL);
}

static void await_baton(struct sim_thread *thread)
{
    while (!atomic_load(&thread->baton))
        futex(&thread->baton, FUTEX_WAIT, 0, NULL);
    atomic_store(&thread->baton, 0);
}

static void end_all(const char *stuck)
{
    sim->stuck = stuck;
    atomic_store(&sim->over, 1);
    futex(&sim->over, FUTEX_WAKE, 1, NULL);
}

/* ---- faults ---- */

/* Threads of a process that is gone: they may still wait for batons for a moment, so that no other
 * thread gets those. */
static void end_threads(int proc)
{
    for (int i = 0; i < SIM_THREADS; i++) {
        struct sim_thread *thread = &sim->threads[i];
        if (thread->proc == proc && thread->wait != SIM_FREE) thread->wait = SIM_ENDED;
    }
}

/* Nothing of the process goes on. */
static void take_away(int proc, bool silent)
{
    sim->procs[proc].gone = true;
    end_threads(proc);
    sim_network_drop(proc, silent);
}

/* True: the caller's own process is to die, once the baton is another's. */
static bool inject(int t)
{
    const struct sim_trouble *trouble = &sim->plan.troubles[t];
    struct sim_proc *victim = &sim->procs[trouble->victim];
    if (victim->gone) return false;
    sim->injected_at = sim->now;
    for (int r = 0; r < sim->plan.nranks; r++)
        sim->injected_early |= sim->reports[r].step < 4;
    sim->injected_soon |= sim->now < sim->complete_at + SIM_SEC / 2;
    switch (trouble->fault) {
    case SIM_FAULT_KILL:
    case SIM_FAULT_POWER:
        sim->injected[t] = true;
        take_away(trouble->victim, trouble->fault == SIM_FAULT_POWER);
        if (own && own->proc == trouble->victim) return true;
        kill(victim->pid, SIGKILL);
        break;
    case SIM_FAULT_STOP:
        sim->injected[t] = true;
        if (victim->stopped_until < sim->now + trouble->nsec)
            victim->stopped_until = sim->now + trouble->nsec;
        break;
    case SIM_FAULT_PART:
    case SIM_FAULT_CUT:
    case SIM_FAULT_RAIL:
        sim->injected[t] = true;
        sim_network_part(t);
        break;
    case SIM_FAULT_FLIP: sim->flip_due[t] = true; break; /* in the next packet */
    case SIM_FAULT_RESET: sim->injected[t] = sim_network_reset(trouble->victim); break;
    case SIM_FAULT_POOR:
        if (!sim_has_ids()) break;
        sim->injected[t] = true;
        victim->poor_until = sim->now + trouble->nsec;
        break;
    case SIM_FAULT_BUSY:
        sim->injected[t] = true;
        victim->busy_until = sim->now + trouble->nsec;
        break;
    case SIM_FAULT_FULL:
        if (!sim_has_ids()) break; /* no job, and no rank to say so */
        sim->injected[t] = true;
        sim_network_fill(trouble->victim, trouble->nsec);
        break;
    case SIM_FAULT_NONE:
    case SIM_FAULT_COUNT_: break;
    }
    return false;
}

/* ---- turns ---- */

bool sim_has_ids(void)
{
    bool all = true;
    for (int i = 0; i < sim->plan.nids; i++)
        all &= sim->id_made[i];
    return all;
}

static bool ids_are_coming(void)
{
    for (int i = 0; i < sim->plan.nids; i++) {
        if (!sim->id_made[i] && sim->procs[sim->plan.proc_of[sim->plan.maker[i]]].gone)
            return false;
    }
    return true;
}

static uint64_t ready_at(const struct sim_thread *thread)
{
    uint64_t at = SIM_NEVER, happens;
    switch (thread->wait) {
    case SIM_FREE:
    case SIM_ENDED: return SIM_NEVER;
    case SIM_RUNS: at = sim->now; break;
    case SIM_SLEEPS: at = thread->until; break;
    case SIM_COND: at = thread->woken ? sim->now : thread->until; break;
    case SIM_EPOLL:
        happens = sim_set_ready_at(&sim->sockets[thread->on]);
        at = happens < thread->until ? happens : thread->until;
        break;
    case SIM_JOIN: at = sim->threads[thread->on].wait == SIM_ENDED ? sim->now : SIM_NEVER; break;
    case SIM_ID: at = sim_has_ids() || !ids_are_coming() ? sim->now : SIM_NEVER; break;
    }
    uint64_t not_before = sim->procs[thread->proc].stopped_until;
    if (not_before < thread->held_until) not_before = thread->held_until;
    return at != SIM_NEVER && at < not_before ? not_before : at;
}

/* One of those that can go on now; else the clock moves on. NULL: it is over. */
static struct sim_thread *choose(void)
{
    struct sim_thread *chosen = NULL;
    uint64_t first = SIM_NEVER, n = 0;
    bool any = false;
    for (int i = 0; i < SIM_THREADS; i++) {
        struct sim_thread *thread = &sim->threads[i];
        if (thread->wait == SIM_FREE || thread->wait == SIM_ENDED) continue;
        any = true;
        uint64_t at = ready_at(thread);
        if (at <= sim->now && sim_chance(++n) == 0) chosen = thread;
        if (at < first) first = at;
    }
    if (chosen) return chosen;
    if (!any) end_all(NULL);
    if (any && first == SIM_NEVER) end_all("all wait for each other");
    if (first == SIM_NEVER) return NULL;
    sim->now = first;
    return choose();
}

static void pass_on(void)
{
    struct sim_thread *next = NULL;
    bool own_death = false;
    sim->turns++;
    for (int t = 0; t < SIM_FAULTS; t++) {
        if (sim->turns == sim->plan.troubles[t].turn && inject(t)) own_death = true;
    }
    if (sim->turns > MOST_TURNS) {
        end_all("too many turns");
    } else if (sim->now > MOST_NSEC) {
        end_all("the job takes more than five minutes");
    } else {
        next = choose();
    }
    if (next) {
        if (next->wait != SIM_COND || next->woken) next->wait = SIM_RUNS;
        sim->hash = (sim->hash ^ (uint64_t)(next - sim->threads) ^ sim->now) * 0x100000001b3u;
        give(next);
    }
    if (own_death) raise(SIGKILL);
}

void sim_call(void)
{
    bool own_death = false;
    if (!own) return;
    const uint64_t calls = ++sim->procs[own->proc].calls;
    for (int t = 0; t < SIM_FAULTS; t++) {
        const struct sim_trouble *trouble = &sim->plan.troubles[t];
        if (trouble->victim == own->proc && trouble->call == calls && inject(t)) own_death = true;
    }
    if (!own_death) return;
    pass_on();
    raise(SIGKILL);
}

/* A busy host gives its processor to others first. */
static void hold(struct sim_thread *thread)
{
    const uint64_t until = sim->procs[thread->proc].busy_until;
    if (sim->now >= until) return;
    const uint64_t held =
        sim->now + sim_chance(sim_chance(4) ? MOST_HELD_NSEC / 10 : MOST_HELD_NSEC);
    thread->held_until = held < until ? held : until;
}

void sim_turn(void)
{
    hold(own);
    pass_on();
    await_baton(own);
}

int sim_thread_new(int proc)
{
    for (int i = 0; i < SIM_THREADS; i++) {
        struct sim_thread *thread = &sim->threads[i];
        if (thread->wait != SIM_FREE) continue;
        *thread = (struct sim_thread){.wait = SIM_RUNS, .proc = proc};
        return i;
    }
    return -1;
}

void sim_thread_begin(int thread)
{
    own = &sim->threads[thread];
    await_baton(own);
}

void sim_thread_end(void)
{
    own->wait = SIM_ENDED;
    pass_on();
    own = NULL;
}

void sim_process_end(void)
{
    int proc = own->proc;
    end_threads(proc);
    sim_network_drop(proc, false);
    sim->procs[proc].gone = true;
    pass_on();
    own = NULL;
}

bool sim_run(void)
{
    const struct timespec slice = {.tv_nsec = 100000000};
    pass_on();
    for (int i = 0; i < 10 * REAL_SEC && !atomic_load(&sim->over); i++)
        futex(&sim->over, FUTEX_WAIT, 0, &slice);
    return atomic_load(&sim->over);
}
