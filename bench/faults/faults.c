/* A table of faults: each at moments by chance of a job's life, for each way that data can take and
 * 2 to 16 ranks. Every rank must end in time, well or with an error that names whom it is about; no
 * wrong byte, no crash, nothing left behind. A scenario's arguments play it again; only the moment
 * within a call at which something from outside comes is another one.
 * POINTS are those at which the fault came; one that came too late, or of which there was nothing
 * to strike, is tried again, up to three times as often. "quick" stands for all faults but those
 * that take longer than a moment. usage: bench-faults [POINTS [SEED [FAULT|all|quick [WAY|all
 * [RANKS]]]]] bench-faults again FAULT WAY RANKS VICTIM SEED MOMENT */
#include "../soak_call.h"
#include "hosts.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_POINTS = 3000, TRIES = 3, SPARE_DESCRIPTORS = 24, QUICK = FAULT_KINDS };

struct row {
    int points, injected, wrong, well, reported, asked, named, times;
    int64_t usec[MOST_POINTS];
};

struct faults {
    struct fault_shared *shared;
    int fd;
    char hooks[512];
    const char *no_hosts; /* NULL: there are */
    struct fault_scenario calm[FAULT_MEDIA][FAULT_RANKS + 1];
    int64_t calm_usec[FAULT_MEDIA][FAULT_RANKS + 1];
    uint64_t counts[FAULT_MEDIA][FAULT_RANKS + 1][FAULT_RANKS][FAULT_KINDS];
    struct row rows[FAULT_KINDS][FAULT_MEDIA];
};

static void report_wrong(const struct faults *f, const struct fault_scenario *scenario,
                         const struct fault_result *result)
{
    const struct fault_word *word = &fault_words[scenario->kind];
    fprintf(
        stderr,
        "faults: %s, %s, %d ranks: rank %d: %s; again: bench-faults again %s %s %d %d %llu %llu\n",
        word->text, fault_media[scenario->medium], scenario->nranks, result->wrong_rank,
        result->wrong, word->word, fault_media[scenario->medium], scenario->nranks,
        scenario->victim, (unsigned long long)scenario->seed, (unsigned long long)scenario->moment);
    if (f->shared->injected_usec > f->shared->begin_usec)
        fprintf(stderr, "    the fault came after %.3f s, %.3f s before the end\n",
                (double)(f->shared->injected_usec - f->shared->begin_usec) / 1e6,
                (double)(f->shared->ended_usec - f->shared->injected_usec) / 1e6);
    for (int r = 0; r < scenario->nranks; r++) {
        const struct fault_report *report = &f->shared->reports[r];
        fprintf(stderr, "    rank %d, %s: %s: code %d: %s\n", r, report->step,
                report->end == END_NONE   ? "no end"
                : report->end == END_WELL ? "well"
                                          : "error",
                report->code, report->sentence);
    }
}

/* What a job without a fault does, once for each way and number of ranks. */
static bool be_calm(struct faults *f, const struct fault_scenario *like)
{
    int medium = (int)like->medium, n = like->nranks;
    struct fault_scenario scenario = *like;
    if (f->calm_usec[medium][n]) return true;
    scenario.kind = FAULT_NONE;
    scenario.moment = 0;
    struct fault_result result = fault_play(f->shared, f->fd, f->hooks, &scenario);
    if (result.wrong) {
        report_wrong(f, &scenario, &result);
        return false;
    }
    f->calm_usec[medium][n] = result.usec;
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < FAULT_KINDS; k++)
            f->counts[medium][n][r][k] = atomic_load(&f->shared->reports[r].counts[k]);
    }
    return true;
}

