/* Starts the ranks, injects the fault, waits, and judges what they wrote. */
#include "scenario.h"

#include "hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOUND_SEC = 40, START_SEC = 60, STOPPED_USEC = 8000000, DISK_BYTES = 262144 };

const struct fault_word fault_words[FAULT_KINDS] = {
    [FAULT_NONE] = {.word = "none", .text = "none", .is_harmless = true},
    [FAULT_KILLED] = {.word = "killed", .text = "SIGKILL", .is_timed = true},
    [FAULT_PAUSED] = {.word = "paused",
                      .text = "SIGSTOP for up to 0.3 s",
                      .is_harmless = true,
                      .is_timed = true},
    [FAULT_STOPPED] = {.word = "stopped",
                       .text = "SIGSTOP for 8 s",
                       .is_harmless = true,
                       .is_timed = true,
                       .is_slow = true},
    [FAULT_CLOSED] = {.word = "closed", .text = "socket shut down"},
    [FAULT_FLIPPED] = {.word = "flipped", .text = "a bit flipped"},
    [FAULT_CUT] = {.word = "cut",
                   .text = "link cut for up to 3 s",
                   .is_timed = true,
                   .needs_link = true,
                   .is_slow = true},
    [FAULT_PARTED] = {.word = "parted",
                      .text = "link cut",
                      .is_timed = true,
                      .needs_link = true,
                      .is_slow = true},
    [FAULT_LOSS] = {.word = "loss",
                    .text = "1 to 5 % of packets lost",
                    .is_harmless = true,
                    .is_timed = true,
                    .needs_link = true},
    [FAULT_DISK] = {.word = "disk", .text = "disk full", .is_harmless = true, .needs_disk = true},
    [FAULT_DESCRIPTORS] = {.word = "descriptors", .text = "no descriptors"},
    [FAULT_MEMFD] = {.word = "memfd", .text = "no shared memory"},
    [FAULT_MMAP] = {.word = "mmap", .text = "mmap fails"},
    [FAULT_MALLOC] = {.word = "malloc", .text = "malloc fails"},
    [FAULT_CLOCK] = {.word = "clock", .text = "clock jumps", .is_harmless = true},
};
const char *const fault_media[FAULT_MEDIA] = {"memory", "hosts", "sockets"};

struct play { /* a scenario under way */
    struct fault_shared *shared;
    const struct fault_scenario *scenario;
    pid_t pids[FAULT_RANKS];
    int alive, crashed; /* rank that ended as it should not; -1: none */
    bool began, undone;
    int64_t undo_usec;
};

/* ---- ranks ---- */

static int host_of(const struct fault_scenario *scenario, int rank)
{
    if (scenario->medium == MEDIUM_MEMORY) return 0;
    return scenario->medium == MEDIUM_SOCKETS ? rank : rank * 2 / scenario->nranks;
}

static void set_environment(const struct fault_scenario *scenario, int rank)
{
    char text[160];
    bool sockets = scenario->medium == MEDIUM_SOCKETS, disk = scenario->kind == FAULT_DISK;
    setenv("NCCL_P2P_DISABLE", sockets ? "1" : "0", 1);
    setenv("NCCL_SHM_DISABLE", sockets ? "1" : "0", 1);
    snprintf(text, sizeof(text), "host%d", host_of(scenario, rank));
    if (scenario->medium == MEDIUM_HOSTS) setenv("NCCL_HOSTID", text, 1);
    setenv("TUTTI_INIT_TIMEOUT", "20", 1);
    setenv("TUTTI_DEVICES", "16", 1);
    if (!*hosts_folder("log")) return;
    setenv("TMPDIR", hosts_folder("tmp"), 1);
    setenv("NCCL_DEBUG", disk ? "INFO" : "WARN", 1);
    snprintf(text, sizeof(text), "%s/%d", hosts_folder(disk ? "disk" : "log"), rank);
    setenv("NCCL_DEBUG_FILE", text, 1);
}

