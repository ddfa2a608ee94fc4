/* `tutti program search`: for each number of steps the fewest rounds per chunk, as proved programs.
 *
 * For S steps and R rounds the chunks are raised until a solver says that there is no such schedule
 * (fewer chunks in as many rounds are always possible, so one refusal decides all beyond), or the
 * lower bound does. What is called least rests on these refusals; what has no answer in time is
 * called open. */
#include "search.h"

#include "options.h"
#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIME_IS_OVER = 3, INTERRUPTED = 130 }; /* exit status */
enum { SPARE_ROUNDS = 3 };
static const double step_usec = 1; /* of the prediction for --size */

static const struct tutti_option rows[] = {
    {"--op", "NAME", "a collective: allgather, allreduce, ...", 0},
    {"--ranks", "N", "2 to 32; a machine file says it itself", 0},
    {"--topology", "T",
     "a machine file, or ring, line, hypercube, fully-connected (default), dgx1v", 0},
    {"--size", "BYTES",
     "what the fastest takes at that size (steps of 1 us, links as fast as the "
     "file says)",
     0},
    {"--direct", NULL, "an AllReduce that is not composed: fewer steps, more rounds", 0},
    {"--rounds", "R", "most rounds to look at (default: enough for the lower bound)", 0},
    {"--time", "SEC", "most seconds (default 60)", 0},
    {"--solver", "PROGRAM", "a SAT solver (default: cadical, kissat, cryptominisat5, picosat, z3)",
     0},
    {"-o", "DIR", "write the programs there", 0},
    {"--json", NULL, "JSON instead of text", 0},
};
static const struct tutti_option_table table = {rows, TT_LEN(rows), 0, "program search"};

struct point {
    struct search_size size;
    char *text; /* owned: the program's file */
    size_t text_bytes;
    char file[128];
    bool optimal; /* nothing better with as many steps up to the most rounds */
    bool bound;   /* as few rounds per chunk as any may have */
};

struct search {
    const char *op, *topology, *solver_name, *folder;
    long ranks, rounds, seconds;
    double size_bytes; /* 0: not given */
    bool json, direct;

    struct search_machine machine;
    struct search_goal goal;
    struct search_group groups[SEARCH_MOST_GROUPS];
    struct search_size tried[SEARCH_MOST_GROUPS]; /* for each the last that it does not have */
    int ngroups;
    struct search_symmetry symmetry; /* of the group that is tried */
    struct search_bounds bounds;
    struct search_solver solver;
    double until_sec;
    struct point points[SEARCH_MOST_ROUNDS]; /* by steps */
    int npoints;
    bool open, stopped, broken;
    char doing[96];
};

/* ---- options ---- */

static bool read_size(const char *text, double *bytes_out)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    for (const char *k = units; unit && k <= unit; k++)
        value *= 1024;
    *bytes_out = value;
    return end != text && value >= 1 && value < 1e15 && (!*end || (unit && !end[1]));
}

static int take_option(struct search *search, const char *name, const char *value)
{
    bool right = true;
    if (!strcmp(name, "--op")) search->op = value;
    if (!strcmp(name, "--topology")) search->topology = value;
    if (!strcmp(name, "--solver")) search->solver_name = value;
    if (!strcmp(name, "-o")) search->folder = value;
    if (!strcmp(name, "--json")) search->json = true;
    if (!strcmp(name, "--direct")) search->direct = true;
    if (!strcmp(name, "--ranks"))
        right = tutti_parse_int(value, 2, SEARCH_MOST_RANKS, &search->ranks);
    if (!strcmp(name, "--rounds"))
        right = tutti_parse_int(value, 1, SEARCH_MOST_ROUNDS, &search->rounds);
    if (!strcmp(name, "--time")) right = tutti_parse_int(value, 1, 1000000, &search->seconds);
    if (!strcmp(name, "--size")) right = read_size(value, &search->size_bytes);
    if (right) return 0;
    return tutti_usage_error("program search",
                             "%s: '%s' is out of range (tutti program search "
                             "--help)",
                             name, value);
}