static uint64_t some_moment(const struct faults *f, const struct fault_scenario *scenario,
                            uint64_t *state)
{
    int medium = (int)scenario->medium, n = scenario->nranks;
    uint64_t most = f->counts[medium][n][scenario->victim][scenario->kind];
    if (fault_words[scenario->kind].is_timed) most = (uint64_t)f->calm_usec[medium][n];
    if (scenario->kind == FAULT_DESCRIPTORS) most = SPARE_DESCRIPTORS + 2 * (uint64_t)n;
    uint64_t chance = soak_mix(*state);
    soak_pick(state, 2);
    return most ? 1 + chance % most : 0;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What the ranks' logs say. */
static void report_logs(int nranks)
{
    char path[160], line[2048];
    for (int r = 0; r < nranks && *hosts_folder("log"); r++) {
        snprintf(path, sizeof(path), "%s/%d", hosts_folder("log"), r);
        FILE *log = fopen(path, "re");
        while (log && fgets(line, sizeof(line), log)) {
            fprintf(stderr, "    log of rank %d: %s", r, line);
        }
        if (log) fclose(log);
    }
}

static void play(struct faults *f, const struct fault_scenario *scenario, bool is_loud)
{
    struct row *row = &f->rows[scenario->kind][scenario->medium];
    struct fault_result result = fault_play(f->shared, f->fd, f->hooks, scenario);
    row->points++;
    row->injected += result.injected;
    row->wrong += result.wrong != NULL;
    row->well += result.well;
    row->reported += result.reported;
    row->asked += result.asked;
    row->named += result.named;
    if (result.reported && row->times < MOST_POINTS) row->usec[row->times++] = result.reported_usec;
    int64_t *calm_usec = &f->calm_usec[scenario->medium][scenario->nranks];
    if (!result.wrong && !result.injected && !result.reported && result.usec < *calm_usec)
        *calm_usec = result.usec; /* the host was busy before: later moments come too late */
    if (!result.wrong && result.asked > result.named) result.wrong = "somebody else is named";
    if (!result.wrong && is_loud) result.wrong = "as it must be";
    if (result.wrong) report_wrong(f, scenario, &result);
    if (is_loud || (result.wrong && scenario->kind != FAULT_DISK)) report_logs(scenario->nranks);
}

static bool play_row(struct faults *f, enum fault_kind kind, enum fault_medium medium,
                     uint64_t seed, int points, int nranks)
{
    const struct fault_word *word = &fault_words[kind];
    if (word->needs_link && (f->no_hosts || medium == MEDIUM_MEMORY)) return true;
    if ((word->needs_disk || medium == MEDIUM_HOSTS) && f->no_hosts) return true;
    const struct row *row = &f->rows[kind][medium];
    const int most = points > 1 ? TRIES * points : 1;
    for (int k = 0; k < most && row->injected < points; k++) {
        uint64_t state = soak_mix(seed + (uint64_t)k * FAULT_KINDS * FAULT_MEDIA +
                                  (uint64_t)(kind * FAULT_MEDIA + medium));
        struct fault_scenario scenario = {.kind = kind, .medium = medium, .seed = soak_mix(state)};
        scenario.nranks =
            soak_pick(&state, 2) ? 2 + soak_pick(&state, 3) : 5 + soak_pick(&state, 12);
        if (nranks) scenario.nranks = nranks;
        scenario.victim = soak_pick(&state, scenario.nranks);
        if (!be_calm(f, &scenario)) return false;
        scenario.moment = some_moment(f, &scenario, &state);
        play(f, &scenario, false);
    }
    return row->wrong == 0;
}

/* A table as docs/reliability.md has it. */
static void report_row(struct row *row, enum fault_kind kind, enum fault_medium medium)
{
    char median[32] = "", most[32] = "";
    if (!row->points) return;
    if (row->times) {
        qsort(row->usec, (size_t)row->times, sizeof(*row->usec), by_size);
        snprintf(median, sizeof(median), "%.1f", (double)row->usec[row->times / 2] / 1000);
        snprintf(most, sizeof(most), "%.1f", (double)row->usec[row->times - 1] / 1000);
    }
    printf("| %s | %s | %d | %d | %d | %d | %d of %d | %s | %s | %d |\n", fault_words[kind].text,
           fault_media[medium], row->points, row->injected, row->well, row->reported, row->named,
           row->asked, median, most, row->wrong);
    fflush(stdout);
}

/* ---- the command line ---- */

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench-faults [POINTS [SEED [FAULT|all|quick [WAY|all [RANKS]]]]]\n"
                    "       bench-faults again FAULT WAY RANKS VICTIM SEED MOMENT\nFAULT:");
    for (int k = FAULT_NONE + 1; k < FAULT_KINDS; k++)
        fprintf(stderr, " %s", fault_words[k].word);
    fprintf(stderr, "\nWAY: memory hosts sockets\n");
    exit(2);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
    char *rest = NULL;
    uint64_t value = strtoull(text, &rest, 0);
    if (rest == text || *rest || value < least || value > most) usage();
    return value;
}