static _Noreturn void become_rank(const struct fault_scenario *scenario, int fd, const char *hooks,
                                  int rank)
{
    char shared[16], number[16];
    snprintf(shared, sizeof(shared), "%d", fd);
    snprintf(number, sizeof(number), "%d", rank);
    hosts_enter(host_of(scenario, rank));
    set_environment(scenario, rank);
    setenv("LD_PRELOAD", hooks, 1);
    setenv("FAULTS_SHARED", shared, 1);
    setenv("FAULTS_RANK", number, 1);
    execl("/proc/self/exe", "bench-faults", "rank", shared, number, (char *)NULL);
    _exit(2);
}

static void look_after(struct play *p)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (int r = 0; r < p->scenario->nranks; r++) {
            if (p->pids[r] != pid) continue;
            p->pids[r] = 0;
            p->alive--;
            bool by_us = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && p->began &&
                         p->scenario->kind == FAULT_KILLED && r == p->scenario->victim;
            if (!by_us && status != 0) p->crashed = r;
        }
    }
}

/* ---- the fault, as far as it comes from outside ---- */

static void fill_disk(const struct fault_scenario *scenario)
{
    static const char zeros[4096];
    char path[160];
    int64_t left = DISK_BYTES - (int64_t)(scenario->seed % DISK_BYTES);
    snprintf(path, sizeof(path), "%s/fill", hosts_folder("disk"));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && left > 0 && write(fd, zeros, sizeof(zeros)) > 0) {
        left -= (int64_t)sizeof(zeros);
    }
    if (fd >= 0) close(fd);
}

static void inject(struct play *p)
{
    const struct fault_scenario *scenario = p->scenario;
    int host = host_of(scenario, scenario->victim);
    pid_t pid = p->pids[scenario->victim];
    p->began = true;
    int64_t now = fault_now_usec();
    switch (scenario->kind) {
    case FAULT_KILLED:
        if (pid) kill(pid, SIGKILL);
        break;
    case FAULT_PAUSED:
        if (pid) kill(pid, SIGSTOP);
        p->undo_usec = now + 50000 + (int64_t)(scenario->seed % 250000);
        break;
    case FAULT_STOPPED:
        if (pid) kill(pid, SIGSTOP);
        p->undo_usec = now + STOPPED_USEC;
        break;
    case FAULT_CUT:
        p->undo_usec = now + 200000 + (int64_t)(scenario->seed % 2800000); /* fall through */
    case FAULT_PARTED: hosts_link(host, false); break;
    default: return;
    }
    p->shared->all_called = true;
    for (int r = 0; r < scenario->nranks; r++) {
        p->shared->all_called &= !strcmp(p->shared->reports[r].step, "calls");
    }
    atomic_store(&p->shared->injected_usec, now);
}

static void undo(struct play *p)
{
    const struct fault_scenario *scenario = p->scenario;
    int host = host_of(scenario, scenario->victim);
    p->undone = true;
    if (scenario->kind == FAULT_CUT || scenario->kind == FAULT_PARTED) hosts_link(host, true);
    if (scenario->kind == FAULT_LOSS) hosts_loss(host, 0);
    if (p->pids[scenario->victim]) kill(p->pids[scenario->victim], SIGCONT);
}

/* ---- the judgement ---- */

static bool names(const char *sentence, int rank)
{
    char words[16];
    int len = snprintf(words, sizeof(words), "rank %d", rank);
    for (const char *at = sentence; (at = strstr(at, words)); at += len) {
        if (at[len] < '0' || at[len] > '9') return true;
    }
    return false;
}

/* "missing 1, 4, 5" */
static bool misses(const char *sentence, int rank)
{
    const char *at = strstr(sentence, "missing ");
    char *rest = at ? strchr(at, ' ') : NULL;
    while (rest && (*rest == ' ' || *rest == ',')) {
        const char *from = rest + strspn(rest, ", ");
        long found = strtol(from, &rest, 10);
        if (rest == from) return false;
        if (found == rank) return true;
    }
    return false;
}