static int read_options(struct search *search, int argc, char **argv)
{
    for (int k = 1, used = 1; k < argc; k += used) {
        const char *value;
        if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) return -1;
        if (argv[k][0] != '-') return tutti_usage_error("program search", "what is '%s'?", argv[k]);
        const struct tutti_option *option =
            tutti_option_take(&table, argv + k, argc - k, &value, &used);
        int wrong = option ? take_option(search, option->name, value) : 2;
        if (wrong) return wrong;
    }
    return search->op ? 0 : tutti_usage_error("program search", "needs --op");
}

void program_search_help(void)
{
    printf(
        "Finds programs for a small machine: for each number of steps the fewest rounds per "
        "chunk.\nA step is what has to come before the next one; in a round each link carries "
        "one chunk (a link\nof width w: w). An AllReduce is composed of a ReduceScatter and an "
        "AllGather, sums are found as\ncopies the other way round. Each program is proved before "
        "it is printed. \"least\" means that a solver\nproved that no schedule of equal steps "
        "has fewer rounds per chunk, or that the links forbid it.\nExit status: 0 done, 1 "
        "nothing found, 2 usage, 3 the time was over, 130 interrupted: what is\nprinted then is "
        "the best so far.\n");
    tutti_option_help(&table);
}

/* ---- one point ---- */

/* As printed: an AllReduce has both halves, and chunks of its whole buffer. */
static struct search_size reported_size(const struct search *search, struct search_size size)
{
    if (search->goal.func != TT_FUNC_ALLREDUCE || search->goal.exchanges) return size;
    return (struct search_size){2 * size.steps, 2 * size.rounds, size.chunks * search->goal.nranks};
}

static bool is_proved(const struct point *point)
{
    char fault[256] = "";
    struct program_proof proof;
    struct program_source source = {.name = point->file};
    ncclResult_t rc =
        tt_import_read(point->text, point->text_bytes, &source.import, fault, sizeof(fault));
    if (rc) {
        (void)fprintf(stderr, "tutti program search: %s: refused: %s\n", point->file, fault);
        return false;
    }
    source.program = source.import->program;
    bool proved = program_prove(&source, &proof);
    if (proved && !proof.proved) {
        (void)fprintf(stderr, "tutti program search: %s: refused: %s\n", point->file,
                      proof.fault[proof.right[0]]);
        proved = false;
    }
    program_proof_fini(&proof);
    program_close(&source);
    return proved;
}

/* Make a program of the schedule and keep it, in place of the last one of as many steps. */
static bool keep(struct search *search, struct search_size size,
                 const struct search_schedule *schedule)
{
    struct point point = {.size = size};
    const struct search_size reported = reported_size(search, size);
    char name[64];
    (void)snprintf(name, sizeof(name), "%s-%.24s-%d-s%d-r%d-c%d", tt_func_name(search->goal.func),
                   search->machine.name, search->goal.nranks, reported.steps, reported.rounds,
                   reported.chunks);
    for (char *at = name; *at; at++) {
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at - 'A' + 'a');
        if (strchr(" <>&\"'", *at)) *at = '-';
    }
    (void)snprintf(point.file, sizeof(point.file), "%s.xml", name);
    point.text = search_write(&search->goal, schedule, size, name, &point.text_bytes);
    if (!point.text) (void)fprintf(stderr, "tutti program search: out of memory\n");
    if (!point.text || !is_proved(&point)) {
        free(point.text);
        return false;
    }
    struct point *last = search->npoints ? &search->points[search->npoints - 1] : NULL;
    if (last && last->size.steps == size.steps) {
        free(last->text);
        *last = point;
    } else {
        search->points[search->npoints++] = point;
    }
    return true;
}

/* ---- the search ---- */

static bool is_done(const struct search *search)
{
    return search->stopped || search->broken || search_now() >= search->until_sec;
}