static int find_kind(const char *word)
{
    for (int k = 0; k < FAULT_KINDS; k++) {
        if (!strcmp(fault_words[k].word, word)) return k;
    }
    if (!strcmp(word, "quick")) return QUICK;
    if (strcmp(word, "all") != 0) usage();
    return -1;
}

static int find_way(const char *word)
{
    for (int k = 0; k < FAULT_MEDIA; k++) {
        if (!strcmp(fault_media[k], word)) return k;
    }
    if (strcmp(word, "all") != 0) usage();
    return -1;
}

static bool play_again(struct faults *f, char **argv)
{
    int kind = find_kind(argv[0]), medium = find_way(argv[1]);
    if (kind < 0 || kind == QUICK || medium < 0) usage();
    struct fault_scenario scenario = {.kind = (enum fault_kind)kind,
                                      .medium = (enum fault_medium)medium};
    scenario.nranks = (int)number(argv[2], 2, FAULT_RANKS);
    scenario.victim = (int)number(argv[3], 0, (uint64_t)scenario.nranks - 1);
    scenario.seed = number(argv[4], 0, UINT64_MAX);
    scenario.moment = number(argv[5], 0, UINT64_MAX);
    play(f, &scenario, true);
    return f->rows[kind][medium].wrong == 0;
}

static bool play_all(struct faults *f, int argc, char **argv)
{
    int points = argc > 1 ? (int)number(argv[1], 1, MOST_POINTS / TRIES) : 2;
    uint64_t seed = argc > 2 ? number(argv[2], 0, UINT64_MAX) : (uint64_t)fault_now_usec();
    int only = find_kind(argc > 3 ? argv[3] : "all"), one = find_way(argc > 4 ? argv[4] : "all");
    int nranks = argc > 5 ? (int)number(argv[5], 2, FAULT_RANKS) : 0;
    bool well = true;
    printf("faults: %d points of each, seed %llu\n", points, (unsigned long long)seed);
    if (f->no_hosts) printf("without hosts, links and disks: %s\n", f->no_hosts);
    printf("\n| fault | medium | points | injected | ranks that end well | with an error | naming "
           "the rank "
           "| median ms | slowest ms | wrong |\n|---|---|---|---|---|---|---|---|---|---|\n");
    fflush(stdout);
    for (int kind = FAULT_NONE + 1; kind < FAULT_KINDS; kind++) {
        for (int medium = 0; medium < FAULT_MEDIA; medium++) {
            if ((only >= 0 && only != QUICK && kind != only) || (one >= 0 && medium != one))
                continue;
            if (only == QUICK && fault_words[kind].is_slow) continue;
            well &=
                play_row(f, (enum fault_kind)kind, (enum fault_medium)medium, seed, points, nranks);
            report_row(&f->rows[kind][medium], (enum fault_kind)kind, (enum fault_medium)medium);
        }
    }
    return well;
}

static void open_shared(struct faults *f)
{
    ssize_t len = readlink("/proc/self/exe", f->hooks, sizeof(f->hooks) - 32);
    f->fd = memfd_create("faults", 0);
    if (len < 0 || f->fd < 0 || ftruncate(f->fd, sizeof(*f->shared))) exit(2);
    f->hooks[len] = 0;
    strcpy(strrchr(f->hooks, '/') + 1, "libfaults-hooks.so");
    f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (f->shared == MAP_FAILED) exit(2);
}

int main(int argc, char **argv)
{
    static struct faults f;
    if (argc == 4 && !strcmp(argv[1], "rank")) return fault_rank(atoi(argv[2]), atoi(argv[3]));
    bool again = argc > 1 && !strcmp(argv[1], "again");
    if (again ? argc != 8 : argc > 6) usage();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    open_shared(&f);
    f.no_hosts = hosts_open(FAULT_RANKS);
    bool well = again ? play_again(&f, argv + 2) : play_all(&f, argc, argv);
    hosts_close();
    return well ? 0 : 1;
}