/* By its number, or by its pid where that is not known yet. */
static bool reports_of(const struct fault_shared *shared, const char *sentence, int rank)
{
    char pid[32];
    snprintf(pid, sizeof(pid), "(pid %d", shared->reports[rank].pid);
    return names(sentence, rank) || misses(sentence, rank) || strstr(sentence, pid);
}

/* The rank that the sentence says aborted; -1: none. */
static int aborter(const char *sentence)
{
    const char *at = strstr(sentence, "aborted the communicator");
    while (at && at > sentence && strncmp(at, "rank ", 5) != 0) {
        at--;
    }
    return at && !strncmp(at, "rank ", 5) ? atoi(at + 5) : -1;
}

/* Both ends of what broke are to blame: of a connection, or of a link, which parts hosts. */
static bool names_other_end(const struct fault_shared *shared, int rank, bool in_part)
{
    const struct fault_scenario *scenario = &shared->scenario;
    const char *sentence = shared->reports[rank].sentence;
    int peer = (int)(shared->peer & 0xff) - 1;
    for (int r = 0;
         r < scenario->nranks && (scenario->kind == FAULT_PARTED || scenario->kind == FAULT_CUT);
         r++) {
        bool apart = host_of(scenario, r) != host_of(scenario, rank);
        if (scenario->medium == MEDIUM_HOSTS && apart && reports_of(shared, sentence, r))
            return true;
    }
    if (scenario->kind != FAULT_CLOSED && scenario->kind != FAULT_FLIPPED) return false;
    /* which ranks share an address cannot be told here */
    if (scenario->medium != MEDIUM_SOCKETS) return strstr(sentence, "rank ") != NULL;
    return names(sentence, peer) || (in_part && names(sentence, peer / 2));
}

/* A rank in a part knows the victim by its number there; ranks of the other part hear of those that
 * gave up because of it. */
static bool names_culprit(const struct fault_shared *shared, int rank)
{
    const struct fault_scenario *scenario = &shared->scenario;
    const char *sentence = shared->reports[rank].sentence;
    int who = aborter(sentence);
    bool in_part = !strcmp(shared->reports[rank].step, "calls of the split");
    if (reports_of(shared, sentence, scenario->victim)) return true;
    if (in_part && rank % 2 == scenario->victim % 2 && names(sentence, scenario->victim / 2))
        return true;
    if (who >= 0 && who < scenario->nranks && who % 2 == scenario->victim % 2 &&
        shared->reports[who].end == END_ERROR)
        return true;
    return names_other_end(shared, rank, in_part);
}

/* Who waits for a process that is stopped is told so in its log; only an init says it later. */
static void judge_stop(const struct play *p, int r, struct fault_result *result)
{
    const struct fault_shared *shared = p->shared;
    char path[160], text[4096] = "";
    if (r == p->scenario->victim || !shared->all_called) return;
    if (shared->reports[r].end_usec - shared->injected_usec < STOPPED_USEC) return;
    snprintf(path, sizeof(path), "%s/%d", hosts_folder("log"), r);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0) text[0] = 0;
    if (fd >= 0) close(fd);
    result->asked++;
    result->named += names(text, p->scenario->victim) && strstr(text, "is stopped");
}

static void judge_rank(const struct play *p, int r, struct fault_result *result)
{
    const struct fault_report *report = &p->shared->reports[r];
    const struct fault_scenario *scenario = p->scenario;
    bool harmless = fault_words[scenario->kind].is_harmless, victim = r == scenario->victim;
    const char *wrong = NULL;
    if (report->end == END_NONE && !(victim && scenario->kind == FAULT_KILLED)) wrong = "hangs";
    if (report->end == END_WRONG) wrong = "wrong data";
    if (report->end == END_WELL) result->well++;
    if (report->end == END_ERROR) {
        int64_t took = result->injected ? report->end_usec - p->shared->injected_usec : 0;
        result->reported++;
        if (took > result->reported_usec) result->reported_usec = took;
        if (!victim) result->asked++;
        if (!victim && names_culprit(p->shared, r)) result->named++;
        if (harmless) wrong = "an error, although nothing was lost";
        if (!result->injected) wrong = "an error before the fault";
        if (!report->sentence[0]) wrong = "an error without a sentence";
        if (report->code == ncclInternalError) wrong = "an internal error";
    }
    if (!wrong || result->wrong) return;
    result->wrong = wrong;
    result->wrong_rank = r;
}