/* What to ask next for so many steps and rounds: more chunks than any point so far has for them. */
static struct search_size next_size(const struct search *search, int steps, int rounds)
{
    const struct point *best = search->npoints ? &search->points[search->npoints - 1] : NULL;
    int chunks = best ? rounds * best->size.chunks / best->size.rounds + 1 : 1;
    return (struct search_size){steps, rounds, chunks};
}

/* A schedule that has all symmetries (`symmetric`; NONE says nothing of others), or any. */
static enum search_answer ask_once(struct search *search, struct search_size size, bool symmetric)
{
    struct search_schedule schedule = {.moves = NULL};
    const struct search_question question = {.goal = &search->goal,
                                             .machine = &search->machine,
                                             .symmetry = symmetric ? &search->symmetry : NULL,
                                             .size = size};
    const double left = search->until_sec - search_now();
    const double share = left / (symmetric ? 8 : 4); /* the other questions need time, too */
    (void)snprintf(search->doing, sizeof(search->doing),
                   "looking for %d step%s, %d round%s, %d chunk%s", size.steps,
                   size.steps == 1 ? "" : "s", size.rounds, size.rounds == 1 ? "" : "s",
                   size.chunks, size.chunks == 1 ? "" : "s");
    enum search_answer answer =
        search_schedule(&question, &search->solver, share > 2 ? share : left, &schedule);
    if (answer == SEARCH_FOUND && !keep(search, size, &schedule)) answer = SEARCH_BROKEN;
    free(schedule.moves);
    return answer;
}

/* Chunks of such schedules of the group; 0: too many. */
static int fill_chunks(const struct search *search, const struct search_group *group,
                       struct search_size size)
{
    const struct search_bounds *bounds = &search->bounds;
    int turns = search->symmetry.turns ? group->count : 1;
    int chunks = (size.chunks + turns - 1) / turns * turns;
    bool forbidden = chunks * bounds->rounds > size.rounds * bounds->chunks;
    return forbidden || chunks > SEARCH_MOST_CHUNKS ? 0 : chunks;
}

/* A schedule that has all symmetries of a group, of as many chunks or more. */
static enum search_answer ask_symmetric(struct search *search, struct search_size size)
{
    enum search_answer answer = SEARCH_NONE;
    for (int g = 0; g < search->ngroups; g++) {
        struct search_size *tried = &search->tried[g], wanted = size;
        wanted.chunks = fill_chunks(search, &search->groups[g], size);
        if (!wanted.chunks || !memcmp(tried, &wanted, sizeof(wanted))) continue;
        search_symmetry_use(&search->goal, &search->machine, &search->groups[g], &search->symmetry);
        answer = is_done(search) ? SEARCH_OPEN : ask_once(search, wanted, true);
        if (answer != SEARCH_NONE && answer != SEARCH_OPEN) return answer;
        *tried = wanted;
    }
    return answer;
}

/* A Broadcast or Reduce: one kind of chunks. A solver answers most questions sooner than those for
 * symmetric schedules, which come last. */
static bool has_short_formulas(const struct search *search)
{
    return search->goal.nkinds == 1 && !search->direct;
}

static enum search_answer ask(struct search *search, struct search_size size)
{
    if (has_short_formulas(search)) {
        enum search_answer answer = ask_once(search, size, false);
        enum search_answer other = answer == SEARCH_OPEN ? ask_symmetric(search, size) : answer;
        return other == SEARCH_NONE ? answer : other;
    }
    enum search_answer answer = ask_symmetric(search, size);
    if (answer == SEARCH_NONE || answer == SEARCH_OPEN) answer = ask_once(search, size, false);
    return answer;
}

/* With so many steps, is there one with symmetries that has as few rounds per chunk as any may
 * have? Then nothing else need be asked. */
static void ask_bound(struct search *search, int steps)
{
    const struct search_bounds *bounds = &search->bounds;
    enum search_answer answer = SEARCH_NONE;
    for (int k = 1; k * bounds->rounds <= search->rounds && answer == SEARCH_NONE; k++) {
        const struct search_size size = {steps, k * bounds->rounds, k * bounds->chunks};
        bool takes = size.rounds >= steps && size.chunks <= SEARCH_MOST_CHUNKS;
        if (takes && !is_done(search)) answer = ask_symmetric(search, size);
    }
    search->stopped = search->stopped || answer == SEARCH_STOPPED;
    search->broken = search->broken || answer == SEARCH_BROKEN;
}

/* As many chunks as S steps and R rounds have, if that is better than what there is. */
static void raise_chunks(struct search *search, int steps, int rounds)
{
    const struct search_bounds *bounds = &search->bounds;
    enum search_answer answer = SEARCH_FOUND;
    while (answer == SEARCH_FOUND && !is_done(search)) {
        const struct search_size size = next_size(search, steps, rounds);
        bool forbidden = size.chunks * bounds->rounds > rounds * bounds->chunks;
        if (forbidden) return; /* by the links */
        answer = size.chunks > SEARCH_MOST_CHUNKS ? SEARCH_OPEN : ask(search, size);
    }
    search->stopped = search->stopped || answer == SEARCH_STOPPED;
    search->broken = search->broken || answer == SEARCH_BROKEN;
    search->open = search->open || answer != SEARCH_NONE;
}

/* A few more than the steps: pipelines get better with each. */
static long usual_rounds(const struct search_bounds *bounds)
{
    int rounds = (bounds->steps + bounds->rounds - 1) / bounds->rounds * bounds->rounds;
    if (rounds < bounds->steps + SPARE_ROUNDS) rounds = bounds->steps + SPARE_ROUNDS;
    return rounds > SEARCH_MOST_ROUNDS ? SEARCH_MOST_ROUNDS : rounds;
}

/* Of the latest point; its rounds are enough for those of more steps. True: nothing is better. */
static bool judge_point(struct search *search)
{
    const struct search_bounds *bounds = &search->bounds;
    struct point *point = &search->points[search->npoints - 1];
    if (search->rounds < point->size.rounds && point->size.rounds <= SEARCH_MOST_ROUNDS)
        search->rounds = point->size.rounds;
    point->bound = point->size.rounds * bounds->chunks == point->size.chunks * bounds->rounds;
    point->optimal = point->bound || !search->open;
    return point->bound;
}

static void look(struct search *search)
{
    const struct search_bounds *bounds = &search->bounds;
    const bool asked = search->rounds > 0;
    if (!asked) search->rounds = usual_rounds(bounds);
    const long most = asked ? search->rounds : 2 * search->rounds; /* while there is nothing */
    search->until_sec = search_now() + (double)search->seconds;
    for (int steps = bounds->steps; steps <= search->rounds && !is_done(search); steps++) {
        int before = search->npoints;
        if (search->ngroups && search->goal.nkinds > 1) ask_bound(search, steps);
        for (int rounds = steps; rounds <= (search->npoints ? search->rounds : most); rounds++)
            raise_chunks(search, steps, rounds);
        if (search->npoints > before && judge_point(search)) return;
    }
    if (is_done(search)) search->open = true;
}

/* ---- telling it ---- */

static double time_usec(const struct search *search, const struct point *point)
{
    const struct search_size reported = reported_size(search, point->size);
    enum tt_func func = search->goal.func;
    bool whole = func == TT_FUNC_ALLREDUCE || func == TT_FUNC_BROADCAST || func == TT_FUNC_REDUCE;
    double chunk = search->size_bytes / reported.chunks / (whole ? 1 : search->goal.nranks);
    return reported.steps * step_usec +
           reported.rounds * chunk / (search->machine.unit_gbps * 1000);
}