static void judge(const struct play *p, struct fault_result *result)
{
    result->injected = p->shared->injected_usec != 0;
    result->usec = p->shared->ended_usec - p->shared->begin_usec;
    for (int r = 0; r < p->scenario->nranks; r++) {
        judge_rank(p, r, result);
        if (p->scenario->kind == FAULT_STOPPED && *hosts_folder("log")) judge_stop(p, r, result);
    }
    if (p->crashed >= 0 && !result->wrong) {
        result->wrong = "crashed";
        result->wrong_rank = p->crashed;
    }
    if (!*hosts_folder("tmp")) return;
    hosts_sweep(hosts_folder("disk"));
    int files = hosts_sweep(hosts_folder("tmp")) + hosts_sweep("/dev/shm");
    if (files && !result->wrong) result->wrong = "files are left";
    if (waitpid(-1, NULL, WNOHANG) != -1 && !result->wrong) result->wrong = "a process is left";
}

/* ---- all of it ---- */

static void begin(struct play *p, int fd, const char *hooks)
{
    const struct fault_scenario *scenario = p->scenario;
    hosts_sweep(hosts_folder("log"));
    if (scenario->kind == FAULT_DISK) fill_disk(scenario);
    if (scenario->kind == FAULT_LOSS)
        hosts_loss(host_of(scenario, scenario->victim), 1 + (int)(scenario->seed % 5));
    fflush(NULL);
    for (int r = 0; r < scenario->nranks; r++) {
        p->pids[r] = fork();
        if (p->pids[r] == 0) become_rank(scenario, fd, hooks, r);
        p->shared->reports[r].pid = (int)p->pids[r];
        p->alive += p->pids[r] > 0;
    }
    if (scenario->kind == FAULT_DISK || scenario->kind == FAULT_LOSS)
        atomic_store(&p->shared->injected_usec, fault_now_usec());
}

struct fault_result fault_play(struct fault_shared *shared, int fd, const char *hooks,
                               const struct fault_scenario *scenario)
{
    struct play p = {.shared = shared, .scenario = scenario, .crashed = -1};
    struct fault_result result = {0};
    int64_t start = fault_now_usec(), now = start;
    memset(shared, 0, sizeof(*shared));
    shared->scenario = *scenario;
    begin(&p, fd, hooks);
    while (p.alive > 0) {
        bool ready = atomic_load(&shared->ready) >= scenario->nranks;
        if (ready && !shared->begin_usec) atomic_store(&shared->begin_usec, fault_now_usec());
        int64_t from = shared->begin_usec; /* or what a fault that came later leaves to it */
        if (shared->injected_usec > from) from = shared->injected_usec;
        int64_t end =
            ready ? from + (int64_t)BOUND_SEC * 1000000 : start + (int64_t)START_SEC * 1000000;
        now = fault_now_usec();
        if (now > end) break;
        if (ready && !p.began && fault_words[scenario->kind].is_timed &&
            now >= shared->begin_usec + (int64_t)scenario->moment)
            inject(&p);
        if (p.undo_usec && !p.undone && now >= p.undo_usec) undo(&p);
        look_after(&p);
        usleep(200);
    }
    shared->ended_usec = fault_now_usec();
    if (!p.undone) undo(&p);
    for (int r = 0; r < scenario->nranks; r++) {
        if (p.pids[r] <= 0) continue;
        if (shared->reports[r].end == END_WELL)
            shared->reports[r].end = END_NONE; /* it did not exit */
        kill(p.pids[r], SIGKILL);
        waitpid(p.pids[r], NULL, 0);
    }
    judge(&p, &result);
    return result;
}