static int fastest(const struct search *search)
{
    int best = 0;
    for (int k = 1; k < search->npoints; k++) {
        if (time_usec(search, &search->points[k]) < time_usec(search, &search->points[best]))
            best = k;
    }
    return best;
}

static const char *verdict(const struct point *point)
{
    if (point->bound) return "least: the links allow no better";
    return point->optimal ? "least" : "open";
}

static void print_points(const struct search *search)
{
    const struct search_size least =
        reported_size(search, (struct search_size){search->bounds.steps, search->bounds.rounds,
                                                   search->bounds.chunks});
    const bool composed = search->goal.func == TT_FUNC_ALLREDUCE && !search->direct;
    printf("%s over %s, %d ranks%s\n", tt_func_name(search->goal.func), search->machine.name,
           search->goal.nranks,
           composed         ? ": ReduceScatter, then AllGather"
           : search->direct ? ": each rank has one sum of each chunk"
                            : "");
    printf("bounds: %d step%s; %.4g rounds per chunk%s\n", least.steps, least.steps == 1 ? "" : "s",
           (double)least.rounds / least.chunks, composed ? " (of such compositions)" : "");
    printf("%5s %6s %6s  %-12s  %s%s\n", "steps", "rounds", "chunks", "rounds/chunk",
           search->size_bytes > 0 ? "predicted us  " : "", "with so many steps");
    for (int k = 0; k < search->npoints; k++) {
        const struct point *point = &search->points[k];
        const struct search_size reported = reported_size(search, point->size);
        printf("%5d %6d %6d  %-12.4g  ", reported.steps, reported.rounds, reported.chunks,
               (double)reported.rounds / reported.chunks);
        if (search->size_bytes > 0)
            printf("%-10.4g %s  ", time_usec(search, point), k == fastest(search) ? "<<" : "  ");
        printf("%s", verdict(point));
        if (point->optimal && !point->bound) {
            printf(": none better up to %d rounds",
                   reported_size(search, (struct search_size){1, (int)search->rounds, 1}).rounds);
        }
        printf("\n");
    }
}

static json_t *points_json(const struct search *search)
{
    json_t *points = json_array();
    const struct search_size least =
        reported_size(search, (struct search_size){search->bounds.steps, search->bounds.rounds,
                                                   search->bounds.chunks});
    for (int k = 0; k < search->npoints; k++) {
        const struct point *point = &search->points[k];
        const struct search_size reported = reported_size(search, point->size);
        json_t *row = json_pack("{s:i, s:i, s:i, s:b, s:b, s:s}", "steps", reported.steps, "rounds",
                                reported.rounds, "chunks", reported.chunks, "least", point->optimal,
                                "at_bound", point->bound, "file", point->file);
        if (search->size_bytes > 0)
            json_object_set_new(row, "predicted_usec", json_real(time_usec(search, point)));
        json_array_append_new(points, row);
    }
    return json_pack("{s:s, s:s, s:i, s:b, s:b, s:s, s:i, s:i, s:i, s:i, s:o}", "op",
                     tt_func_name(search->goal.func), "topology", search->machine.name, "ranks",
                     search->goal.nranks, "complete", !search->open, "interrupted", search->stopped,
                     "solver", search->solver.program, "least_steps", least.steps, "least_rounds",
                     least.rounds, "per_chunks", least.chunks, "most_rounds", (int)search->rounds,
                     "points", points);
}

static bool write_files(const struct search *search)
{
    if (mkdir(search->folder, 0777) && errno != EEXIST) {
        (void)fprintf(stderr, "tutti program search: %s: %s\n", search->folder, strerror(errno));
        return false;
    }
    for (int k = 0; k < search->npoints; k++) {
        const struct point *point = &search->points[k];
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/%s", search->folder, point->file);
        FILE *out = fopen(path, "w");
        bool written = out && fwrite(point->text, 1, point->text_bytes, out) == point->text_bytes;
        if (out && fclose(out)) written = false;
        if (!written) {
            (void)fprintf(stderr, "tutti program search: %s: %s\n", path, strerror(errno));
            return false;
        }
        if (!search->json) printf("%s\n", path);
    }
    return true;
}

static int report(const struct search *search)
{
    if (search->solver.reported) (void)fprintf(stderr, "\r\033[K");
    if (search->json) {
        program_print_json(points_json(search));
    } else if (search->npoints) {
        print_points(search);
    }
    if (search->folder && !write_files(search)) return 1;
    const char *nothing = search->npoints ? "" : " is nothing";
    if (search->stopped) {
        (void)fprintf(stderr, "tutti program search: interrupted: the best so far%s\n", nothing);
        return INTERRUPTED;
    }
    if (search->broken) return 1;
    if (search->solver.too_large) {
        (void)fprintf(
            stderr,
            "tutti program search: a formula larger than %d MiB was not asked, so what it "
            "is about stays open; fewer rounds (--rounds) make smaller ones\n",
            (int)SEARCH_MOST_MIB);
    }
    if (search->open) {
        (void)fprintf(stderr,
                      "tutti program search: not every question has an answer in time (--time, now "
                      "%ld): the best so far%s\n",
                      search->seconds, nothing);
        return TIME_IS_OVER;
    }
    if (search->npoints) return 0;
    (void)fprintf(stderr, "tutti program search: there is none of up to %ld rounds (--rounds)\n",
                  search->rounds);
    return 1;
}

/* ---- all ---- */

static int prepare(struct search *search)
{
    int func = program_find_op(search->op);
    const char *topology = search->topology ? search->topology : "fully-connected";
    if (func < 0)
        return tutti_usage_error("program search", "--op: '%s' is no collective", search->op);
    search->solver.program = search_solver_find(search->solver_name);
    if (!search->solver.program && search->solver_name)
        return tutti_usage_error("program search", "%s: no such program", search->solver_name);
    if (!search->solver.program) {
        (void)fprintf(stderr, "tutti program search: needs a SAT solver: install cadical, kissat, "
                              "cryptominisat5, picosat or z3\n");
        return 2;
    }
    if (!search_machine_open(topology, (int)search->ranks, &search->machine)) return 2;
    if (!search_goal_make((enum tt_func)func, search->machine.nranks, &search->goal)) {
        return tutti_usage_error("program search", "--op: %s moves no known chunks",
                                 tt_func_name((enum tt_func)func));
    }
    if (search->direct && func != TT_FUNC_ALLREDUCE)
        return tutti_usage_error("program search", "--direct is for an AllReduce");
    if (search->direct) search_goal_exchange(search->machine.nranks, &search->goal);
    bool symmetric = search_machine_is_symmetric(&search->machine);
    if (search->goal.sums && search->goal.gathers && !symmetric) {
        return tutti_usage_error("program search",
                                 "%s: an AllReduce is composed over links that "
                                 "are alike in both directions; these are not",
                                 topology);
    }
    if (search->goal.sums && !search->goal.gathers) search_machine_turn(&search->machine);
    search->bounds = search_bounds(&search->goal, &search->machine);
    search->ngroups = search_symmetry_find(&search->goal, &search->machine, search->groups);
    if (search->ngroups) {
        search_symmetry_use(&search->goal, &search->machine, &search->groups[0], &search->symmetry);
    }
    return 0;
}

int program_search(int argc, char **argv)
{
    struct search *search = tt_calloc(1, sizeof(*search));
    sigset_t ends;
    if (!search) return 1;
    search->seconds = 60;
    int status = read_options(search, argc, argv);
    if (!status) status = prepare(search);
    if (status) {
        free(search);
        return status;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    search->solver.signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    search->solver.began_sec = search_now();
    search->solver.doing = search->doing;
    look(search);
    status = report(search);
    if (search->solver.signal_fd >= 0) close(search->solver.signal_fd);
    for (int k = 0; k < search->npoints; k++)
        free(search->points[k].text);
    free(search);
    return status;
}
